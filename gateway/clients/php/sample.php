<?php

// The first call: begins a login at a gateway that scripts/run has started. Run it in the project's folder.
//
// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

// sample: begin
require __DIR__ . "/autoload.php";
$key = trim(file_get_contents("data/app.key"));
$client = new Signpost\Client(url: "http://127.0.0.1:8080", key: $key, app: "demo");
$response = $client->call("POST", "/login", [["provider", "sandbox"]]);
echo $response->status, " ", $response->body, "\n";
// sample: end
