// What the programs in TypeScript have in common: `tests/installation/generated_clients.rs` runs them.

/** Of Node. */
declare const process: { argv: string[]; stdin: AsyncIterable<unknown> };

const [url, key, app, DATA] = process.argv.slice(2) as [string, string, string, string];
export const settings = { url, key, app };
export { DATA };

/** The data of a response, unless it is a problem. */
export function result<T>(response: { data?: T | undefined; error?: unknown }): T {
  if (response.data === undefined) throw new Error(JSON.stringify(response.error));
  return response.data;
}

/** Shows a login, and waits for the person who allows it. */
export async function personHasAllowed(begun: { authorize_url: string }) {
  console.log(JSON.stringify(begun));
  for await (const _ of process.stdin) break;
}
