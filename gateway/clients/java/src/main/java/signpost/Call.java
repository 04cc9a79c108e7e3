// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

package signpost;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static signpost.Text.check;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.ConnectException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.DigestInputStream;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import javax.net.ssl.SSLHandshakeException;

/** A call: all that belongs to it, and how it is sent. Settings that it lacks are the client's. One thread makes it; it can be sent again. */
public final class Call {
    private static final Set<String> METHODS = Set.of("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE");
    /** CONTRACT 7: nothing was forwarded, so any call can be repeated. */
    private static final Set<String> NOT_EXECUTED =
            Set.of("request_timeout", "request_replayed", "rate_limited", "no_healthy_backend", "version_brownout", "spool_full");
    /** CONTRACT 7: the call may have been executed. */
    private static final Set<String> PERHAPS_EXECUTED =
            Set.of("internal", "backend_unreachable", "store_unavailable", "backend_timeout", "gateway_stopping");
    /** Values of logins, and what else is secret: the gateway masks them in the text that it signed, too. CONTRACT 7. */
    private static final Pattern SECRET = Pattern.compile("(?i)((?:^|[&?])(?:(?:(?:(?:access|refresh|id)_)?token|ticket|code(?:_verifier)?|state"
            + "|confirm|authorization|credential|passw(?:or)?d|(?:client_)?secret|api_key)=|[^&=]*=(?=(?:Bearer%20)?[\\w-]{43}(?:[&\n]|$))))[^&\n]+");
    /** The client writes these itself. */
    private static final Set<String> OWN_HEADERS =
            Set.of("host", "connection", "content-length", "content-type", "expect", "te", "trailer", "transfer-encoding", "upgrade");
    private static final SecureRandom RANDOM = new SecureRandom();
    /** A day: beyond it, the gateway's clock can as well be wrong. */
    private static final long MAX_CLOCK_ERROR_MILLIS = 86_400_000;

    private final Signpost client;
    private final Signpost.Shared shared;
    private final String method;
    private final String path;
    private final List<Map.Entry<String, Object>> pairs = new ArrayList<>();
    private final Map<String, String> headers = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    private final Map<String, String> values;
    private Transport.Source body;
    private String contentType;
    private Duration timeout;
    private boolean isRepeatable;
    private Long limit;

    Call(Signpost client, String method, String path) {
        check(method != null && METHODS.contains(method), "method must be GET, HEAD, POST, PUT, PATCH or DELETE");
        this.client = client;
        shared = client.shared;
        this.method = method;
        this.path = Text.checkPath(path);
        values = new HashMap<>(client.values);
        timeout = client.timeout;
        isRepeatable = !method.equals("POST") && !method.equals("PATCH");
    }

    /** Adds a pair: a text, number or boolean, or a list of these, which repeats the name. */
    public Call pair(String name, Object value) { pairs.add(Signpost.pair(name, value)); return this; }

    /** Adds pairs: of a GET, a HEAD, a DELETE or beside another body, they are the query; otherwise the form. */
    public Call pairs(Collection<? extends Map.Entry<String, ?>> pairs) {
        check(pairs != null, "pairs is null");
        pairs.forEach(pair -> pair(pair.getKey(), pair.getValue()));
        return this;
    }

    /** A body of maps, collections, texts, numbers, booleans or null. As any body that is no form, it needs a signature in headers. */
    public Call json(Object value) { return body(Text.utf8(Json.write(value), "json"), "application/json"); }
    public Call body(byte[] bytes, String contentType) { return body(() -> new ByteArrayInputStream(bytes), contentType); }
    /** A file, which is read twice: to be hashed, and to be sent. */
    public Call body(Path file, String contentType) { return body(() -> Files.newInputStream(file), contentType); }

    public Call body(Transport.Source body, String contentType) {
        check(contentType != null && !contentType.isEmpty(), "the body has no content type");
        check(!isRead(), "a GET or HEAD has no body");
        this.body = body;
        this.contentType = Text.checkHeader("content type", contentType);
        return this;
    }

    public Call header(String name, String value) {
        Text.checkHeaderName(name);
        check(value != null, "the header " + name + " is null");
        check(!OWN_HEADERS.contains(name.toLowerCase(Locale.ROOT)) && !shared.isOwnHeader(name), "the client writes the header " + name + " itself");
        headers.put(name, Text.checkHeader(name, value));
        return this;
    }

    /** The user's credential; null for none. */
    public Call credential(String credential) { return value("authorization", credential); }
    public Call version(String version) { return value("version", version); }
    public Call language(String language) { return value("language", language); }
    private Call value(String name, String value) { values.put(name, Text.checkHeader(name, value)); return this; }

