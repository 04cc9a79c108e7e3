// The certified provider `oidc-provider` as the other side of logins, with one page where a person enters a name and allows or
// denies. Tests change it by POST /control, so that it rotates its keys, or misbehaves as it never would by itself:
//
//   rotate: true           new keys at once; the old ones are gone. "same kid": the new one has the ID of the old one
//   kidless: true          its keys are published without IDs
//   forged: true           ID tokens are signed by a key that is not published
//   answer: {NAME: VALUE}  members of token responses from now on
//   redirect_uri: URL      the callback of the registered client
//   issuer: URL            what the discovery document says; null: the truth
//   skew: SECONDS          its clock, as ID tokens show it, is this much ahead
//   claims: {NAME: VALUE}  claims of ID tokens from now on; null removes one
//   header: {NAME: VALUE}  the same, of an ID token's header; the kid "random" is another one each time
//   replay: true           the token endpoint returns the ID token of the first login from then on
//   faults: {PATH: FAULT}  slow, 500, redirect, 307, huge, garbage, html, jwt or wrong, for all requests of a path; or {error: CODE},
//                          as a token endpoint refuses
//   error: CODE            the error that the authorization endpoint redirects back with; null: none
//
// GET /control returns how often each path was requested. ISSUER/NAME, for any name, is an issuer with a discovery document and
// keys at addresses of its own; all else it shares.
//
//   node server.mjs FOLDER-OF-MODULES CLIENT-ID CLIENT-SECRET basic|post RS256|ES256|EdDSA
//
// It prints its issuer as the first line, and ends with its standard input.
import { generateKeyPairSync, randomUUID, sign, createPrivateKey } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';

const [modules, clientId, clientSecret, clientAuth, algorithm] = process.argv.slice(2);
const { default: Provider } = await import(pathToFileURL(`${modules}/oidc-provider/lib/index.js`));

// It says that its store and its defaults are for development only.
console.info = console.warn = () => {};

const ALGORITHMS = {
  RS256: { type: 'rsa', options: { modulusLength: 2048 }, hash: 'sha256' },
  ES256: { type: 'ec', options: { namedCurve: 'P-256' }, hash: 'sha256' },
  EdDSA: { type: 'ed25519', options: {}, hash: null },
};
// As long as real ID tokens never live: a clock that is behind is then seen at once.
const ID_TOKEN_SECONDS = 10;
// Of what is published; and of answers to a login.
const MAX_DOCUMENT_BYTES = 64 * 1024;
const MAX_ANSWER_BYTES = 1024 * 1024;
const ANSWERS = ['/token', '/me'];

// Longer than any pause of a slow test: by default Node closes a connection that a client is about to use.
const server = createServer({ keepAliveTimeout: 120_000 });
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const issuer = `http://127.0.0.1:${server.address().port}`;

let setting = { faults: {} };
let key = newKey();
let provider = newProvider();
const counts = {};
let firstIdToken;
let strangersKey;

function newKey(kid = randomUUID()) {
  const { type, options } = ALGORITHMS[algorithm];
  const { privateKey } = generateKeyPairSync(type, options);
  return { ...privateKey.export({ format: 'jwk' }), kid, use: 'sig', alg: algorithm };
}

// The settings of a provider cannot be changed. Its sessions, codes and grants are in memory that all have in common.
function newProvider() {
  const made = new Provider(issuer, {
    clients: [{
      client_id: clientId,
      client_secret: clientSecret,
      redirect_uris: [setting.redirect_uri ?? 'http://127.0.0.1/not-registered-yet'],
      token_endpoint_auth_method: `client_secret_${clientAuth}`,
      id_token_signed_response_alg: algorithm,
    }],
    clientAuthMethods: [`client_secret_${clientAuth}`],
    jwks: { keys: [key] },
    pkce: { methods: ['S256'], required: () => true },
    scopes: ['openid', 'profile'],
    claims: { openid: ['sub'], profile: ['name'] },
    conformIdTokenClaims: false,
    // Cookies do not tell ports apart: a test may have two providers.
    cookies: {
      keys: [clientSecret],
      names: { session: `session-${new URL(issuer).port}`, interaction: 'interaction', resume: 'resume' },
    },
    ttl: { IdToken: ID_TOKEN_SECONDS, Interaction: 600, Session: 600, Grant: 600, AccessToken: 600, AuthorizationCode: 60 },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    // The person's own page asks for everything at once.
    async loadExistingGrant({ oidc }) {
      const grant = new oidc.provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
      grant.addOIDCScope('openid profile');
      await grant.save();
      return grant;
    },
    findAccount: (_, sub) => ({ accountId: sub, claims: () => ({ sub, name: nameOf(sub) }) }),
  });
  made.use(async (context, next) => {
    await next();
    if (context.oidc?.route === 'token' && context.body?.id_token) context.body.id_token = changed(context.body.id_token);
    if (context.oidc?.route === 'token') Object.assign(context.body, setting.answer);
    if (context.oidc?.route === 'jwks' && setting.kidless) context.body = { keys: context.body.keys.map(({ kid, ...rest }) => rest) };
    if (context.oidc?.route === 'discovery' && setting.issuer) context.body.issuer = setting.issuer;
  });
  return made;
}

// A subject is no name, but tells it.
const subjectOf = (name) => `sub-${Buffer.from(name).toString('hex')}`;
const nameOf = (sub) => Buffer.from(sub.slice('sub-'.length), 'hex').toString();

