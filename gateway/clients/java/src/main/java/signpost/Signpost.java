// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

package signpost;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static signpost.Text.check;
import static signpost.Text.printable;

import java.io.IOException;
import java.net.SocketTimeoutException;
import java.net.URI;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.AbstractMap.SimpleImmutableEntry;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import java.util.function.LongSupplier;
import java.util.logging.Logger;
import java.util.regex.Pattern;

/**
 * Calls a Signpost gateway: signs a request by its rules, sends exactly what it signed, and logs users in. It cannot be changed, and threads can
 * share it. CONTRACT is gateway/protocol/CONTRACT.md. Settings and arguments that cannot be right are an IllegalArgumentException.
 */
public final class Signpost {
    private static final int CHECK_WAIT_SECONDS = 30;

    final Shared shared;
    final Map<String, String> values;
    final Duration timeout;
    final CredentialStore store;

    private Signpost(Shared shared, Map<String, String> values, Duration timeout, CredentialStore store) {
        this.shared = shared;
        this.values = values;
        this.timeout = timeout;
        this.store = store;
    }

    /** A client of the gateway at an origin, with the application's key, which has no white space around it. */
    public static Builder builder(String url, String key) { return new Builder(url, key); }

    /** Keeps one user's credential. */
    public interface CredentialStore {
        /** Null without one. */
        String load() throws IOException;

        void save(String credential) throws IOException;

        void clear() throws IOException;
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
        private BiConsumer<String, String> onWarning = Shared::logWarning;
        private LongSupplier clock = System::currentTimeMillis;
        private String proxy;
        private Path caFile;
        private Path certificateFile;
        private Path keyFile;
        private Transport transport;

        private Builder(String url, String key) {
            this.url = url;
            this.key = key;
        }

        /** The application's ident, required in multi-application mode. */
        public Builder app(String app) { values.put("app", app); return this; }
        /** The prefix of the convention headers: Acme if it is not set. */
        public Builder prefix(String prefix) { this.prefix = prefix; return this; }
        public Builder version(String version) { values.put("version", version); return this; }
        public Builder language(String language) { values.put("language", language); return this; }
        /** The sign profile: preset, carrier, values, layout, empty, leave_out (a list), cover, algorithm. The others override the preset. */
        public Builder profile(Map<String, ?> profile) { this.profile = new HashMap<>(profile); return this; }
        /** Names of the convention headers app, version, language, authorization, in place of those with the prefix. */
        public Builder headerNames(Map<String, String> names) { headerNames = Map.copyOf(names); return this; }
        /** 5 s if it is not set. */
        public Builder connectTimeout(Duration timeout) { connectTimeout = timeout; return this; }
        /** For a whole call, with repetitions and pauses: 65 s if it is not set. */
        public Builder timeout(Duration timeout) { this.timeout = timeout; return this; }
        /** How often a call is repeated at most: 3 if it is not set. */
        public Builder retries(int retries) { this.retries = retries; return this; }
        /** The longest pause before a repetition: 30 s if it is not set. */
        public Builder maxWait(Duration maxWait) { this.maxWait = maxWait; return this; }
        /** Gets version_unknown, deprecated, sunset or clock_off, and a value: each once. The logger signpost if it is not set. */
        public Builder onWarning(BiConsumer<String, String> onWarning) { this.onWarning = onWarning; return this; }
        /** Milliseconds since 1970. */
        public Builder clock(LongSupplier clock) { this.clock = clock; return this; }
        /** For example http://127.0.0.1:3128, or an empty text for none. HTTPS_PROXY, HTTP_PROXY and NO_PROXY if it is not set. */
        public Builder proxy(String proxy) { this.proxy = proxy; return this; }
        /** PEM: the only authorities that are trusted. Those of the JVM if it is not set. */
        public Builder caFile(Path file) { caFile = file; return this; }

        /** PEM: the client's certificate with its chain, and its key (PKCS #8). */
        public Builder clientCertificate(Path certificateFile, Path keyFile) {
            this.certificateFile = certificateFile;
            this.keyFile = keyFile;
            return this;
        }

        /** Your own, in place of proxy, TLS and timeout to connect. */
        public Builder transport(Transport transport) { this.transport = transport; return this; }

        public Signpost build() {
            values.values().removeIf(value -> value == null || value.isEmpty());
            values.forEach(Text::checkHeader);
            return new Signpost(new Shared(this), Map.copyOf(values), timeout, null);
        }
    }

