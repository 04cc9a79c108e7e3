// The first call: begins a login. Once scripts/run is running, in the project's folder:
//
//	(cd gateway/clients/go && go build -o /tmp/sample ./sample) && /tmp/sample
//
// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"signpost.example/signpost"
)

func main() {
	// sample: begin
	// It imports context, fmt, log, os, strings, and signpost.example/signpost.
	key, err := os.ReadFile("data/app.key")
	if err != nil {
		log.Fatal(err)
	}
	settings := signpost.Settings{URL: "http://127.0.0.1:8080", Key: strings.TrimSpace(string(key)), App: "demo"}
	client, err := signpost.New(settings)
	if err != nil {
		log.Fatal(err)
	}
	response, err := client.Call(context.Background(), "POST", "/login", signpost.Pairs{{"provider", "sandbox"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d %s\n", response.Status, response.Body)
	// sample: end
}