    /** For the whole call, with repetitions and pauses. Of a stream: until its head, and then for each read. */
    public Call timeout(Duration timeout) { this.timeout = timeout; return this; }
    /** Whether a repetition does no harm: of a GET or HEAD it does none, unless you say so. */
    public Call repeatable(boolean isRepeatable) { this.isRepeatable = isRepeatable; return this; }
    /** Sent as Idempotency-Key, by which the API tells a repetition. So the call is repeatable. */
    public Call idempotencyKey(String key) { return key == null ? this : header("Idempotency-Key", key).repeatable(true); }
    /** The most bytes of a response's body: 16 MiB if it is not set, without a limit of a stream. */
    public Call limit(long bytes) { limit = bytes; return this; }

    /**
     * Sends the call, and returns the whole response. Redirects are not followed. Interrupting the thread ends it.
     *
     * @throws StatusException for a status of 400 or more. Any other IOException: no usable response. The call was repeated by CONTRACT 10 before.
     */
    public Response send() throws IOException, InterruptedException { return run(false); }

    /** The same in a thread of its own. Cancelling the future ends the call. */
    public CompletableFuture<Response> sendAsync() {
        var future = new CompletableFuture<Response>();
        var task = TimedBody.THREADS.submit(() -> {
            try {
                future.complete(send());
            } catch (Throwable error) {
                future.completeExceptionally(error);
            }
        });
        future.whenComplete((response, error) -> {
            if (future.isCancelled()) {
                task.cancel(true);
            }
        });
        return future;
    }

    /** Sends the call, and returns the response once its head has arrived: read {@link Response#stream}, and close it. */
    public Response stream() throws IOException, InterruptedException { return run(true); }

    /** Sends the call, and returns server-sent events as they arrive. */
    public ServerEvents events() throws IOException, InterruptedException {
        headers.putIfAbsent("Accept", "text/event-stream");
        return new ServerEvents(stream());
    }

    private boolean isRead() { return method.equals("GET") || method.equals("HEAD"); }

    private Response run(boolean isStream) throws IOException, InterruptedException {
        var draft = new Draft();
        check(!timeout.isNegative() && !timeout.isZero() && timeout.toDays() < 36_500, "timeout must be above 0, and below 100 years");
        var nanos = timeout.toNanos();
        var end = System.nanoTime() + nanos;
        var offset = shared.clockOffset;
        var isCorrected = false;
        for (var repetitions = 0; ; repetitions++) {
            var pause = (long) (500L * (1 << Math.min(repetitions, 20)) * ThreadLocalRandom.current().nextDouble(0.5, 1.5));
            var isRepeated = isRepeatable;
            IOException failure;
            try {
                var response = attempt(draft, shared.nextTime() + offset, end, isStream ? nanos : 0);
                shared.keepOffset(isCorrected, offset);
                return response;
            } catch (StatusException problem) {
                failure = problem;
                var isOutOfWindow = problem.code.equals("time_out_of_window");
                shared.keepOffset(isCorrected && !isOutOfWindow, offset);
                if (isOutOfWindow && !isCorrected && problem.serverTime != null) {
                    offset = problem.serverTime - shared.clockTime();
                    isCorrected = Math.abs(offset) <= MAX_CLOCK_ERROR_MILLIS;
                    if (isCorrected) {
                        shared.warn("clock_off", (Math.abs(offset) + 500) / 1000 + (offset > 0 ? " s behind" : " s ahead"));
                        repetitions--; // It is not one of the retries.
                        continue;
                    }
                }
                var isPaused = problem.code.isEmpty() && problem.retryAfter != null && (problem.status == 429 || problem.status == 503);
                isRepeated = NOT_EXECUTED.contains(problem.code) || isRepeatable && (isPaused || PERHAPS_EXECUTED.contains(problem.code));
                if (problem.retryAfter != null) {
                    pause = problem.retryAfter * 1000;
                }
            } catch (Response.LimitException error) {
                throw error;
            } catch (IOException error) {
                failure = error;
                // Without a connection nothing was sent. A certificate does not change.
                isRepeated = error.getCause() instanceof ConnectException || isRepeated && !(error.getCause() instanceof SSLHandshakeException);
            }
            var isInTime = pause <= shared.maxWait.toMillis() && TimeUnit.MILLISECONDS.toNanos(pause) < end - System.nanoTime();
            if (!isRepeated || repetitions >= shared.retries || !isInTime) {
                throw failure;
            }
            Thread.sleep(pause);
        }
    }

