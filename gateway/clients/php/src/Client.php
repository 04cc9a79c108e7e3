<?php

// Signpost's client: signs a request by the gateway's rules, sends exactly what it signed, and logs users in. CONTRACT is gateway/protocol/CONTRACT.md.
//
// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

declare(strict_types=1);

namespace Signpost;

/** Calls a gateway. It has no state of a user: a credential belongs to a call, or to the light copy that withCredential() returns. */
final class Client
{
    public const VERSION = "0.9.0";
    private const NO_JSON = "\0no JSON";
    private const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
    private const HEADERS = ["app" => "App", "version" => "Version", "language" => "Language", "authorization" => "Authorization"];
    // CONTRACT 7: nothing was forwarded, so any call can be repeated.
    private const NOT_EXECUTED = ["request_timeout", "request_replayed", "rate_limited", "spool_full", "no_healthy_backend", "version_brownout"];
    // CONTRACT 7: the call may have been executed.
    private const PERHAPS_EXECUTED = ["internal", "backend_unreachable", "store_unavailable", "backend_timeout", "gateway_stopping"];
    // Values of logins, and what else is secret: the gateway masks them in the text that it signed, too. CONTRACT 7.
    private const SECRET = '/((?:^|[&?])(?:(?:(?:(?:access|refresh|id)_)?token|ticket|code(?:_verifier)?|state|confirm|authorization|credential|passw(?:or)?d'
        . '|(?:client_)?secret|api_key)=|[^&=]*=(?=(?:Bearer%20)?[\w-]{43}(?:[&\n]|$))))[^&\n]+/i';
    private const MAX_CORRECTION_MS = 24 * 3_600_000;
    private const CHECK_WAIT = 30;

    private string $origin;
    /** Closures, so that var_export() and serialize() show no secret. */
    private \Closure $key;
    private \Closure $credential;
    private array $values;
    private array $names;
    private Signature $rules;
    private Transport $transport;
    private ?CredentialStore $store = null;
    private \Closure $onWarning;
    private \Closure $clock;
    /** What the copies share: clockOffset, lastNow, warned. */
    private \stdClass $state;

    /**
     * $url is the gateway's origin. $profile has the members preset, values, layout, empty, leave_out, cover, algorithm and carrier; what it lacks is as
     * in the preset. $headerNames (of app, version, language, authorization) replace those of the prefix. Times are in seconds: $timeout is that
     * of one request and its response, $maxWait the longest pause before a repetition. $onWarning gets a name and a value: without one,
     * error_log() does. $clock returns milliseconds since 1970. $proxy and the files are those of CurlTransport, unless there is a $transport.
     * Throws \InvalidArgumentException for settings that cannot be right.
     */
    public function __construct(
        string $url,
        #[\SensitiveParameter] string $key,
        ?string $app = null,
        private string $prefix = "Acme",
        ?string $version = null,
        ?string $language = null,
        private ?array $profile = null,
        array $headerNames = [],
        float $connectTimeout = 5,
        private float $timeout = 65,
        private int $retries = 3,
        private float $maxWait = 30,
        ?callable $onWarning = null,
        ?callable $clock = null,
        ?Transport $transport = null,
        #[\SensitiveParameter] ?string $proxy = null,
        ?string $caFile = null,
        ?string $clientCertFile = null,
        ?string $clientKeyFile = null,
    ) {
        $isOrigin = preg_match('~^(https?://(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?)/?$~Di', $url, $parts);
        if (!$isOrigin || (int) ($parts[2] ?? 0) > 65_535) {
            throw new \InvalidArgumentException("url must be http:// or https:// with a host and perhaps a port, and nothing else");
        }
        $this->origin = $parts[1];
        Check::key($key);
        $this->key = static fn (): string => $key;
        $this->credential = static fn (): ?string => null;
        $this->rules = new Signature($profile);
        $this->transport = $transport ?? new CurlTransport($connectTimeout, $proxy, $caFile, $clientCertFile, $clientKeyFile);
        if (!preg_match('/^[A-Za-z][A-Za-z0-9-]{0,31}$/D', $prefix)) {
            throw new \InvalidArgumentException("prefix must be a letter, then at most 31 letters, digits and -");
        }
        $this->names = array_map(static fn (string $name): string => "$prefix-X-$name", self::HEADERS);
        foreach ($headerNames as $header => $name) {
            if (!isset(self::HEADERS[$header])) {
                throw new \InvalidArgumentException("headerNames can have " . implode(", ", array_keys(self::HEADERS)) . ", not $header");
            }
            $this->names[$header] = Check::headerName($name);
        }
        foreach (["app" => $app, "version" => $version, "language" => $language] as $header => $value) {
            $this->values[$header] = Check::headerValue($header, $value);
        }
        $this->onWarning = \Closure::fromCallable($onWarning ?? static function (string $name, string $value): void {
            error_log(Check::printable("signpost: $name: $value" . ($name === "version_unknown" ? " served, not the version asked for" : "")));
        });
        $this->clock = \Closure::fromCallable($clock ?? static fn (): int => (int) (microtime(true) * 1000));
        $this->state = (object) ["clockOffset" => 0, "lastNow" => 0, "warned" => []];
    }

