// Signpost's client for Java 11 or later, in one file: it needs nothing else. Copy it into your project, and add your package.
// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

import static java.nio.charset.StandardCharsets.US_ASCII;
import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Flow;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BiConsumer;
import java.util.function.LongSupplier;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Calls a Signpost gateway: signs a request by its rules, sends exactly what it signed, and logs users in. Threads can share a client.
 * CONTRACT is gateway/protocol/CONTRACT.md. Settings and arguments that cannot be right are an IllegalArgumentException.
 */
public final class Signpost {
    private static final Pattern URL = Pattern.compile("(?i)(https?://(?:\\[[0-9a-f:.]+\\]|[^\\s/?#@:\\[\\]\\\\%]+)(?::[0-9]{1,5})?)/?");
    private static final Pattern PREFIX = Pattern.compile("[A-Za-z][A-Za-z0-9-]{0,31}");
    private static final List<String> CONVENTION_HEADERS = List.of("app", "version", "language", "authorization");
    /** CONTRACT 7: nothing was forwarded, so any call can be repeated. */
    private static final Set<String> NOT_EXECUTED =
            Set.of("request_timeout", "request_replayed", "rate_limited", "no_healthy_backend", "version_brownout");
    /** CONTRACT 7: the call may have been executed. */
    private static final Set<String> PERHAPS_EXECUTED =
            Set.of("internal", "backend_unreachable", "store_unavailable", "backend_timeout", "gateway_stopping");
    /** Values of logins, and what else is secret: the gateway masks them in the text that it signed, too. CONTRACT 7. */
    private static final Pattern SECRET = Pattern.compile("(?i)((?:^|&)(?:(?:(?:(?:access|refresh|id)_)?token|ticket|code(?:_verifier)?|state"
            + "|confirm|authorization|credential|passw(?:or)?d|(?:client_)?secret|api_key)=|[^&=]*=(?=(?:Bearer%20)?[\\w-]{43}(?:&|$))))[^&]+");
    private static final int MAX_PROBLEM_BYTES = 65_536;
    private static final int MAX_RESPONSE_BYTES = 16 << 20;
    /** A day: beyond it, the gateway's clock can as well be wrong. */
    private static final long MAX_CLOCK_ERROR_MILLIS = 86_400_000;
    private static final int CHECK_WAIT_SECONDS = 30;

    private final String origin;
    private final String key;
    private final Rules rules;
    private final String prefix;
    private final Map<String, String> headerNames;
    private final Map<String, String> values;
    private final Duration timeout;
    private final int retries;
    private final Duration maxWait;
    private final BiConsumer<String, String> onWarning;
    private final LongSupplier clock;
    private final HttpClient http;
    private volatile String authorization;
    private volatile long clockOffset;
    private long lastTime; // of the clock, without the offset
    private final Set<String> warned = ConcurrentHashMap.newKeySet();

