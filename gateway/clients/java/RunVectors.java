// Conformance of Signpost.java: run-vectors sign FILE, run-vectors text FILE, run-vectors drive.
// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

import static java.nio.charset.StandardCharsets.US_ASCII;
import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.AbstractMap.SimpleEntry;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

final class RunVectors {
    private static final PrintStream OUT = new PrintStream(System.out, true, US_ASCII);
    private static Signpost client;
    private static final List<List<String>> warnings = new ArrayList<>();

    private RunVectors() {}

    public static void main(String[] arguments) throws Exception {
        if (arguments.length == 2 && arguments[0].equals("sign")) {
            runSign(arguments[1]);
        } else if (arguments.length == 2 && arguments[0].equals("text")) {
            runText(arguments[1]);
        } else if (arguments.length == 1 && arguments[0].equals("drive")) {
            drive();
        } else {
            System.err.println("usage: run-vectors sign FILE | text FILE | drive");
            System.exit(1);
        }
    }

    private static void runSign(String file) throws IOException {
        for (var one : cases(file)) {
            var profile = new HashMap<>(object(one.get("profile")));
            profile.remove("cover");
            var head = (String) profile.remove("head");
            String method = "";
            String path = "";
            if (head != null) {
                profile.put("cover", "request");
                method = head.split("\n")[0];
                path = head.split("\n")[1];
            }
            var query = text(one, "query");
            var form = text(one, "body");
            var canonical = Signpost.canonical(query, form, profile, method, path);
            write(answer("canonical", canonical, "sign", Signpost.signature(query, form, text(one, "app_key"), profile, method, path)));
        }
    }

    private static void runText(String file) throws IOException {
        for (var one : cases(file)) {
            var pairs = pairs(one.get("pairs"));
            var time = Long.parseLong(text(one, "time"));
            var profile = object(one.get("profile"));
            write(answer("text", Signpost.sign(pairs, text(one, "app_key"), profile, text(one, "method"), text(one, "path"), time)));
        }
    }

    private static void drive() throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, UTF_8));
        for (var line = lines.readLine(); line != null; line = lines.readLine()) {
            var command = object(new Signpost.Json(line).document()).entrySet().iterator().next();
            Map<String, Object> answer;
            try {
                answer = run(command.getKey(), object(command.getValue()));
            } catch (Signpost.Problem problem) {
                answer = answer("problem", answer("status", problem.status, "code", problem.code, "title", problem.title,
                        "hint", problem.hint, "canonical", problem.canonical, "request_id", problem.requestId, "message", problem.getMessage()));
            } catch (IOException error) {
                answer = answer("transport", error.toString());
            } catch (IllegalArgumentException error) {
                answer = answer("argument", error.getMessage());
            }
            answer.put("warnings", new ArrayList<>(warnings));
            warnings.clear();
            write(answer);
        }
    }

    private static Map<String, Object> run(String command, Map<String, Object> arguments) throws Exception {
        switch (command) {
            case "new":
                connect(arguments);
                return answer("ok", true);
            case "call":
                var method = text(arguments, "method");
                var repeatable = (boolean) arguments.getOrDefault("repeatable", "GET".equals(method));
                var pairs = pairs(arguments.get("pairs"));
                var response = arguments.containsKey("repeatable")
                        ? client.call(method, text(arguments, "path"), pairs, repeatable, Duration.ofSeconds(65))
                        : client.call(method, text(arguments, "path"), pairs);
                return answer("status", response.status(), "body", response.body());
            case "login":
                var result = client.login((address, code) -> write(answer("open", address, "user_code", code)), text(arguments, "provider"));
                return answer("login", answer("authorization", result.authorization(), "expires_in", result.expiresIn(),
                        "created", result.created(), "account", result.account()));
            case "user":
                return answer("user", client.user());
            case "send_event":
                return answer("event", client.sendEvent(text(arguments, "event"), text(arguments, "data"), text(arguments, "idempotency_key")));
            case "logout":
                client.logout();
                return answer("ok", true);
            default:
                throw new IllegalStateException("no such command: " + command);
        }
    }

    private static void connect(Map<String, Object> settings) {
        var builder = Signpost.builder(text(settings, "url"), text(settings, "key"));
        builder.app(text(settings, "app")).version(text(settings, "version")).language(text(settings, "language"));
        builder.authorization(text(settings, "authorization")).prefix((String) settings.getOrDefault("prefix", "Acme"));
        builder.profile(object(settings.getOrDefault("profile", Map.of())));
        builder.retries(((Number) settings.getOrDefault("retries", 3)).intValue());
        builder.maxWait(Duration.ofMillis((long) (1000 * ((Number) settings.getOrDefault("max_wait", 30)).doubleValue())));
        var offset = ((Number) settings.getOrDefault("clock_offset_ms", 0)).longValue();
        builder.clock(() -> System.currentTimeMillis() + offset);
        if (!"default".equals(settings.get("warnings"))) {
            builder.onWarning("off".equals(settings.get("warnings")) ? (name, value) -> {} : (name, value) -> warnings.add(List.of(name, value)));
        }
        client = builder.build();
    }

    private static List<Map<String, Object>> cases(String file) throws IOException {
        var cases = new ArrayList<Map<String, Object>>();
        ((List<?>) object(new Signpost.Json(Files.readString(Path.of(file))).document()).get("cases")).forEach(one -> cases.add(object(one)));
        return cases;
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> object(Object value) {
        return (Map<String, Object>) value;
    }

    private static String text(Map<String, Object> object, String name) {
        return (String) object.get(name);
    }

    private static List<Map.Entry<String, String>> pairs(Object list) {
        var pairs = new ArrayList<Map.Entry<String, String>>();
        for (var pair : (List<?>) list) {
            pairs.add(new SimpleEntry<>((String) ((List<?>) pair).get(0), (String) ((List<?>) pair).get(1)));
        }
        return pairs;
    }

    private static Map<String, Object> answer(Object... members) {
        var answer = new LinkedHashMap<String, Object>();
        for (var i = 0; i < members.length; i += 2) {
            answer.put((String) members[i], members[i + 1]);
        }
        return answer;
    }

    private static void write(Object answer) {
        var json = new StringBuilder();
        write(answer, json);
        OUT.println(json);
    }

    private static void write(Object value, StringBuilder json) {
        if (value instanceof String) {
            json.append('"');
            ((String) value).chars().forEach(one ->
                    json.append(one < ' ' || one > '~' || one == '"' || one == '\\' ? String.format("\\u%04x", one) : String.valueOf((char) one)));
            json.append('"');
        } else if (value instanceof List) {
            var separator = "[";
            for (var one : (List<?>) value) {
                json.append(separator);
                write(one, json);
                separator = ",";
            }
            json.append(((List<?>) value).isEmpty() ? "[]" : "]");
        } else if (value instanceof Map) {
            var separator = "{";
            for (var member : ((Map<?, ?>) value).entrySet()) {
                json.append(separator);
                write(member.getKey(), json);
                json.append(':');
                write(member.getValue(), json);
                separator = ",";
            }
            json.append(((Map<?, ?>) value).isEmpty() ? "{}" : "}");
        } else {
            json.append(value);
        }
    }
}
