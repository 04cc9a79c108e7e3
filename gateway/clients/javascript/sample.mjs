// The first call: begins a login at a gateway that scripts/run has started. Run it in the project's folder.
//
// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

// sample: begin
import { readFileSync } from "node:fs";
import { Client } from "./signpost.mjs";
const key = readFileSync("data/app.key", "utf8").trim();
const client = new Client({ url: "http://127.0.0.1:8080", key, app: "demo" });
const response = await client.call("POST", "/login", [["provider", "sandbox"]]);
console.log(response.status, response.body);
// sample: end
