// The first call: begins a login. Once scripts/run is running, in the project's folder, with Mono:
//
//   mcs -r:System.Net.Http -out:/tmp/sample.exe gateway/clients/csharp/S*.cs && mono /tmp/sample.exe
//
// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

using System;
using System.IO;

internal static class Sample
{
    private static void Main()
    {
        // sample: begin
        // It uses System and System.IO.
        var key = File.ReadAllText("data/app.key").Trim();
        var client = new Signpost("http://127.0.0.1:8080", key) { App = "demo" };
        var response = client.Call("POST", "/login", Signpost.Pair("provider", "sandbox"));
        Console.WriteLine($"{response.Status} {response.Body}");
        // sample: end
    }
}
