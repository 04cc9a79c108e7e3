// A login and an event by the client of openapi-typescript and openapi-fetch.

import createClient from "openapi-fetch";
import { DATA, personHasAllowed, result, settings } from "./run";
import type { paths } from "./schema";
import { sign } from "./sign";

const { url, key, app } = settings;
const client = createClient<paths>({ baseUrl: url });
client.use({ onRequest: ({ request }) => sign(request, key) });

const header = { "Acme-X-App": app, "Acme-X-Version": "v2" } as const;
const headers = { "Content-Type": "application/x-www-form-urlencoded" };
const begun = result(await client.POST("/login", { params: { header }, headers, body: { provider: "bitbucket" } }));
await personHasAllowed(begun);
const { status } = result(await client.GET("/check", { params: { header, query: { token: begun.token, wait: 30 } } }));
const login = result(await client.POST("/user/login", { params: { header }, headers, body: { token: begun.token } }));
const asUser = { ...headers, "Acme-X-Authorization": login.authorization };
result(await client.POST("/event/send", { params: { header }, headers: asUser, body: { event: "generated", data: DATA } }));
const account = result(await client.GET("/user", { params: { header }, headers: asUser }));
const { events } = result(await client.GET("/events", { params: { header, query: { limit: 1 } }, headers: asUser }));
console.log(JSON.stringify({ status, provider: account.provider, data: events[0]?.data }));
