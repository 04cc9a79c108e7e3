// The first call: begins a login. Once scripts/run is running, in the project's folder, with Mono:
//
//   cd gateway/clients/csharp
//   mcs -r:System.Net.Http -out:/tmp/sample.exe Sample.cs Client.cs Json.cs Signature.cs Transport.cs Types.cs
//   cd - && mono /tmp/sample.exe
//
// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

using System;
using System.IO;
using Signpost;

internal static class Sample
{
    private static void Main()
    {
        // sample: begin
        // It uses System, System.IO and Signpost.
        var key = File.ReadAllText("data/app.key").Trim();
        var client = new SignpostClient("http://127.0.0.1:8080", key) { App = "demo" };
        var response = client.Call("POST", "/login", SignpostClient.Pair("provider", "sandbox"));
        Console.WriteLine($"{response.Status} {response.Body}");
        // sample: end
    }
}
