// A login and an event by the client of @hey-api/openapi-ts.

import { client } from "./login/client.gen";
import { getCheck, getEvents, getUser, postEventSend, postLogin, postUserLogin } from "./login/sdk.gen";
import { DATA, personHasAllowed, result, settings } from "./run";
import { sign } from "./sign";

const { url, key, app } = settings;
client.setConfig({ baseUrl: url });
client.interceptors.request.use((request) => sign(request, key));

const headers = { "Acme-X-App": app, "Acme-X-Version": "v2" } as const;
const begun = result(await postLogin({ headers, body: { provider: "bitbucket" } }));
await personHasAllowed(begun);
const { status } = result(await getCheck({ headers, query: { token: begun.token, wait: 30 } }));
const login = result(await postUserLogin({ headers, body: { token: begun.token } }));
client.setConfig({ headers: { "Acme-X-Authorization": login.authorization } });
result(await postEventSend({ headers, body: { event: "generated", data: DATA } }));
const account = result(await getUser({ headers }));
const { events } = result(await getEvents({ headers, query: { limit: 1 } }));
console.log(JSON.stringify({ status, provider: account.provider, data: events[0]?.data }));