    /** What copies of a client share. */
    static final class Shared {
        private static final Pattern URL = Pattern.compile("(?i)(https?://(?:\\[[0-9a-f:.]+\\]|[^\\s/?#@:\\[\\]\\\\%]+)(?::[0-9]{1,5})?)/?");
        private static final Pattern PREFIX = Pattern.compile("[A-Za-z][A-Za-z0-9-]{0,31}");
        private static final List<String> CONVENTION_HEADERS = List.of("app", "version", "language", "authorization");

        final String origin;
        final String key;
        final SignProfile profile;
        final String prefix;
        final int retries;
        final Duration maxWait;
        final Transport transport;
        volatile long clockOffset;
        private final Map<String, String> headerNames;
        private final BiConsumer<String, String> onWarning;
        private final LongSupplier clock;
        private long lastTime; // of the clock, without the offset
        private final Set<String> warned = ConcurrentHashMap.newKeySet();

        Shared(Builder settings) {
            var url = URL.matcher(settings.url);
            check(url.matches(), "url must be http:// or https:// with a host and perhaps a port, and nothing else");
            origin = url.group(1);
            var uri = URI.create(origin);
            check(uri.getHost() != null && uri.getPort() <= 65_535, "url has a host or a port that cannot be");
            key = Text.checkKey(settings.key);
            prefix = settings.prefix;
            check(PREFIX.matcher(prefix).matches(), "prefix must be a letter, then at most 31 letters, digits and -");
            headerNames = settings.headerNames;
            headerNames.forEach((one, name) -> {
                check(CONVENTION_HEADERS.contains(one), "header names can have " + String.join(", ", CONVENTION_HEADERS) + ", not " + one);
                Text.checkHeaderName(name);
            });
            profile = new SignProfile(settings.profile);
            retries = settings.retries;
            maxWait = settings.maxWait;
            onWarning = settings.onWarning;
            clock = settings.clock;
            transport = settings.transport != null ? settings.transport : transport(new Network(
                    uri, settings.proxy, settings.caFile, settings.certificateFile, settings.keyFile, settings.connectTimeout));
        }

        private static Transport transport(Network network) {
            try {
                Class.forName("java.net.http.HttpClient");
                return new HttpTransport(network);
            } catch (ClassNotFoundException error) {
                return new UrlTransport(network);
            }
        }

        String headerName(String one) {
            var name = headerNames.get(one);
            return name != null ? name : prefix + "-X-" + one.substring(0, 1).toUpperCase(Locale.ROOT) + one.substring(1);
        }

        boolean isOwnHeader(String name) {
            return CONVENTION_HEADERS.stream().anyMatch(one -> headerName(one).equalsIgnoreCase(name))
                    || List.of("time", "nonce", "sign").stream().anyMatch(one -> (prefix + "-X-" + one).equalsIgnoreCase(name));
        }

        /** A time of the clock that no other request of this client has: two equal requests with one time would have one signature. */
        synchronized long nextTime() {
            lastTime = Math.max(clock.getAsLong(), lastTime + 1);
            return lastTime;
        }

        /** The clock's time. If the clock was set back, the times go on from it; those of other threads are only a little ahead. */
        synchronized long clockTime() {
            var now = clock.getAsLong();
            lastTime = lastTime - now >= 1000 ? now : lastTime;
            return now;
        }

        /** Keeps a correction for later calls, once the gateway took the time of a request. */
        void keepOffset(boolean isTaken, long offset) {
            if (isTaken) {
                clockOffset = offset;
            }
        }

        private static void logWarning(String name, String value) {
            var said = name.equals("version_unknown") ? value + " served, not the version asked for" : value;
            Logger.getLogger("signpost").warning(printable("signpost: " + name + ": " + said));
        }

        void warn(Response response, String asked) {
            var served = response.header(headerName("version"));
            var isOther = asked != null && served != null && !asked.isBlank() && !asked.strip().equalsIgnoreCase(served);
            if (isOther || "unknown".equals(response.header(prefix + "-X-Version-Source"))) {
                warn("version_unknown", served);
            }
            warn("deprecated", response.header("Deprecation"));
            warn("sunset", response.header("Sunset"));
        }

        void warn(String name, String value) {
            if (value != null && warned.add(name)) {
                onWarning.accept(name, value);
            }
        }
    }

