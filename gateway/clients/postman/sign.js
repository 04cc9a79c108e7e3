// Signs the requests of a Postman collection, as its pre-request script. Its variables: `app_key`, the application's key; `app`, its ident;
// `version`; `authorization`, the user's credential; `carrier`: with `headers`, headers sign any method and body, such as JSON. Otherwise it
// has the default sign profile: CONTRACT 3, in gateway/protocol/CONTRACT.md.
//
// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

// Variables of scripts share one scope with those of Postman itself.
{
  const { HmacSHA256, MD5, SHA256 } = require("crypto-js");
  const { request, variables } = pm;

  /** Encodes by RFC 3986. */
  const encode = (text) =>
    encodeURIComponent(variables.replaceIn(text ?? "")).replace(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`);

  /** The decoded name of a pair: a character for each byte, so that names are compared by their UTF-8. */
  const nameBytes = (pair) => unescape(pair.slice(0, pair.indexOf("=")).replace(/\+/g, " "));
  const compare = (one, other) => (nameBytes(one) < nameBytes(other) ? -1 : Number(nameBytes(one) > nameBytes(other)));

  // What the query already escapes stays, and Postman changes nothing that is escaped.
  const written = encodeURI(variables.replaceIn(request.url.getQueryString())).replace(/%25(?=[0-9A-Fa-f]{2})/g, "%");
  const isInHeaders = variables.get("carrier") === "headers";
  const time = String(Date.now());
  const query = written.replace(/'/g, "%27").split("&").filter((pair) => pair && (isInHeaders || !/^(time|sign)(=|$)/.test(pair)));
  if (!isInHeaders) query.push(`time=${time}`);
  const isForm = request.body?.mode === "urlencoded";
  const fields = isForm ? request.body.urlencoded.filter((field) => !field.disabled) : [];
  const form = fields.map((field) => `${encode(field.key)}=${encode(field.value)}`);
  const pairs = [...query, ...form].map((pair) => (pair.includes("=") ? pair : `${pair}=`));
  const sign = MD5(pairs.sort(compare).join("&") + variables.get("app_key")).toString();

  if (!isInHeaders) query.push(`sign=${sign}`);
  request.url.query.clear();
  if (query.length) request.addQueryParams(query.join("&"));
  const body = isForm ? form.join("&") : variables.replaceIn(request.body?.raw ?? "");
  if (body) request.body.update({ ...request.body, mode: "raw", raw: body });
  if (isForm) request.headers.upsert({ key: "Content-Type", value: "application/x-www-form-urlencoded" });
  if (isInHeaders) {
    const path = encodeURI(variables.replaceIn(request.url.getPath())).replace(/%25(?=[0-9A-Fa-f]{2})/g, "%");
    const target = [path, ...(query.length ? [query.join("&")] : [])].join("?");
    const nonce = SHA256(`${time}${Math.random()}`).toString().slice(0, 32);
    const text = [request.method, target, time, nonce, SHA256(body).toString()].join("\n");
    const signed = { Time: time, Nonce: nonce, Sign: HmacSHA256(text, variables.get("app_key")).toString() };
    for (const [name, value] of Object.entries(signed)) request.headers.upsert({ key: `Acme-X-${name}`, value });
  }
  for (const [key, name] of [["Acme-X-App", "app"], ["Acme-X-Version", "version"]]) {
    if (variables.has(name)) request.headers.upsert({ key, value: variables.get(name) });
  }
  // An imported request has an authorization `{{apiKey}}`, which Postman adds last: in place of the signature, or as the credential.
  variables.set("apiKey", request.auth?.apikey?.get("key") === "sign" ? sign : variables.get("authorization"));
}
