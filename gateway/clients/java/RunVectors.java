// Conformance of the library: obeys a command of JSON in each line.
// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

package signpost;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.security.DigestInputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;

final class RunVectors {
    private static final PrintStream OUT = new PrintStream(System.out, true, US_ASCII);
    private static final Map<String, BiConsumer<Call, Object>> OPTIONS = Map.of(
            "pairs", (call, value) -> call.pairs(pairs(value)),
            "json", Call::json,
            "headers", (call, value) -> object(value).forEach((name, content) -> call.header(name, (String) content)),
            "credential", (call, value) -> call.credential((String) value),
            "version", (call, value) -> call.version((String) value),
            "language", (call, value) -> call.language((String) value),
            "timeout", (call, value) -> call.timeout(seconds(value)),
            "limit", (call, value) -> call.limit(((Number) value).longValue()),
            "idempotency_key", (call, value) -> call.idempotencyKey((String) value),
            "repeatable", (call, value) -> call.repeatable((boolean) value));
    private static Signpost client;
    private static final List<List<String>> warnings = new ArrayList<>();

    private RunVectors() {}

    private static Map<String, Object> sign(Map<String, Object> one) {
        var profile = new HashMap<>(object(one.get("profile")));
        profile.remove("cover");
        var head = (String) profile.remove("head");
        var request = head == null ? new String[] {"", ""} : head.split("\n");
        if (head != null) {
            profile.put("cover", "request");
        }
        var query = text(one, "query");
        var form = text(one, "body");
        var canonical = Signpost.canonical(query, form, profile, request[0], request[1]);
        return answer("canonical", canonical, "sign", Signpost.signature(query, form, text(one, "app_key"), profile, request[0], request[1]));
    }

    private static Map<String, Object> head(Map<String, Object> one) {
        var profile = new SignProfile(Map.of("carrier", "headers", "algorithm", text(one, "algorithm")));
        var hash = SignProfile.hex(SignProfile.digest("SHA-256").digest(text(one, "body").getBytes(UTF_8)));
        var lines = List.of(text(one, "method"), text(one, "target"), text(one, "time"), text(one, "nonce"), hash);
        return answer("text", profile.headText(lines, "<APP_KEY>"), "sign", profile.headSignature(lines, text(one, "app_key")));
    }