    private Signpost(Builder settings) {
        var url = URL.matcher(settings.url);
        check(url.matches(), "url must be http:// or https:// with a host and perhaps a port, and nothing else");
        origin = url.group(1);
        var uri = URI.create(origin);
        check(uri.getHost() != null && uri.getPort() <= 65_535, "url has a host or a port that cannot be");
        key = checkKey(settings.key);
        prefix = settings.prefix;
        check(PREFIX.matcher(prefix).matches(), "prefix must be a letter, then at most 31 letters, digits and -");
        headerNames = settings.headerNames;
        headerNames.forEach((one, name) -> {
            check(CONVENTION_HEADERS.contains(one), "header names can have " + String.join(", ", CONVENTION_HEADERS) + ", not " + one);
            HttpRequest.newBuilder(uri).header(name, ""); // It rejects what is no name.
        });
        values = new HashMap<>(settings.values);
        values.forEach(Signpost::checkHeader);
        authorization = values.remove("authorization");
        rules = new Rules(settings.profile);
        timeout = settings.timeout;
        retries = settings.retries;
        maxWait = settings.maxWait;
        onWarning = settings.onWarning;
        clock = settings.clock;
        // By HTTP/1.1, since over HTTP/2 this client lets a POST fail that meets the end of a connection.
        http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).followRedirects(HttpClient.Redirect.NEVER)
                .connectTimeout(settings.connectTimeout).build();
    }

    /** A client of the gateway at an origin, with the application's key, which has no white space around it. */
    public static Builder builder(String url, String key) {
        return new Builder(url, key);
    }

    /** The settings of a client. */
    public static final class Builder {
        private final String url;
        private final String key;
        private String prefix = "Acme";
        private final Map<String, String> values = new HashMap<>();
        private Map<String, ?> profile = Map.of();
        private Map<String, String> headerNames = Map.of();
        private Duration connectTimeout = Duration.ofSeconds(5);
        private Duration timeout = Duration.ofSeconds(65);
        private int retries = 3;
        private Duration maxWait = Duration.ofSeconds(30);
        private BiConsumer<String, String> onWarning = Signpost::logWarning;
        private LongSupplier clock = System::currentTimeMillis;

        private Builder(String url, String key) {
            this.url = url;
            this.key = key;
        }

        /** The application's ident, required in multi-application mode. */
        public Builder app(String app) {
            values.put("app", app);
            return this;
        }

        /** The prefix of the convention headers: Acme if it is not set. */
        public Builder prefix(String prefix) {
            this.prefix = prefix;
            return this;
        }

        public Builder version(String version) {
            values.put("version", version);
            return this;
        }

        public Builder language(String language) {
            values.put("language", language);
            return this;
        }

        /** The user's credential. */
        public Builder authorization(String credential) {
            values.put("authorization", credential);
            return this;
        }

        /** The sign profile: preset, values, layout, empty, leave_out (a list), cover, algorithm. The others override the preset. */
        public Builder profile(Map<String, ?> profile) {
            this.profile = new HashMap<>(profile);
            return this;
        }

        /** Names of the convention headers app, version, language, authorization, in place of those with the prefix. */
        public Builder headerNames(Map<String, String> names) {
            headerNames = Map.copyOf(names);
            return this;
        }

        /** 5 s if it is not set. */
        public Builder connectTimeout(Duration timeout) {
            connectTimeout = timeout;
            return this;
        }

        /** For a whole request and its response: 65 s if it is not set. */
        public Builder timeout(Duration timeout) {
            this.timeout = timeout;
            return this;
        }

        /** How often a call is repeated at most: 3 if it is not set. */
        public Builder retries(int retries) {
            this.retries = retries;
            return this;
        }

        /** The longest pause before a repetition: 30 s if it is not set. */
        public Builder maxWait(Duration maxWait) {
            this.maxWait = maxWait;
            return this;
        }

        /** Gets version_unknown, deprecated or sunset, and a value: each once for a client. The logger signpost if it is not set. */
        public Builder onWarning(BiConsumer<String, String> onWarning) {
            this.onWarning = onWarning;
            return this;
        }

        /** Milliseconds since 1970. */
        public Builder clock(LongSupplier clock) {
            this.clock = clock;
            return this;
        }

        public Signpost build() {
            return new Signpost(this);
        }
    }

    /** A response of status 400 or more. Decide by its code: that never changes. CONTRACT 7. */
    public static final class Problem extends IOException {
        private static final long serialVersionUID = 1;

        public final int status;
        /** Empty if the body is no problem document. What such a document lacks is null. */
        public final String code;
        public final String title;
        public final String detail;
        public final String hint;
        /** The text that the gateway signed: of sign_mismatch only. Below it the message shows the client's. */
        public final String canonical;
        public final String requestId;
        /** Seconds, or null. */
        public final Long retryAfter;
        /** Milliseconds since 1970, or null. */
        public final Long serverTime;

        private Problem(Response response, Map<String, Object> document, String signed) {
            super(describe(response, document, signed));
            status = response.status();
            code = document.isEmpty() ? "" : text(document, "code");
            title = text(document, "title");
            detail = text(document, "detail");
            hint = text(document, "hint");
            canonical = text(document, "canonical");
            requestId = requestId(response, document);
            var after = response.header("Retry-After");
            retryAfter = after != null && after.matches("[0-9]{1,10}") ? Long.valueOf(after) : null;
            var time = document.get("server_time");
            serverTime = time instanceof Long && (Long) time >= 0 && (Long) time < 1L << 53 ? (Long) time : null;
        }

        private static String requestId(Response response, Map<String, Object> document) {
            var id = text(document, "request_id");
            return id != null ? id : response.header("X-Request-Id");
        }

        /** For example: 403 sign_mismatch: TITLE HINT (request REQUEST_ID); in further lines what gateway and client signed. */
        private static String describe(Response response, Map<String, Object> document, String signed) {
            var hint = text(document, "hint");
            return response.status() + part(" ", text(document, "code"), "") + part(": ", text(document, "title"), "")
                    + part(" ", hint != null ? hint : text(document, "detail"), "") + part(" (request ", requestId(response, document), ")")
                    + part("\nthe gateway signed: ", text(document, "canonical"), "\nthis client signed: " + printable(signed));
        }

        private static String part(String before, String text, String after) {
            return text == null ? "" : before + printable(text) + after;
        }
    }

    /** A response of a status below 400. */
    public static final class Response {
        private final HttpResponse<byte[]> response;

        private Response(HttpResponse<byte[]> response) {
            this.response = response;
        }

        public int status() {
            return response.statusCode();
        }

        public HttpHeaders headers() {
            return response.headers();
        }

        /** The first header of a name in any letter case, or null. */
        public String header(String name) {
            return headers().firstValue(name).orElse(null);
        }

        /** The body as UTF-8. */
        public String body() {
            return new String(bytes(), UTF_8);
        }

        public byte[] bytes() {
            return response.body();
        }

        /** The body as JSON: Map, List, String, Long, Double, Boolean or null. Throws IOException if it is none. */
        public Object json() throws IOException {
            return new Json(body()).document();
        }

        private Map<String, Object> object() throws IOException {
            var document = json();
            if (!(document instanceof Map)) {
                throw new IOException("the response is no JSON object");
            }
            @SuppressWarnings("unchecked")
            var object = (Map<String, Object>) document;
            return object;
        }

        /** The problem document, or nothing if it is none. */
        private Map<String, Object> problemDocument() {
            var type = header("Content-Type");
            if (type != null && type.split(";", 2)[0].strip().equalsIgnoreCase("application/problem+json") && bytes().length <= MAX_PROBLEM_BYTES) {
                try {
                    var document = object();
                    return text(document, "code") == null ? Map.of() : document;
                } catch (IOException error) {
                    return Map.of();
                }
            }
            return Map.of();
        }
    }

    /** What a login returns. CONTRACT 8. */
    public static final class LoginResult {
        private final Map<String, Object> members;

        private LoginResult(Map<String, Object> members) {
            this.members = members;
        }

        /** The credential. */
        public String authorization() {
            return text(members, "authorization");
        }

        /** Seconds until the credential expires. */
        public long expiresIn() {
            var seconds = members.get("expires_in");
            return seconds instanceof Long && (Long) seconds >= 0 ? (Long) seconds : 0;
        }

        /** Whether this login created the account. */
        public boolean created() {
            return Boolean.TRUE.equals(members.get("created"));
        }

        /** The account: username, and other members. */
        public Map<?, ?> account() {
            return members.get("account") instanceof Map ? (Map<?, ?>) members.get("account") : Map.of();
        }
    }

    /** A name and a value, not encoded. */
    public static Map.Entry<String, String> pair(String name, String value) {
        check(name != null && value != null, "a name or a value is null");
        return Map.entry(name, value);
    }

    /** Encodes a name or a value by RFC 3986. */
    public static String encode(String text) {
        var encoded = new StringBuilder();
        for (var one : utf8(text, "a name or a value")) {
            if (one >= '0' && one <= '9' || one >= 'A' && one <= 'Z' || one >= 'a' && one <= 'z' || "-._~".indexOf(one) >= 0) {
                encoded.append((char) one);
            } else {
                encoded.append(String.format("%%%02X", one));
            }
        }
        return encoded.toString();
    }

    /**
     * The canonical string of pairs as they are sent, with &lt;APP_KEY&gt; in the key's place. CONTRACT 3. Method and path count only with
     * cover = request.
     */
    public static String canonical(String query, String form, Map<String, ?> profile, String method, String path) {
        return new Rules(profile).canonical(query, form, "<APP_KEY>", method, path);
    }

    /** The signature of pairs as they are sent, in hex. A sign among them is not signed. CONTRACT 3. */
    public static String signature(String query, String form, String key, Map<String, ?> profile, String method, String path) {
        checkKey(key);
        return new Rules(profile).signature(query, form, key, method, path);
    }

    /**
     * The text to send as query or as form: the pairs in their order, then time, unless a pair has that name, then sign. Names can repeat;
     * entrySet() of a map serves, too. The time is in milliseconds since 1970.
     */
    public static String sign(
            Collection<? extends Map.Entry<String, String>> pairs, String key, Map<String, ?> profile, String method, String path, long time) {
        checkKey(key);
        return new Rules(profile).sign(pairs, key, method, path, time);
    }

    /** The user's credential, or null. */
    public String authorization() {
        return authorization;
    }

    /** Sets the user's credential, or removes it by null. Login and logout do so, too. */
    public void authorization(String credential) {
        checkHeader("authorization", credential);
        authorization = credential;
    }

    /** The same; a GET is repeatable, a POST is not. */
    public Response call(String method, String path, Collection<? extends Map.Entry<String, String>> pairs)
            throws IOException, InterruptedException {
        return call(method, path, pairs, "GET".equals(method), timeout);
    }

    /**
     * Signs the pairs and sends them, as query of a GET or form of a POST. Redirects are not followed.
     *
     * @param repeatable whether a repetition does no harm
     * @param timeout for one request and its response
     * @throws Problem for a status of 400 or more. Any other IOException: no usable response. The call was repeated by CONTRACT 10 before.
     */
    public Response call(
            String method, String path, Collection<? extends Map.Entry<String, String>> pairs, boolean repeatable, Duration timeout)
            throws IOException, InterruptedException {
        check("GET".equals(method) || "POST".equals(method), "method must be GET or POST");
        checkPath(path);
        var offset = clockOffset;
        var isCorrected = false;
        for (var repetitions = 0; ; repetitions++) {
            var text = rules.sign(pairs, key, method, path, nextTime() + offset);
            var pause = (long) (500L * (1 << Math.min(repetitions, 20)) * ThreadLocalRandom.current().nextDouble(0.5, 1.5));
            var isRepeated = repeatable;
            IOException failure;
            try {
                var response = send(method, path, text, timeout);
                keepOffset(isCorrected, offset);
                return response;
            } catch (Problem problem) {
                failure = problem;
                var isOutOfWindow = problem.code.equals("time_out_of_window");
                keepOffset(isCorrected && !isOutOfWindow, offset);
                if (isOutOfWindow && !isCorrected && problem.serverTime != null) {
                    offset = problem.serverTime - clockTime();
                    isCorrected = Math.abs(offset) <= MAX_CLOCK_ERROR_MILLIS;
                    if (isCorrected) {
                        repetitions--; // It is not one of the retries.
                        continue;
                    }
                }
                isRepeated = NOT_EXECUTED.contains(problem.code) || repeatable && PERHAPS_EXECUTED.contains(problem.code);
                if (problem.retryAfter != null) {
                    pause = problem.retryAfter * 1000;
                }
            } catch (IOException error) {
                failure = error;
                // Without a connection nothing was sent.
                isRepeated |= error.getCause() instanceof ConnectException || error.getCause() instanceof HttpConnectTimeoutException;
            }
            if (!isRepeated || repetitions >= retries || pause > maxWait.toMillis()) {
                throw failure;
            }
            Thread.sleep(pause);
        }
    }

    /**
     * Logs a user in by polling, and sets the client's credential. CONTRACT 8.
     *
     * @param show gets the address that the user must open, and the code that the user compares
     * @param provider null for the default one
     * @throws Problem of a login that failed, for example login_denied
     */
    public LoginResult login(BiConsumer<String, String> show, String provider) throws IOException, InterruptedException {
        var begun = call("POST", "/login", provider == null ? List.of() : List.of(pair("provider", provider))).object();
        var token = text(begun, "token");
        var authorizeUrl = text(begun, "authorize_url");
        if (token == null || authorizeUrl == null) {
            throw new IOException("POST /login: the response has no token: is this version a login service?");
        }
        if (!authorizeUrl.matches("https?://.*+") || !printable(authorizeUrl).equals(authorizeUrl)) {
            throw new IOException("POST /login: malformed response: authorize_url is no address");
        }
        var userCode = text(begun, "user_code");
        show.accept(authorizeUrl, userCode == null ? null : printable(userCode));
        var interval = nanoseconds(begun, "interval", 2, 60);
        var end = System.nanoTime() + nanoseconds(begun, "expires_in", 600, 3600);
        var check = List.of(pair("token", token), pair("wait", String.valueOf(CHECK_WAIT_SECONDS)));
        while (System.nanoTime() - end < 0) {
            var start = System.nanoTime();
            var checked = call("POST", "/check", check, true, Duration.ofSeconds(CHECK_WAIT_SECONDS + 10)).object();
            if (!"pending".equals(checked.get("status"))) {
                break;
            }
            if (System.nanoTime() - start < TimeUnit.SECONDS.toNanos(CHECK_WAIT_SECONDS) / 2) {
                TimeUnit.NANOSECONDS.sleep(Math.min(interval, end - System.nanoTime()));
            }
        }
        var result = new LoginResult(call("POST", "/user/login", List.of(pair("token", token)), true, timeout).object());
        if (result.authorization() == null) {
            throw new IOException("POST /user/login: the response has no credential");
        }
        authorization(result.authorization());
        return result;
    }

    /** Ends the login, and forgets the credential. */
    public void logout() throws IOException, InterruptedException {
        call("POST", "/user/logout", List.of());
        authorization = null;
    }

    /** The account of the user who is logged in. */
    public Map<String, Object> user() throws IOException, InterruptedException {
        return call("GET", "/user", List.of()).object();
    }

    /** Stores an event with the account. Data and key can be null. It is repeatable only with an idempotency key. */
    public Map<String, Object> sendEvent(String event, String data, String idempotencyKey) throws IOException, InterruptedException {
        var pairs = new ArrayList<>(List.of(pair("event", event)));
        if (data != null) {
            pairs.add(pair("data", data));
        }
        if (idempotencyKey != null) {
            pairs.add(pair("idempotency_key", idempotencyKey));
        }
        return call("POST", "/event/send", pairs, idempotencyKey != null, timeout).object();
    }

    private Response send(String method, String path, String text, Duration timeout) throws IOException, InterruptedException {
        var request = HttpRequest.newBuilder().timeout(timeout).header("Accept", "application/json").header("User-Agent", "signpost-java");
        if (method.equals("GET")) {
            request.uri(URI.create(origin + path + "?" + text));
        } else {
            request.uri(URI.create(origin + path)).header("Content-Type", "application/x-www-form-urlencoded")
                    .POST(HttpRequest.BodyPublishers.ofByteArray(text.getBytes(US_ASCII)));
        }
        for (var one : CONVENTION_HEADERS) {
            var value = one.equals("authorization") ? authorization : values.get(one);
            if (value != null && !value.isEmpty()) {
                request.setHeader(headerName(one), value);
            }
        }
        // The request's own timeout ends with the head of the response.
        var future = http.sendAsync(request.build(), head -> new BoundedBody());
        Response response;
        try {
            response = new Response(future.get(timeout.toMillis(), TimeUnit.MILLISECONDS));
        } catch (ExecutionException error) {
            throw failure(method, path, error.getCause());
        } catch (TimeoutException error) {
            throw failure(method, path, new HttpTimeoutException("no response in time"));
        } finally {
            future.cancel(true);
        }
        warn(response);
        if (response.status() >= 400) {
            throw new Problem(response, response.problemDocument(), signed(method, path, text));
        }
        return response;
    }

    private static IOException failure(String method, String path, Throwable cause) {
        var message = cause.getMessage() != null ? cause.getMessage() : cause.getClass().getSimpleName();
        return new IOException(method + " " + path + ": " + message, cause);
    }

    private String headerName(String one) {
        var name = headerNames.get(one);
        return name != null ? name : prefix + "-X-" + one.substring(0, 1).toUpperCase(Locale.ROOT) + one.substring(1);
    }

    /** A time of the clock that no other request of this client has: two equal requests with one time would have one signature. */
    private synchronized long nextTime() {
        lastTime = Math.max(clock.getAsLong(), lastTime + 1);
        return lastTime;
    }

    /** The clock's time. If the clock was set back, the times go on from it; those of other threads are only a little ahead. */
    private synchronized long clockTime() {
        var now = clock.getAsLong();
        lastTime = lastTime - now >= 1000 ? now : lastTime;
        return now;
    }

    /** Keeps a correction for later calls, once the gateway took the time of a request. */
    private void keepOffset(boolean isTaken, long offset) {
        if (isTaken) {
            clockOffset = offset;
        }
    }

    /** What the client signed, as the gateway shows it: without key and secret values, at most 2 KiB. CONTRACT 7. */
    private String signed(String method, String path, String text) {
        var masked = SECRET.matcher(text).replaceAll("$1***").replace(encode(key), "***");
        return String.format("%.2048s", rules.canonical("", masked, "<APP_KEY>", method, path));
    }

    private static void logWarning(String name, String value) {
        var said = name.equals("version_unknown") ? value + " served, not the version asked for" : value;
        System.getLogger("signpost").log(System.Logger.Level.WARNING, printable("signpost: " + name + ": " + said));
    }

    private void warn(Response response) {
        var asked = values.get("version");
        var served = response.header(headerName("version"));
        var isOther = asked != null && served != null && !asked.isBlank() && !asked.strip().equalsIgnoreCase(served);
        if (isOther || "unknown".equals(response.header(prefix + "-X-Version-Source"))) {
            warn("version_unknown", served);
        }
        warn("deprecated", response.header("Deprecation"));
        warn("sunset", response.header("Sunset"));
    }

    private void warn(String name, String value) {
        if (value != null && warned.add(name)) {
            onWarning.accept(name, value);
        }
    }

    private static void check(boolean isRight, String otherwise) {
        if (!isRight) {
            throw new IllegalArgumentException(otherwise);
        }
    }

    private static String checkKey(String key) {
        utf8(key, "key");
        check(!key.isEmpty() && key.strip().equals(key), "key is empty, or has white space at an end, perhaps the line break of its file: strip it");
        return key;
    }

    private static void checkHeader(String name, String value) {
        check(value == null || value.chars().allMatch(one -> one >= ' ' && one <= '~'), name + " must be printable ASCII: it is sent as a header");
    }

    /** Without a group that is repeated: its recursion would exhaust the stack. */
    private static void checkPath(String path) {
        var escapesRemoved = path.replaceAll("%[0-9A-Fa-f]{2}", "");
        var isEncoded = escapesRemoved.matches("[A-Za-z0-9\\-._~!$&'()*+,;=:@/]*");
        check(path.startsWith("/") && isEncoded, "path must begin with /, be encoded, and have no query");
        for (var segment : path.replaceAll("%2[Ee]", ".").split("/")) {
            check(!segment.equals(".") && !segment.equals(".."), "path must have no segment . or ..");
        }
    }

    private static byte[] utf8(String text, String what) {
        check(text != null, what + " is null");
        try {
            var encoded = UTF_8.newEncoder().encode(CharBuffer.wrap(text));
            return Arrays.copyOf(encoded.array(), encoded.limit());
        } catch (CharacterCodingException error) {
            throw new IllegalArgumentException(what + " has a lone surrogate, so it is no text");
        }
    }

    /** With spaces for control and format characters and separators of lines: it can reach a terminal or a log. CONTRACT 7. */
    private static String printable(String text) {
        return text.replaceAll("[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}&&[^\\u200C\\u200D]]", " ");
    }

    private static String text(Map<String, Object> document, String name) {
        return document.get(name) instanceof String ? (String) document.get(name) : null;
    }

    /** Reads a number of seconds, and takes at least 1 and at most max. */
    private static long nanoseconds(Map<String, Object> document, String name, long otherwise, long max) {
        var value = document.get(name);
        var seconds = value instanceof Number ? ((Number) value).longValue() : otherwise;
        return TimeUnit.SECONDS.toNanos(Math.max(1, Math.min(seconds, max)));
    }

    /** A sign profile, complete. CONTRACT 3. */
    private static final class Rules {
        private static final Map<String, List<String>> ALLOWED = Map.of(
                "preset", List.of("plain", "decoded", "bilibili", "alipay", "wechat", "top"),
                "values", List.of("wire", "decoded"),
                "layout", List.of("pairs", "pairs-key", "concat", "concat-both"),
                "empty", List.of("keep", "drop"),
                "cover", List.of("parameters", "request"),
                "algorithm", List.of("md5", "hmac-sha256"));
        private static final Map<String, Map<String, ?>> PRESETS = Map.of(
                "plain", Map.of(),
                "decoded", Map.of("values", "decoded"),
                "bilibili", Map.of(),
                "alipay", Map.of("values", "decoded", "empty", "drop", "leave_out", List.of("sign_type")),
                "wechat", Map.of("values", "decoded", "empty", "drop", "layout", "pairs-key"),
                "top", Map.of("values", "decoded", "empty", "drop", "layout", "concat-both"));

        private final boolean isDecoded;
        private final boolean isEmptyDropped;
        private final boolean isRequestCovered;
        private final boolean isHmac;
        private final String layout;
        private final List<?> leaveOut;

        Rules(Map<String, ?> profile) {
            profile.forEach(Rules::check);
            var members = new HashMap<String, Object>(PRESETS.get(profile.containsKey("preset") ? profile.get("preset") : "plain"));
            members.putAll(profile);
            isDecoded = "decoded".equals(members.get("values"));
            isEmptyDropped = "drop".equals(members.get("empty"));
            isRequestCovered = "request".equals(members.get("cover"));
            isHmac = "hmac-sha256".equals(members.get("algorithm"));
            layout = (String) members.getOrDefault("layout", "pairs");
            leaveOut = (List<?>) members.getOrDefault("leave_out", List.of());
        }

        private static void check(String name, Object value) {
            if (name.equals("leave_out")) {
                var list = value instanceof List ? (List<?>) value : List.of("");
                var areNames = list.stream().allMatch(one -> one instanceof String && !Set.of("", "time").contains(one));
                Signpost.check(areNames, "profile: leave_out must be a list of names, without time");
                return;
            }
            var allowed = ALLOWED.get(name);
            Signpost.check(allowed != null, "profile can have preset, values, layout, empty, leave_out, cover, algorithm, not " + name);
            Signpost.check(value instanceof String && allowed.contains(value), "profile: " + name + " must be one of " + String.join(", ", allowed));
        }

        String sign(Collection<? extends Map.Entry<String, String>> pairs, String key, String method, String path, long time) {
            Signpost.check(pairs != null, "pairs is null");
            var parts = new ArrayList<String>();
            for (var pair : pairs) {
                Signpost.check(!"sign".equals(pair.getKey()), "a pair is named sign: the client adds it");
                parts.add(encode(pair.getKey()) + "=" + encode(pair.getValue()));
            }
            if (pairs.stream().noneMatch(pair -> pair.getKey().equals("time"))) {
                parts.add("time=" + time);
            }
            var text = String.join("&", parts);
            return text + "&sign=" + signature("", text, key, method, path);
        }

        String signature(String query, String form, String key, String method, String path) {
            var text = utf8(canonical(query, form, key, method, path), "query or form");
            try {
                byte[] hash;
                if (isHmac) {
                    var mac = Mac.getInstance("HmacSHA256");
                    mac.init(new SecretKeySpec(utf8(key, "key"), "HmacSHA256"));
                    hash = mac.doFinal(text);
                } else {
                    hash = MessageDigest.getInstance("MD5").digest(text);
                }
                var hex = new StringBuilder();
                for (var one : hash) {
                    hex.append(String.format("%02x", one));
                }
                return hex.toString();
            } catch (GeneralSecurityException error) {
                throw new IllegalStateException("this JVM has no " + (isHmac ? "HMAC-SHA-256" : "MD5"), error);
            }
        }

        String canonical(String query, String form, String key, String method, String path) {
            Signpost.check(!isRequestCovered || !method.isEmpty() && !path.isEmpty(), "the profile covers the request: method and path are needed");
            var signed = new ArrayList<String[]>(); // decoded name, then name and value as in the string
            for (var sent : (query + "&" + form).split("&")) {
                var parts = sent.split("=", 2);
                var value = parts.length == 2 ? parts[1] : "";
                var name = decode(parts[0]);
                var decodedValue = decode(value);
                if (!sent.isEmpty() && !name.equals("sign") && !leaveOut.contains(name) && !(isEmptyDropped && value.isEmpty())) {
                    signed.add(isDecoded ? new String[] {name, name, decodedValue} : new String[] {name, parts[0], value});
                }
            }
            // By the bytes of the decoded name, unlike compareTo. Pairs of one name keep their order.
            signed.sort(Comparator.comparing(pair -> pair[0].getBytes(UTF_8), Arrays::compareUnsigned));
            var isConcat = layout.startsWith("concat");
            var parts = signed.stream().map(pair -> pair[1] + (isConcat ? "" : "=") + pair[2]).collect(Collectors.toCollection(ArrayList::new));
            var isKeyLabelled = layout.equals("pairs-key");
            if (isKeyLabelled) {
                parts.add("key=" + key);
            }
            var text = String.join(isConcat ? "" : "&", parts);
            if (!isHmac && !isKeyLabelled) {
                text = (layout.equals("concat-both") ? key : "") + text + key;
            }
            return isRequestCovered ? method + "\n" + path + "\n" + text : text;
        }

        private static String decode(String sent) {
            var bytes = utf8(sent, "query or form");
            var decoded = new ByteArrayOutputStream();
            for (var i = 0; i < bytes.length; i++) {
                if (bytes[i] == '%') {
                    var high = i + 2 < bytes.length ? Character.digit(bytes[i + 1], 16) : -1;
                    var low = i + 2 < bytes.length ? Character.digit(bytes[i + 2], 16) : -1;
                    Signpost.check(high >= 0 && low >= 0, "query or form has a % without two hex digits");
                    decoded.write(16 * high + low);
                    i += 2;
                } else {
                    decoded.write(bytes[i] == '+' ? ' ' : bytes[i]);
                }
            }
            try {
                return UTF_8.newDecoder().decode(ByteBuffer.wrap(decoded.toByteArray())).toString();
            } catch (CharacterCodingException error) {
                throw new IllegalArgumentException("query or form is not UTF-8 once decoded");
            }
        }
    }

    /** The whole body, of at most 16 MiB. */
    private static final class BoundedBody implements HttpResponse.BodySubscriber<byte[]> {
        private final HttpResponse.BodySubscriber<byte[]> whole = HttpResponse.BodySubscribers.ofByteArray();
        private Flow.Subscription subscription;
        private long bytes;

        @Override
        public CompletionStage<byte[]> getBody() {
            return whole.getBody();
        }

        @Override
        public void onSubscribe(Flow.Subscription subscription) {
            this.subscription = subscription;
            whole.onSubscribe(subscription);
        }

        @Override
        public void onNext(List<ByteBuffer> parts) {
            bytes += parts.stream().mapToLong(ByteBuffer::remaining).sum();
            if (bytes <= MAX_RESPONSE_BYTES) {
                whole.onNext(parts);
            } else {
                subscription.cancel();
                onError(new IOException("the response has more than 16 MiB"));
            }
        }

        @Override
        public void onError(Throwable error) {
            whole.onError(error);
        }

        @Override
        public void onComplete() {
            whole.onComplete();
        }
    }

    /** Reads a JSON document of at most 64 levels. Throws IOException if it is none. */
    static final class Json {
        private static final Pattern NUMBER = Pattern.compile("-?(?:0|[1-9][0-9]*+)(\\.[0-9]++)?+([eE][+-]?[0-9]++)?+");
        private static final Pattern HEX = Pattern.compile("[0-9A-Fa-f]{4}");
        private final String text;
        private int at;

        Json(String text) {
            this.text = text;
        }

        Object document() throws IOException {
            var value = value(0);
            next();
            expect(at == text.length());
            return value;
        }

        private Object value(int depth) throws IOException {
            expect(depth <= 64);
            switch (next()) {
                case '{':
                    var object = new LinkedHashMap<String, Object>();
                    for (at++; next() != '}'; ) {
                        expect(object.isEmpty() || take(','));
                        expect(next() == '"');
                        var name = string();
                        expect(next() == ':' && take(':'));
                        object.put(name, value(depth + 1));
                    }
                    at++;
                    return object;
                case '[':
                    var list = new ArrayList<Object>();
                    for (at++; next() != ']'; ) {
                        expect(list.isEmpty() || take(','));
                        list.add(value(depth + 1));
                    }
                    at++;
                    return list;
                case '"':
                    return string();
                case 't':
                    return word("true", Boolean.TRUE);
                case 'f':
                    return word("false", Boolean.FALSE);
                case 'n':
                    return word("null", null);
                default:
                    return number();
            }
        }

        private String string() throws IOException {
            var string = new StringBuilder();
            for (at++; !take('"'); ) {
                var one = peek();
                expect(one >= ' ');
                at++;
                if (one == '\\') {
                    var escape = peek();
                    at++;
                    var simple = "\"\\/bfnrt".indexOf(escape);
                    if (simple >= 0) {
                        one = "\"\\/\b\f\n\r\t".charAt(simple);
                    } else {
                        expect(escape == 'u' && HEX.matcher(text).region(at, text.length()).lookingAt());
                        one = (char) Integer.parseInt(text.substring(at, at + 4), 16);
                        at += 4;
                    }
                }
                string.append(one);
            }
            return string.toString();
        }

        private Number number() throws IOException {
            var number = NUMBER.matcher(text).region(at, text.length());
            expect(number.lookingAt());
            at = number.end();
            if (number.group(1) == null && number.group(2) == null && number.group().length() <= 18) {
                return Long.valueOf(number.group());
            }
            return Double.valueOf(number.group());
        }

        private Object word(String word, Object value) throws IOException {
            expect(text.startsWith(word, at));
            at += word.length();
            return value;
        }

        /** The next character that is no white space, or 0 at the end. */
        private char next() {
            while (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r') {
                at++;
            }
            return peek();
        }

        private char peek() {
            return at < text.length() ? text.charAt(at) : 0;
        }

        private boolean take(char expected) {
            var isTaken = peek() == expected;
            at += isTaken ? 1 : 0;
            return isTaken;
        }

        private static void expect(boolean isJson) throws IOException {
            if (!isJson) {
                throw new IOException("the response is no JSON, or has more than 64 levels");
            }
        }
    }
}