    private Response attempt(Draft draft, long time, long end, long readNanos) throws IOException, InterruptedException {
        var text = draft.sign(time);
        try {
            var uri = URI.create(shared.origin + draft.target);
            var reply = shared.transport.send(
                    new Transport.Request(method, uri, new TreeMap<>(draft.headers), draft.body, draft.length, isRepeatable, end, readNanos));
            var isWhole = readNanos == 0 || reply.status >= 400;
            var response = new Response(reply, limit != null && reply.status < 400 ? limit : isWhole ? 16 << 20 : Long.MAX_VALUE);
            shared.warn(response, values.get("version"));
            if (isWhole) {
                response.readWhole();
            }
            if (reply.status >= 400) {
                throw new StatusException(response, text);
            }
            return response;
        } catch (StatusException | Response.LimitException error) {
            throw error;
        } catch (IOException error) {
            if (Thread.interrupted()) {
                throw new InterruptedException();
            }
            var otherwise = error instanceof ConnectException ? "no connection could be established" : error.getClass().getSimpleName();
            var message = error.getMessage() != null ? error.getMessage() : otherwise;
            throw new IOException(method + " " + path + ": " + message, error);
        }
    }

    /** What is sent. Time and signature are new for each attempt. */
    private final class Draft {
        final TreeMap<String, String> headers = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        Transport.Source body = Call.this.body;
        long length;
        String target = path;
        private final boolean isInQuery = body != null || isRead() || method.equals("DELETE");
        private final boolean isInHeaders;
        private String hash;

        Draft() throws IOException {
            var carrier = shared.profile.carrier;
            var isPairs = body == null && !pairs.isEmpty() && (method.equals("GET") || method.equals("POST"));
            isInHeaders = carrier.equals("headers") || carrier.equals("both") && !isPairs;
            check(isInHeaders || body == null,
                    "a body that is no form needs a signature in headers: set the profile's carrier to headers or both, as the application has it");
            headers.putAll(Map.of("Accept", "application/json", "User-Agent", "signpost-java/0.9.0"));
            headers.putAll(Call.this.headers);
            var all = new HashMap<>(values);
            if (!values.containsKey("authorization") && client.store != null) {
                all.put("authorization", Text.checkHeader("authorization", client.store.load()));
            }
            all.forEach((one, value) -> {
                if (value != null && !value.isEmpty()) {
                    headers.put(shared.headerName(one), value);
                }
            });
            if (isInHeaders) {
                place(String.join("&", SignProfile.encode(pairs)));
                hashBody();
            }
            if (body != null && contentType != null) {
                headers.put("Content-Type", contentType);
            }
        }

        /** Signs, and returns the text that was signed, as the gateway shows it: without key and secret values, at most 2 KiB. CONTRACT 7. */
        String sign(long time) {
            String signed;
            if (isInHeaders) {
                var nonce = new byte[16];
                RANDOM.nextBytes(nonce);
                var lines = List.of(method, target, String.valueOf(time), SignProfile.hex(nonce), hash);
                headers.put(shared.prefix + "-X-Time", lines.get(2));
                headers.put(shared.prefix + "-X-Nonce", lines.get(3));
                headers.put(shared.prefix + "-X-Sign", shared.profile.headSignature(lines, shared.key));
                signed = masked(shared.profile.headText(lines, "<APP_KEY>"));
            } else {
                var text = shared.profile.sign(pairs, shared.key, method, path, time);
                place(text);
                signed = shared.profile.canonical("", masked(text), "<APP_KEY>", method, path);
            }
            return String.format("%.2048s", signed);
        }

        private String masked(String text) { return SECRET.matcher(text).replaceAll("$1***").replace(SignProfile.encode(shared.key), "***"); }

        /** Puts pairs into the query or the form. */
        private void place(String text) {
            if (isInQuery) {
                target = text.isEmpty() ? path : path + "?" + text;
            } else if (!text.isEmpty()) {
                var bytes = text.getBytes(US_ASCII);
                body = () -> new ByteArrayInputStream(bytes);
                length = bytes.length;
                headers.put("Content-Type", "application/x-www-form-urlencoded");
            }
        }

        private void hashBody() throws IOException {
            var digest = SignProfile.digest("SHA-256");
            if (body != null) {
                try (var stream = new DigestInputStream(body.open(), digest)) {
                    length = stream.transferTo(OutputStream.nullOutputStream());
                }
            }
            hash = SignProfile.hex(digest.digest());
        }
    }
}