    /** A copy for this user, which shares connections and clock. CONTRACT 8. */
    public function withCredential(#[\SensitiveParameter] ?string $credential): self
    {
        $copy = clone $this;
        Check::headerValue("credential", $credential);
        [$copy->credential, $copy->store] = [static fn (): ?string => $credential, null];
        return $copy;
    }

    /** A copy for the user whose credential is in the store. Logins and renewals save there, logout() clears it. */
    public function withStore(CredentialStore $store): self
    {
        $copy = clone $this;
        [$copy->credential, $copy->store] = [static fn (): ?string => $store->load(), $store];
        return $copy;
    }

    public function __debugInfo(): array
    {
        return ["origin" => $this->origin];
    }

    /**
     * Signs a call and sends it. Redirects are not followed.
     *
     * $pairs are the query of GET, HEAD and DELETE and of a call with another body, otherwise the form. $json (any value) or $body (text, or a seekable
     * stream) need the profile's carrier "headers" or "both". $credential, $version and $language replace the client's; "" sends none. $timeout
     * is the deadline of the whole call in seconds, with pauses. $cancelled is asked during the call, and stops it by returning true.
     * $idempotencyKey is sent as Idempotency-Key, and makes the call repeatable. $repeatable says that a repetition does no harm: by default
     * those of GET, HEAD, PUT and DELETE. $sink (a stream or a function) gets the body in pieces, of $limit bytes at most.
     * Throws Problem from status 400 on, TransportError if there is no usable response, Cancelled, \InvalidArgumentException if the call cannot be sent.
     * Repeats by CONTRACT 10 before that.
     */
    public function call(
        string $method,
        string $path,
        #[\SensitiveParameter] array $pairs = [],
        #[\SensitiveParameter] mixed $json = self::NO_JSON,
        #[\SensitiveParameter] mixed $body = null,
        ?string $contentType = null,
        #[\SensitiveParameter] array $headers = [],
        #[\SensitiveParameter] ?string $credential = null,
        ?string $version = null,
        ?string $language = null,
        ?float $timeout = null,
        ?callable $cancelled = null,
        ?string $idempotencyKey = null,
        ?bool $repeatable = null,
        mixed $sink = null,
        int $limit = 16 << 20,
    ): Response {
        in_array($method, self::METHODS, true) || throw new \InvalidArgumentException("method must be one of " . implode(", ", self::METHODS));
        Check::path($path);
        $end = $timeout === null ? INF : self::seconds() + $timeout;
        [$body, $contentType, $hash, $length] = $this->body($method, $json, $body, $contentType);
        $isForm = $body === null && in_array($method, ["POST", "PUT", "PATCH"], true);
        $carrier = $this->rules->carrier;
        $isInHeaders = $carrier === "headers" || ($carrier === "both" && ($body !== null || $pairs === [] || !in_array($method, ["GET", "POST"], true)));
        $values = ["version" => $version, "language" => $language, "authorization" => $credential];
        $values = array_filter($values, "is_string") + ["authorization" => ($this->credential)()] + $this->values;
        $headers = $this->headers($headers, $values, $contentType ?? ($isForm ? "application/x-www-form-urlencoded" : null), $idempotencyKey);
        $repeatable ??= $idempotencyKey !== null || in_array($method, ["GET", "HEAD", "PUT", "DELETE"], true);
        $isDelivered = false;
        $deliver = $sink === null ? null : static function (string $piece) use ($sink, &$isDelivered): void {
            $isDelivered = true;
            is_resource($sink) ? fwrite($sink, $piece) : $sink($piece);
        };
        $cancelled = $cancelled === null ? null : \Closure::fromCallable($cancelled);
        $offset = is_resource($body) ? ftell($body) : 0;
        $encoded = $isInHeaders ? Signature::encodePairs($pairs) : "";
        $corrected = null;
        for ($repetition = 0; ; ) {
            $time = $this->nextNow() + ($corrected ?? $this->state->clockOffset);
            if ($isInHeaders) {
                $target = $isForm || $encoded === "" ? $path : "$path?$encoded";
                $sent = $isForm ? $encoded : $body;
                $nonce = bin2hex(random_bytes(8));
                $hashed = $isForm ? hash("sha256", $encoded) : $hash;
                $sign = Signature::head($method, $target, $time, $nonce, $hashed, ($this->key)(), $this->rules->headerAlgorithm);
                $headers = array_merge($headers, array_combine($this->signNames(), [(string) $time, $sign, $nonce]));
                $signed = Signature::headText($method, $target, $time, $nonce, $hashed, $this->rules->headerAlgorithm);
            } else {
                $signed = Signature::sign($pairs, ($this->key)(), $this->profile, $method, $path, $time);
                [$target, $sent] = $isForm ? [$path, $signed] : ["$path?$signed", null];
            }
            is_resource($sent) && fseek($sent, $offset);
            $length = is_string($sent) ? strlen($sent) : $length;
            $left = min($timeout ?? $this->timeout, $end - self::seconds());
            $arguments = [$headers, $sent ?? "", $sent === null ? null : $length, $left, $cancelled, $deliver, $limit, $repeatable];
            $request = new Request($method, $this->origin, $target, ...$arguments);
            $pause = 0.5 * 2 ** min($repetition, 20) * (0.5 + mt_rand() / mt_getrandmax());
            try {
                ($cancelled !== null && $cancelled()) && throw new Cancelled("the call was cancelled");
                $left > 0 || throw new TransportError("no response in time");
                $response = $this->transport->send($request);
                $this->warn($response, $values["version"] ?? null);
                $after = $response->status < 400 ? null : $response->retryAfter(($this->clock)());
                $failure = $response->status < 400 ? null : new Problem($response, $this->signed($method, $path, $signed, $isInHeaders), $after);
                $isOutside = $failure !== null && $failure->code === "time_out_of_window";
                if ($isOutside && $corrected === null) {
                    $corrected = $this->correction($failure->serverTime);
                    if ($corrected !== null) {
                        continue;
                    }
                }
                if ($corrected !== null && !$isOutside) {
                    // The corrected time was accepted.
                    $this->state->clockOffset = $corrected;
                    $this->warnOnce("clock_off", round(abs($corrected) / 1000) . " s " . ($corrected > 0 ? "behind" : "ahead"));
                }
                if ($failure === null) {
                    return $response;
                }
                $isAsked = in_array($failure->code, self::PERHAPS_EXECUTED, true) || ($after !== null && in_array($failure->status, [429, 503], true));
                $again = in_array($failure->code, self::NOT_EXECUTED, true) || ($repeatable && $isAsked);
                $pause = $after ?? $pause;
            } catch (TransportError $error) {
                $failure = new TransportError("$method $path at $this->origin: {$error->getMessage()}", $error->sent, $error->stale);
                $again = ($repeatable && !$isDelivered) || !$error->sent;
                if ($error->stale && $again) {
                    // Each such connection is gone then.
                    continue;
                }
            }
            if (!$again || $repetition >= $this->retries || $pause > $this->maxWait || self::seconds() + $pause >= $end) {
                throw $failure;
            }
            self::pause($pause, $cancelled);
            $repetition++;
        }
    }

    /** Server-sent events as they arrive, each with event, data and id, until the response ends. $options are arguments of call(). */
    public function serverSentEvents(string $path, #[\SensitiveParameter] array $pairs = [], #[\SensitiveParameter] mixed ...$options): \Generator
    {
        $options = ["headers" => ["Accept" => "text/event-stream"] + ($options["headers"] ?? []), "sink" => \Fiber::suspend(...)] + $options;
        $fiber = new \Fiber(fn () => $this->call("GET", $path, $pairs, ...$options + ["limit" => PHP_INT_MAX]));
        [$received, $event, $id] = [(string) $fiber->start(), ["event" => "", "data" => []], ""];
        while (!$fiber->isTerminated()) {
            // A line break that may be half of one waits for its rest.
            while (preg_match('/\A(?:\xEF\xBB\xBF)?([^\r\n]*)(?:\r\n|\n|\r(?!\z))/', $received, $line)) {
                $received = substr($received, strlen($line[0]));
                [$name, $value] = explode(":", $line[1], 2) + [1 => ""];
                $value = str_starts_with($value, " ") ? substr($value, 1) : $value;
                if ($line[1] === "" && $event["data"] !== []) {
                    yield ["event" => $event["event"] ?: "message", "data" => implode("\n", $event["data"]), "id" => $id];
                }
                match (true) {
                    $line[1] === "" => $event = ["event" => "", "data" => []],
                    $name === "data" => $event["data"][] = $value,
                    $name === "event" => $event["event"] = $value,
                    $name === "id" => $id = $value,
                    default => null,
                };
            }
            strlen($received) <= 1 << 20 || throw new TransportError("an event's line has more than 1 MiB");
            $received .= (string) $fiber->resume();
        }
    }

    /**
     * Logs a user in by polling. CONTRACT 8.
     *
     * Calls $show with the address that the user must open, and the code that the user compares. $timeout is the whole login's, in seconds. Throws the
     * Problem of a login that failed, for example login_denied. Without a store, continue with withCredential($login->credential).
     */
    public function login(callable $show, ?string $provider = null, ?float $timeout = null, ?callable $cancelled = null): Login
    {
        $deadline = $timeout === null ? INF : self::seconds() + $timeout;
        $left = static fn (): ?float => $deadline === INF ? null : max(0, $deadline - self::seconds());
        $options = fn (): array => ["credential" => "", "timeout" => $left(), "cancelled" => $cancelled];
        $begun = $this->document("POST", "/login", $provider === null ? [] : [["provider", $provider]], ...$options());
        $token = self::member($begun, "token");
        $end = min($deadline, self::seconds() + self::duration($begun, "expires_in", 600, 3600));
        $show(self::member($begun, "authorize_url", '~^https?://~'), self::member($begun, "user_code"));
        $checking = clone $this;
        $checking->timeout = self::CHECK_WAIT + 10;
        while (($start = self::seconds()) < $end) {
            $wait = (string) max(0, min(self::CHECK_WAIT, (int) ($end - $start) - 1));
            $checked = $checking->document("POST", "/check", [["token", $token], ["wait", $wait]], ...$options(), repeatable: true);
            if (($checked["status"] ?? null) !== "pending") {
                break;
            }
            if (self::seconds() - $start < self::CHECK_WAIT / 2) {
                self::pause(min(self::duration($begun, "interval", 2, 60), $end - self::seconds()), $cancelled);
            }
        }
        self::seconds() < $deadline || throw new TransportError("the login was not completed within $timeout s");
        return $this->taken($this->document("POST", "/user/login", [["token", $token]], ...$options(), repeatable: true));
    }

    /**
     * Begins a redirect login: the address to open, and the code_verifier to keep in the user's session. CONTRACT 8 and 10.
     *
     * Put a new random value into the query of $returnTo and into the session. When the user comes back, compare them, then exchange() the ticket.
     */
    public function loginUrl(string $returnTo, ?string $provider = null): array
    {
        $this->rules->carrier !== "headers" || throw new \InvalidArgumentException("a browser cannot sign in headers: the carrier must be parameters or both");
        $verifier = self::base64url(random_bytes(32));
        $pairs = ["app" => $this->values["app"], "return_to" => $returnTo, "provider" => $provider, "code_challenge" => self::base64url(hash("sha256", $verifier, true))];
        $pairs = array_filter($pairs, static fn (?string $value): bool => ($value ?? "") !== "") + ["code_challenge_method" => "S256"];
        $time = $this->nextNow() + $this->state->clockOffset;
        return [$this->origin . "/login?" . Signature::sign($pairs, ($this->key)(), $this->profile, "GET", "/login", $time), $verifier];
    }

    /** Ends a redirect login. A ticket serves once, within 60 s. */
    public function exchange(#[\SensitiveParameter] string $ticket, #[\SensitiveParameter] ?string $codeVerifier = null): Login
    {
        $pairs = [["ticket", $ticket], ...($codeVerifier === null ? [] : [["code_verifier", $codeVerifier]])];
        return $this->taken($this->document("POST", "/user/login", $pairs, credential: ""));
    }

    /** A new credential. The old one ends 60 s later; log in again when this fails with authorization_invalid. */
    public function renew(): Login
    {
        return $this->taken($this->document("POST", "/user/renew", [], repeatable: true));
    }

    /** Ends the login, and clears the store. */
    public function logout(): void
    {
        $this->call("POST", "/user/logout");
        $this->store?->clear();
    }

    /** The account of the user who is logged in. */
    public function user(): Account
    {
        return new Account($this->document("GET", "/user"));
    }

    /** Stores an event with the account: id, event and received_at. It is repeated after a failure only if it has an $idempotencyKey. */
    public function sendEvent(string $event, #[\SensitiveParameter] ?string $data = null, ?string $idempotencyKey = null): array
    {
        $pairs = array_filter(["event" => $event, "data" => $data, "idempotency_key" => $idempotencyKey], "is_string");
        return $this->document("POST", "/event/send", $pairs, repeatable: $idempotencyKey !== null);
    }

    /** A page of the account's events, newest first: events, and perhaps next, which is $before of the next page. Since v2. */
    public function events(int $limit = 20, ?string $before = null): array
    {
        return $this->document("GET", "/events", ["limit" => $limit] + ($before === null ? [] : ["before" => $before]));
    }

    private function document(string $method, string $path, #[\SensitiveParameter] array $pairs = [], mixed ...$options): array
    {
        $document = json_decode($this->call($method, $path, $pairs, ...$options)->body, true);
        return is_array($document) ? $document : throw new TransportError("$method $path: the response is no JSON object");
    }

    /** Reads a login's result, and saves the credential in the store. */
    private function taken(#[\SensitiveParameter] array $result): Login
    {
        $credential = self::member($result, "authorization", '/^[ -~]+$/D');
        $this->store?->save($credential);
        $account = is_array($result["account"] ?? null) ? new Account($result["account"]) : null;
        return new Login($credential, (int) self::duration($result, "expires_in", 0, 1 << 40), ($result["created"] ?? null) === true, $account);
    }

    /** The body, its type, its SHA-256 and its length. */
    private function body(string $method, #[\SensitiveParameter] mixed $json, #[\SensitiveParameter] mixed $body, ?string $type): array
    {
        $fail = static fn (string $why) => throw new \InvalidArgumentException($why);
        if ($json === self::NO_JSON && $body === null) {
            return [null, $type === null ? null : $fail("contentType needs a body"), hash("sha256", ""), null];
        }
        $json === self::NO_JSON || $body === null || $fail("a call has json or body, not both");
        in_array($method, ["GET", "HEAD"], true) && $fail("$method has no body");
        $this->rules->carrier !== "parameters" || $fail("json and body must be signed in headers: set the profile's carrier to headers or both");
        Check::headerValue("contentType", $type);
        if ($json !== self::NO_JSON) {
            try {
                $body = json_encode($json, JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES | JSON_PRESERVE_ZERO_FRACTION);
            } catch (\JsonException $error) {
                $fail("json: {$error->getMessage()}");
            }
            $type ??= "application/json";
        }
        if (is_string($body)) {
            return [$body, $type ?? "application/octet-stream", hash("sha256", $body), strlen($body)];
        }
        (is_resource($body) && stream_get_meta_data($body)["seekable"]) || $fail("body must be text, or a stream that can be read twice");
        [$start, $hash] = [ftell($body), hash_init("sha256")];
        $length = hash_update_stream($hash, $body);
        fseek($body, $start);
        return [$body, $type ?? "application/octet-stream", hash_final($hash), $length];
    }

    private function headers(#[\SensitiveParameter] array $own, #[\SensitiveParameter] array $values, ?string $type, ?string $idempotencyKey): array
    {
        $headers = ["Accept" => "application/json", "User-Agent" => "signpost-php/" . self::VERSION];
        $taken = ["host", "connection", "content-length", "transfer-encoding", "content-type", "expect", "te", "trailer", "upgrade"];
        $taken = [...$taken, ...array_map("strtolower", [...array_values($this->names), ...$this->signNames()])];
        foreach ($own as $name => $value) {
            $name = Check::headerName((string) $name);
            if (in_array(strtolower($name), $taken, true) || !is_string($value)) {
                throw new \InvalidArgumentException("headers: $name must be text, and is no header of the client's own, such as those of contentType and credential");
            }
            $headers = array_filter($headers, static fn (string $other): bool => strcasecmp($other, $name) !== 0, ARRAY_FILTER_USE_KEY);
            $headers[$name] = Check::headerValue($name, $value);
        }
        foreach ($values as $header => $value) {
            $headers += ($value ?? "") === "" ? [] : [$this->names[$header] => Check::headerValue($header, $value)];
        }
        $headers += $type === null ? [] : ["Content-Type" => $type];
        return $headers + ($idempotencyKey === null ? [] : ["Idempotency-Key" => Check::headerValue("idempotencyKey", $idempotencyKey)]);
    }

    private function signNames(): array
    {
        return ["$this->prefix-X-Time", "$this->prefix-X-Sign", "$this->prefix-X-Nonce"];
    }

    /** The clock's time, but one that no other request of this client has: two equal requests with one time would have one signature. */
    private function nextNow(): int
    {
        return $this->state->lastNow = max(($this->clock)(), $this->state->lastNow + 1);
    }

    /** What must be added to the clock's time, or null: who could have any time signed could keep requests for later. */
    private function correction(?int $serverTime): ?int
    {
        $now = ($this->clock)();
        // The clock may have been set back.
        $this->state->lastNow = min($this->state->lastNow, $now);
        return $serverTime !== null && abs($serverTime - $now) <= self::MAX_CORRECTION_MS ? $serverTime - $now : null;
    }

    /** What the client signed, as the gateway shows it: without key and secret values, at most 2 KiB. CONTRACT 7. */
    private function signed(string $method, string $path, #[\SensitiveParameter] string $text, bool $isInHeaders): string
    {
        $masked = str_replace(Signature::encode(($this->key)()), "***", preg_replace(self::SECRET, '$1***', $text));
        $shown = $isInHeaders ? $masked : Signature::canonical("", $masked, $this->profile, $method, $path);
        return preg_replace('/^(.{2048}).*/su', '$1', $shown) ?? "";
    }

    private function warn(Response $response, ?string $asked): void
    {
        [$asked, $served] = [trim($asked ?? ""), $response->header($this->names["version"]) ?? ""];
        $isOther = $asked !== "" && $served !== "" && strcasecmp($asked, $served) !== 0;
        $this->warnOnce("version_unknown", $isOther || $response->header("$this->prefix-X-Version-Source") === "unknown" ? $served : null);
        $this->warnOnce("deprecated", $response->header("Deprecation"));
        $this->warnOnce("sunset", $response->header("Sunset"));
    }

    private function warnOnce(string $name, ?string $value): void
    {
        if ($value !== null && !isset($this->state->warned[$name])) {
            $this->state->warned[$name] = true;
            ($this->onWarning)($name, $value);
        }
    }

    private static function member(#[\SensitiveParameter] array $document, string $name, string $pattern = "//"): string
    {
        $value = $document[$name] ?? null;
        $isText = is_string($value) && preg_match($pattern, $value) && Check::printable($value) === $value;
        return $isText ? $value : throw new TransportError("malformed response: the login's $name");
    }

    /** A duration of the gateway: at least a second. */
    private static function duration(#[\SensitiveParameter] array $document, string $name, int $otherwise, int $most): int|float
    {
        $value = $document[$name] ?? null;
        return is_int($value) || is_float($value) ? min(max($value, 1), $most) : $otherwise;
    }

    private static function base64url(#[\SensitiveParameter] string $bytes): string
    {
        return rtrim(strtr(base64_encode($bytes), "+/", "-_"), "=");
    }

    private static function pause(float $seconds, ?callable $cancelled): void
    {
        for ($end = self::seconds() + $seconds; ($left = $end - self::seconds()) > 0; ) {
            ($cancelled !== null && $cancelled()) && throw new Cancelled("the call was cancelled");
            usleep((int) (min($left, $cancelled === null ? 1000 : 0.05) * 1e6));
        }
    }

    private static function seconds(): float
    {
        return hrtime(true) / 1e9;
    }
}
