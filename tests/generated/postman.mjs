// A login and an event by Newman: the requests of the collection that Postman makes of the description, signed by the script.

import { once } from "node:events";
import { readFileSync } from "node:fs";
import newman from "newman";
import converter from "openapi-to-postmanv2";

const [url, key, app, data] = process.argv.slice(2);
const script = readFileSync("sign.js", "utf8");
const variables = { app, app_key: key, version: "v2", baseUrl: url, data };

/** The requests of an imported description, in all of its folders. */
const requests = (items) => items.flatMap((item) => (item.item ? requests(item.item) : item));
const imported = await new Promise((resolve, reject) =>
  converter.convertV2({ type: "file", data: "openapi.json" }, {}, (error, { result, output } = {}) =>
    result ? resolve(requests(output[0].data.item)) : reject(error ?? new Error("it is not converted")),
  ),
);

/** Sends the request with these parameters alone, as a person who fills it in. */
async function send(method, path, parameters = {}) {
  const item = imported.find(({ request }) => request.method === method && request.url.path.join("/") === path);
  const list = item.request.body?.urlencoded ?? item.request.url.query;
  for (const field of list) field.disabled = !(field.key in parameters);
  for (const [name, value] of Object.entries(parameters)) list.find((field) => field.key === name).value = value;
  const event = [{ listen: "prerequest", script: { type: "text/javascript", exec: script } }];
  const variable = Object.entries(variables).map(([key, value]) => ({ key, value }));
  const schema = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json";
  const collection = { info: { name: path, schema }, item: [item], event, variable };
  const run = newman.run({ collection, reporters: [] });
  let response;
  run.on("request", (_, sent) => ({ response } = sent));
  const [error, summary] = await once(run, "done");
  const failure = error ?? summary.run.failures[0]?.error;
  if (failure) throw failure;
  if (response.code !== 200) throw new Error(response.text());
  return response.json();
}

const begun = await send("POST", "login", { provider: "bitbucket" });
console.log(JSON.stringify(begun));
await once(process.stdin, "data");
process.stdin.destroy();
const { status } = await send("GET", "check", { token: begun.token, wait: "30" });
variables.authorization = (await send("POST", "user/login", { token: begun.token })).authorization;
await send("POST", "event/send", { event: "generated", data: "{{data}}" });
const { provider } = await send("GET", "user");
const { events } = await send("GET", "events", { limit: "1" });
console.log(JSON.stringify({ status, provider, data: events[0].data }));