    public static void main(String[] arguments) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, UTF_8));
        for (var line = lines.readLine(); line != null; line = lines.readLine()) {
            var command = object(new Json(line).document()).entrySet().iterator().next();
            var members = object(command.getValue());
            Map<String, Object> answer;
            var main = Thread.currentThread();
            var timer = Executors.newSingleThreadScheduledExecutor();
            if (members.containsKey("cancel_after_ms")) {
                timer.schedule(main::interrupt, ((Number) members.get("cancel_after_ms")).longValue(), TimeUnit.MILLISECONDS);
            }
            try {
                answer = run(command.getKey(), members);
            } catch (InterruptedException error) {
                answer = answer("cancelled", true);
            } catch (StatusException problem) {
                answer = answer("problem", answer("status", problem.status, "code", problem.code, "title", problem.title,
                        "hint", problem.hint, "canonical", problem.canonical, "request_id", problem.requestId, "message", problem.getMessage(),
                        "body", problem.response.body(), "headers", headers(problem.response)));
            } catch (IOException | UncheckedIOException error) {
                answer = answer("transport", error.toString());
            } catch (IllegalArgumentException error) {
                answer = answer("argument", error.getMessage());
            }
            timer.shutdownNow();
            timer.awaitTermination(1, TimeUnit.SECONDS);
            Thread.interrupted();
            synchronized (warnings) {
                answer.put("warnings", new ArrayList<>(warnings));
                warnings.clear();
            }
            write(answer);
        }
    }

    private static Map<String, Object> run(String command, Map<String, Object> arguments) throws Exception {
        var timeout = arguments.containsKey("timeout") ? seconds(arguments.get("timeout")) : null;
        switch (command) {
            case "sign":
                return sign(arguments);
            case "text":
                var time = Long.parseLong(text(arguments, "time"));
                return answer("text", Signpost.sign(pairs(arguments.get("pairs")), text(arguments, "app_key"), object(arguments.get("profile")),
                        text(arguments, "method"), text(arguments, "path"), time));
            case "head":
                return head(arguments);
            case "new":
                connect(arguments);
                return answer("ok", true);
            case "call":
                return answer(call(arguments).send());
            case "upload":
                return answer(call(arguments).body(Path.of(text(arguments, "file")), text(arguments, "content_type")).send());
            case "download":
                var digest = SignProfile.digest("SHA-256");
                try (var response = call(arguments).stream()) {
                    var bytes = new DigestInputStream(response.stream(), digest).transferTo(OutputStream.nullOutputStream());
                    return answer("status", response.status(), "bytes", bytes, "sha256", SignProfile.hex(digest.digest()));
                }
            case "events_stream":
                var events = new ArrayList<Object>();
                try (var stream = call(arguments).events()) {
                    stream.forEach(event -> events.add(answer("event", event.event, "data", event.data, "id", event.id)));
                }
                return answer("events", events);
            case "mixed":
                return mixed(arguments);
            case "login":
                return login(client.login((address, code) -> write(answer("open", address, "user_code", code)), text(arguments, "provider"), timeout));
            case "login_url":
                var address = client.loginUrl(text(arguments, "return_to"), text(arguments, "provider"));
                return answer("url", address.url, "code_verifier", address.codeVerifier);
            case "exchange":
                return login(client.exchange(text(arguments, "ticket"), text(arguments, "code_verifier")));
            case "renew":
                return login(client.renew());
            case "user":
                return answer("user", client.user().members);
            case "send_event":
                return answer("event", event(client.sendEvent(text(arguments, "event"), text(arguments, "data"), text(arguments, "idempotency_key"))));
            case "events":
                var page = client.events(((Number) arguments.getOrDefault("limit", 20)).intValue(), text(arguments, "before"));
                var list = new ArrayList<Object>();
                page.events.forEach(event -> list.add(event(event)));
                return answer("events", list, "next", page.next);
            case "logout":
                client.logout();
                client = client.withCredential(null);
                return answer("ok", true);
            default:
                throw new IllegalStateException("no such command: " + command);
        }
    }

    private static Call call(Map<String, Object> arguments) {
        var call = client.request((String) arguments.getOrDefault("method", "GET"), text(arguments, "path"));
        if (arguments.containsKey("body")) {
            call.body(text(arguments, "body").getBytes(UTF_8), (String) arguments.getOrDefault("content_type", "application/octet-stream"));
        }
        arguments.forEach((name, value) -> {
            if (OPTIONS.containsKey(name) && (value != null || name.equals("json"))) {
                OPTIONS.get(name).accept(call, value);
            }
        });
        return call;
    }

    private static Map<String, Object> mixed(Map<String, Object> arguments) throws Exception {
        var credentials = (List<?>) arguments.get("credentials");
        var calls = ((Number) arguments.getOrDefault("calls", 200)).intValue();
        var threads = Executors.newFixedThreadPool(((Number) arguments.getOrDefault("threads", 8)).intValue());
        var results = new ArrayList<Future<Boolean>>();
        for (var number = 0; number < calls; number++) {
            var credential = (String) credentials.get(number % credentials.size());
            results.add(threads.submit(() -> {
                var response = client.withCredential(credential).call("GET", text(arguments, "path"), List.of());
                return !response.body().contains(credential);
            }));
        }
        var mixed = 0;
        for (var result : results) {
            mixed += result.get() ? 1 : 0;
        }
        threads.shutdown();
        return answer("mixed", mixed, "calls", calls);
    }

    private static Map<String, Object> login(Login login) {
        client = client.withCredential(login.authorization);
        return answer("login", answer("authorization", login.authorization, "expires_in", login.expiresIn,
                "created", login.isCreated, "account", login.account == null ? null : login.account.members));
    }

    private static Map<String, Object> event(Login.Event event) {
        return answer("id", event.id, "event", event.event, "data", event.data, "received_at", event.receivedAt);
    }

    private static void connect(Map<String, Object> settings) {
        var builder = Signpost.builder(text(settings, "url"), text(settings, "key"));
        builder.app(text(settings, "app")).version(text(settings, "version")).language(text(settings, "language"));
        builder.prefix((String) settings.getOrDefault("prefix", "Acme"));
        builder.profile(object(settings.getOrDefault("profile", Map.of())));
        builder.retries(((Number) settings.getOrDefault("retries", 3)).intValue());
        builder.maxWait(seconds(settings.getOrDefault("max_wait", 30)));
        builder.proxy(text(settings, "proxy"));
        if (settings.containsKey("ca_file")) {
            builder.caFile(Path.of(text(settings, "ca_file")));
        }
        if (settings.containsKey("client_cert_file")) {
            builder.clientCertificate(Path.of(text(settings, "client_cert_file")), Path.of(text(settings, "client_key_file")));
        }
        var offset = ((Number) settings.getOrDefault("clock_offset_ms", 0)).longValue();
        builder.clock(() -> System.currentTimeMillis() + offset);
        if (!"default".equals(settings.get("warnings"))) {
            builder.onWarning("off".equals(settings.get("warnings")) ? (name, value) -> {} : RunVectors::warned);
        }
        client = builder.build().withCredential(text(settings, "credential"));
    }

    private static void warned(String name, String value) {
        synchronized (warnings) {
            warnings.add(List.of(name, value));
        }
    }

    private static Duration seconds(Object number) {
        return Duration.ofNanos((long) (1e9 * ((Number) number).doubleValue()));
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> object(Object value) {
        return (Map<String, Object>) value;
    }

    private static String text(Map<String, Object> object, String name) {
        return (String) object.get(name);
    }

    private static List<Map.Entry<String, Object>> pairs(Object list) {
        var pairs = new ArrayList<Map.Entry<String, Object>>();
        for (var pair : (List<?>) list) {
            pairs.add(Signpost.pair((String) ((List<?>) pair).get(0), ((List<?>) pair).get(1)));
        }
        return pairs;
    }

    private static Map<String, Object> answer(Response response) {
        return answer("status", response.status(), "body", response.body(), "headers", headers(response));
    }

    private static Map<String, Object> headers(Response response) {
        var headers = new LinkedHashMap<String, Object>();
        response.headers().forEach((name, values) -> headers.put(name.toLowerCase(Locale.ROOT), String.join(", ", values)));
        return headers;
    }

    private static Map<String, Object> answer(Object... members) {
        var answer = new LinkedHashMap<String, Object>();
        for (var i = 0; i < members.length; i += 2) {
            answer.put((String) members[i], members[i + 1]);
        }
        return answer;
    }

    private static synchronized void write(Object answer) {
        // In ASCII, as a lone surrogate of a server could otherwise not be written.
        var line = new StringBuilder();
        Json.write(answer).chars().forEach(one -> line.append(one > '~' ? String.format("\\u%04x", one) : String.valueOf((char) one)));
        OUT.println(line);
    }
}