    /** A name and a value, not encoded: a text, number or boolean, or a list of these, which repeats the name. */
    public static Map.Entry<String, Object> pair(String name, Object value) {
        check(name != null && value != null, "a name or a value is null");
        return new SimpleImmutableEntry<>(name, value);
    }

    /** Encodes a name or a value by RFC 3986. */
    public static String encode(String text) { return SignProfile.encode(text); }

    /**
     * The canonical string of pairs as they are sent, with &lt;APP_KEY&gt; in the key's place. CONTRACT 3. Method and path count only with
     * cover = request.
     */
    public static String canonical(String query, String form, Map<String, ?> profile, String method, String path) {
        return new SignProfile(profile).canonical(query, form, "<APP_KEY>", method, path);
    }

    /** The signature of pairs as they are sent, in hex. A sign among them is not signed. CONTRACT 3. */
    public static String signature(String query, String form, String key, Map<String, ?> profile, String method, String path) {
        return new SignProfile(profile).signature(query, form, Text.checkKey(key), method, path);
    }

    /**
     * The text to send as query or as form: the pairs in their order, then time, unless a pair has that name, then sign. Names can repeat;
     * entrySet() of a map serves, too. The time is in milliseconds since 1970.
     */
    public static String sign(
            Collection<? extends Map.Entry<String, ?>> pairs, String key, Map<String, ?> profile, String method, String path, long time) {
        return new SignProfile(profile).sign(pairs, Text.checkKey(key), method, path, time);
    }

    /** The same client for one user: it shares connections, clock and warnings. Null for none. */
    public Signpost withCredential(String credential) { return with("authorization", credential, timeout, null); }
    /** The same client for a user whose credential a store has. Logins save it there, and a logout clears it. */
    public Signpost withStore(CredentialStore store) { return with("authorization", null, timeout, store); }
    public Signpost withVersion(String version) { return with("version", version, timeout, store); }
    public Signpost withLanguage(String language) { return with("language", language, timeout, store); }
    public Signpost withTimeout(Duration timeout) { return with("", null, timeout, store); }

    private Signpost with(String name, String value, Duration timeout, CredentialStore store) {
        var changed = new HashMap<>(values);
        changed.remove(name);
        if (value != null) {
            changed.put(name, Text.checkHeader(name, value));
        }
        return new Signpost(shared, changed, timeout, store);
    }

    /** A call by GET, HEAD, POST, PUT, PATCH or DELETE. The path is encoded, and has no query. */
    public Call request(String method, String path) { return new Call(this, method, path); }

    /** Calls with pairs, and nothing else. */
    public Response call(String method, String path, Collection<? extends Map.Entry<String, ?>> pairs) throws IOException, InterruptedException {
        return request(method, path).pairs(pairs).send();
    }

    /**
     * Logs a user in by polling. CONTRACT 8. Interrupting the thread ends it.
     *
     * @param show gets the address that the user must open, and the code that the user compares
     * @param provider null for the default one
     * @param timeout for the whole login; null until it expires
     * @throws StatusException of a login that failed, for example login_denied
     */
    public Login login(BiConsumer<String, String> show, String provider, Duration timeout) throws IOException, InterruptedException {
        var end = System.nanoTime() + (timeout == null ? TimeUnit.HOURS.toNanos(2) : timeout.toNanos());
        var anyone = withCredential(null);
        var begun = anyone.post("/login", "provider", provider).timeout(left(end, this.timeout)).send().object();
        var token = Text.member(begun, "token");
        var authorizeUrl = Text.member(begun, "authorize_url");
        if (token == null || authorizeUrl == null) {
            throw new IOException("POST /login: the response has no token: is this version a login service?");
        }
        if (!authorizeUrl.matches("https?://.*+") || !printable(authorizeUrl).equals(authorizeUrl)) {
            throw new IOException("POST /login: malformed response: authorize_url is no address");
        }
        var userCode = Text.member(begun, "user_code");
        show.accept(authorizeUrl, userCode == null ? null : printable(userCode));
        var interval = nanoseconds(begun, "interval", 2, 60);
        var expiry = System.nanoTime() + nanoseconds(begun, "expires_in", 600, 3600);
        while (System.nanoTime() - expiry < 0) {
            var start = System.nanoTime();
            var check = anyone.post("/check", "token", token).pair("wait", CHECK_WAIT_SECONDS).repeatable(true);
            var checked = check.timeout(left(end, Duration.ofSeconds(CHECK_WAIT_SECONDS + 10))).send().object();
            if (!"pending".equals(checked.get("status"))) {
                break;
            }
            if (System.nanoTime() - start < TimeUnit.SECONDS.toNanos(CHECK_WAIT_SECONDS) / 2) {
                TimeUnit.NANOSECONDS.sleep(Math.min(interval, Math.min(expiry, end) - System.nanoTime()));
            }
        }
        return kept(anyone.post("/user/login", "token", token).repeatable(true).timeout(left(end, this.timeout)));
    }