// The ID token with what the settings change, signed by the current key.
function changed(token) {
  firstIdToken ??= token;
  if (setting.replay) return firstIdToken;
  const [header, claims] = token.split('.').slice(0, 2).map((part) => JSON.parse(Buffer.from(part, 'base64url')));
  for (const name of ['iat', 'exp', 'auth_time']) if (claims[name]) claims[name] += setting.skew ?? 0;
  Object.assign(claims, setting.claims);
  Object.assign(header, setting.header);
  if (header.kid === 'random') header.kid = randomUUID();
  for (const part of [header, claims]) for (const name in part) if (part[name] === null) delete part[name];
  const encoded = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
  if (setting.forged) strangersKey ??= newKey();
  const by = { key: createPrivateKey({ key: setting.forged ? strangersKey : key, format: 'jwk' }), dsaEncoding: 'ieee-p1363' };
  return `${encoded}.${sign(ALGORITHMS[algorithm].hash, Buffer.from(encoded), by).toString('base64url')}`;
}

const FAULTS = {
  // Until the client gives up.
  slow() {},
  500: (_, response) => response.writeHead(500).end('no'),
  redirect: (request, response) => elsewhere(302, request, response),
  // The client would send its POST once more.
  307: (request, response) => elsewhere(307, request, response),
  huge(request, response) {
    const limit = ANSWERS.includes(request.url) ? MAX_ANSWER_BYTES : MAX_DOCUMENT_BYTES;
    return json(response, { issuer, padding: ' '.repeat(limit) });
  },
  garbage: (_, response) => response.writeHead(200, JSON_TYPE).end(Buffer.from([0x7b, 0xff, 0x00])),
  html: (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>Portal</title>'),
  jwt: (_, response) => response.writeHead(200, { 'content-type': 'application/jwt' }).end('eyJhbGciOiJub25lIn0.e30.'),
  wrong: (_, response) => json(response, { issuer: null, keys: 'none', access_token: 1 }),
};

// There is what is looked for: following the redirect would succeed.
const elsewhere = (status, request, response) => response.writeHead(status, { location: `/elsewhere${request.url}` }).end();

const JSON_TYPE = { 'content-type': 'application/json' };
const json = (response, value, status = 200) => response.writeHead(status, JSON_TYPE).end(JSON.stringify(value));

async function control(request, response) {
  if (request.method === 'GET') return json(response, counts);
  const { rotate, ...changes } = JSON.parse(await text(request));
  setting = { ...setting, ...changes };
  if (rotate) key = newKey(rotate === 'same kid' ? key.kid : undefined);
  if (rotate || 'redirect_uri' in changes) provider = newProvider();
  return json(response, {});
}

// One page: who logs in, and whether they allow it.
async function interaction(request, response) {
  if (request.method !== 'POST') {
    await provider.interactionDetails(request, response);
    return response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(`<!doctype html><html lang="en">
<link rel="icon" href="data:,"><title>Sign in at the company</title><h1>Sign in at the company</h1><form method="post" action="${request.url}">
<label>Name <input name="name" value="Ada Lovelace"></label>
<button name="decision" value="allow">Allow</button> <button name="decision" value="deny">Deny</button></form></html>`);
  }
  const form = new URLSearchParams(await text(request));
  const result = form.get('decision') === 'allow'
    ? { login: { accountId: subjectOf(form.get('name')) } }
    : { error: 'access_denied', error_description: 'The person denied it.' };
  return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
}

// A document of ISSUER/NAME.
async function published(name, document, response) {
  // Not counted: it goes past the faults.
  const original = await fetch(`${issuer}/elsewhere/${document}`, { headers: { 'x-uncounted': '1' } });
  const value = await original.json();
  return json(response, value.issuer ? { ...value, issuer: `${issuer}/${name}`, jwks_uri: `${issuer}/${name}/jwks` } : value);
}

// To the callback, as the provider's own errors go.
function refuse(query, response) {
  const back = new URL(query.get('redirect_uri'));
  const parameters = { error: setting.error, state: query.get('state'), iss: issuer };
  for (const name in parameters) back.searchParams.set(name, parameters[name]);
  response.writeHead(303, { location: back.href }).end();
}

server.on('request', async (request, response) => {
  const { pathname, searchParams } = new URL(request.url, issuer);
  try {
    if (pathname === '/control') return await control(request, response);
    const counted = pathname.replace(/^\/(interaction|auth)\/.*/, '/$1/*');
    if (!request.headers['x-uncounted']) counts[counted] = (counts[counted] ?? 0) + 1;
    const fault = setting.faults[pathname];
    if (fault?.error) return json(response, fault, 400);
    if (fault) return FAULTS[fault](request, response);
    const [, name, document] = pathname.match(/^\/([^/]+)\/(\.well-known\/openid-configuration|jwks)$/) ?? [];
    if (name && name !== 'elsewhere') return await published(name, document, response);
    if (setting.error && pathname === '/auth') return refuse(searchParams, response);
    if (pathname.startsWith('/interaction/')) return await interaction(request, response);
    if (pathname.startsWith('/elsewhere/')) request.url = request.url.slice('/elsewhere'.length);
    return await provider.callback()(request, response);
  } catch (error) {
    console.error(error);
    return response.writeHead(400).end(String(error));
  }
});

// A test that is killed closes it.
process.stdin.resume().on('end', () => process.exit());
console.log(issuer);
