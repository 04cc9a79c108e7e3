// The first call: begins a login. Once scripts/run is running, in the project's folder:
//
//   javac -d /tmp/sample gateway/clients/java/Sample.java gateway/clients/java/src/main/java/signpost/*.java && java -cp /tmp/sample Sample
//
// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import signpost.Signpost;

public class Sample {
    public static void main(String[] arguments) throws Exception {
        // sample: begin
        // It imports java.nio.file.Files, java.nio.file.Path, java.util.List and signpost.Signpost.
        var key = Files.readString(Path.of("data/app.key")).strip();
        var client = Signpost.builder("http://127.0.0.1:8080", key).app("demo").build();
        var response = client.call("POST", "/login", List.of(Signpost.pair("provider", "sandbox")));
        System.out.println(response.status() + " " + response.body());
        // sample: end
    }
}