    private static Duration left(long end, Duration most) throws IOException {
        var left = Duration.ofNanos(end - System.nanoTime());
        if (left.isNegative() || left.isZero()) {
            throw new SocketTimeoutException("the login did not end in time");
        }
        return left.compareTo(most) < 0 ? left : most;
    }

    /**
     * An address that begins a login in a browser, signed: send the browser there at once. CONTRACT 10. Put a random value into the query of
     * returnTo and into the user's session, and compare them when the browser comes back with its ticket.
     *
     * @param provider null for the default one
     */
    public Login.Address loginUrl(String returnTo, String provider) {
        check(!shared.profile.carrier.equals("headers"), "a browser sends no signature in headers: set the profile's carrier to parameters or both");
        var random = new byte[32];
        new SecureRandom().nextBytes(random);
        var base64 = Base64.getUrlEncoder().withoutPadding();
        var verifier = base64.encodeToString(random);
        var challenge = base64.encodeToString(SignProfile.digest("SHA-256").digest(verifier.getBytes(US_ASCII)));
        var pairs = new ArrayList<>(List.of(pair("return_to", returnTo), pair("code_challenge", challenge)));
        if (provider != null) {
            pairs.add(pair("provider", provider));
        }
        if (values.containsKey("app")) {
            pairs.add(pair("app", values.get("app")));
        }
        var query = shared.profile.sign(pairs, shared.key, "GET", "/login", shared.nextTime() + shared.clockOffset);
        return new Login.Address(shared.origin + "/login?" + query, verifier);
    }

    /** Exchanges the ticket of a login in a browser. It serves once. */
    public Login exchange(String ticket, String codeVerifier) throws IOException, InterruptedException {
        return kept(withCredential(null).post("/user/login", "ticket", ticket).pair("code_verifier", codeVerifier));
    }

    /** Renews the credential. The old one ends a minute later. */
    public Login renew() throws IOException, InterruptedException { return kept(request("POST", "/user/renew").repeatable(true)); }

    /** Ends the login. */
    public void logout() throws IOException, InterruptedException {
        request("POST", "/user/logout").send();
        if (store != null) {
            store.clear();
        }
    }

    /** The account of the user who is logged in. */
    public Login.Account user() throws IOException, InterruptedException {
        return new Login.Account(request("GET", "/user").send().object());
    }

    /** Stores an event with the account. Data and key can be null. It is repeatable only with an idempotency key. */
    public Login.Event sendEvent(String event, String data, String idempotencyKey) throws IOException, InterruptedException {
        var call = post("/event/send", "event", event).repeatable(idempotencyKey != null);
        if (data != null) {
            call.pair("data", data);
        }
        if (idempotencyKey != null) {
            call.pair("idempotency_key", idempotencyKey);
        }
        return new Login.Event(call.send().object());
    }

    /** The account's events, newest first: at most 100, from one on that a page names; null for the newest. Since version v2. */
    public Login.Events events(int limit, String before) throws IOException, InterruptedException {
        var call = request("GET", "/events").pair("limit", limit);
        return new Login.Events((before == null ? call : call.pair("before", before)).send().object());
    }

    private Call post(String path, String name, String value) {
        var call = request("POST", path);
        return value == null ? call : call.pair(name, value);
    }

    private Login kept(Call call) throws IOException, InterruptedException {
        var login = new Login(call.send().object());
        if (login.authorization == null) {
            throw new IOException("the response has no credential");
        }
        if (store != null) {
            store.save(login.authorization);
        }
        return login;
    }

    /** Reads a number of seconds, and takes at least 1 and at most max. */
    private static long nanoseconds(Map<String, Object> document, String name, long otherwise, long max) {
        var value = document.get(name);
        var seconds = value instanceof Number ? ((Number) value).longValue() : otherwise;
        return TimeUnit.SECONDS.toNanos(Math.max(1, Math.min(seconds, max)));
    }
}
