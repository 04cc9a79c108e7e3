<?php

// Signpost's client for PHP 8.0 and later: signs a request by the gateway's rules, sends the very text that it signed, and logs users in.
// Copy this file into your project. It needs php-cli alone: no other file, and no extension. CONTRACT is gateway/protocol/CONTRACT.md.
//
// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

declare(strict_types=1);

namespace Signpost;

/** A response with a status of 400 or more. Decide by $code, which never changes: it is empty if the body is no problem document. CONTRACT 7. */
class Problem extends \RuntimeException
{
    private const MAX_BYTES = 65_536;

    /** @var string */
    public $code;
    public int $status;
    public ?string $title;
    public ?string $detail;
    public ?string $hint;
    /** The text that the gateway signed: of sign_mismatch only. Below it the message shows $signed, the client's. */
    public ?string $canonical;
    public ?string $requestId;
    /** Seconds. */
    public ?int $retryAfter;
    /** Milliseconds since 1970, below 2^53: of time_out_of_window only. */
    public ?int $serverTime;

    public function __construct(Response $response, #[\SensitiveParameter] string $signed = "")
    {
        $document = self::document($response);
        $text = static fn (string $name): ?string => is_string($document[$name] ?? null) ? $document[$name] : null;
        $this->status = $response->status;
        $this->title = $text("title");
        $this->detail = $text("detail");
        $this->hint = $text("hint");
        $this->canonical = $text("canonical");
        $this->requestId = $text("request_id") ?? $response->header("X-Request-Id");
        $retryAfter = $response->header("Retry-After") ?? "";
        $this->retryAfter = preg_match('/^[0-9]{1,10}$/D', $retryAfter) ? (int) $retryAfter : null;
        $serverTime = $document["server_time"] ?? null;
        $this->serverTime = is_int($serverTime) && $serverTime >= 0 && $serverTime < 2 ** 53 ? $serverTime : null;
        $code = $text("code") ?? "";
        $said = implode(" ", array_filter([$this->title, $this->hint ?? $this->detail], static fn ($part): bool => ($part ?? "") !== ""));
        $message = rtrim("$this->status $code") . ($said === "" ? "" : ": $said") . ($this->requestId === null ? "" : " (request $this->requestId)");
        $compared = $this->canonical === null ? [] : ["the gateway signed: $this->canonical", "this client signed: $signed"];
        parent::__construct(implode("\n", array_map([Check::class, "printable"], [$message, ...$compared])));
        $this->code = $code;
    }

    /** The members of a problem document, or none. */
    private static function document(Response $response): array
    {
        $isProblem = preg_match('~^application/problem\+json *(;|$)~Di', $response->header("Content-Type") ?? "");
        $document = $isProblem && strlen($response->body) <= self::MAX_BYTES ? json_decode($response->body, true) : null;
        return is_array($document) && is_string($document["code"] ?? null) ? $document : [];
    }
}

/** There is no usable response: no connection, a lost one, a timeout, or a response that is malformed or has more than 16 MiB. $sent is false if nothing was sent. */
class TransportError extends \RuntimeException
{
    public bool $sent;

    public function __construct(string $message, bool $sent = true)
    {
        parent::__construct(Check::printable($message));
        $this->sent = $sent;
    }
}

/** A response. var_dump() does not show its body, which can have a credential. */
class Response
{
    public int $status;
    /** @var array<string, string> Names are in lower case; see header(). */
    public array $headers;
    public string $body;

    public function __construct(int $status, array $headers, #[\SensitiveParameter] string $body)
    {
        $this->status = $status;
        $this->headers = $headers;
        $this->body = $body;
    }

    /** The header of this name, in any letter case. */
    public function header(string $name): ?string
    {
        return $this->headers[strtolower($name)] ?? null;
    }

    /** The body's JSON, with arrays for objects. Throws \JsonException if it is none. */
    public function json(): mixed
    {
        return json_decode($this->body, true, 512, JSON_THROW_ON_ERROR);
    }

    public function __debugInfo(): array
    {
        return ["status" => $this->status];
    }
}

/** Encodes a name or a value by RFC 3986. Throws \InvalidArgumentException if it is not UTF-8. */
function encode(#[\SensitiveParameter] string $text): string
{
    return rawurlencode(Check::text($text, "a name or a value"));
}

/**
 * The canonical string of pairs as they are sent, with <APP_KEY> in the key's place. CONTRACT 3.
 *
 * $method and $path count with cover = request only. Throws \InvalidArgumentException for broken escapes, and what is not UTF-8.
 */
function canonical(#[\SensitiveParameter] string $query, #[\SensitiveParameter] string $form, ?array $profile = null, string $method = "", string $path = ""): string
{
    return (new Rules($profile))->canonical($query, $form, "<APP_KEY>", $method, $path);
}

/** The signature of pairs as they are sent, in lower-case hex. A sign among them is not signed. CONTRACT 3. */
function signature(
    #[\SensitiveParameter] string $query,
    #[\SensitiveParameter] string $form,
    #[\SensitiveParameter] string $key,
    ?array $profile = null,
    string $method = "",
    string $path = "",
): string {
    $rules = new Rules($profile);
    $text = $rules->canonical($query, $form, Check::key($key), $method, $path);
    return $rules->algorithm === "md5" ? md5($text) : hash_hmac("sha256", $text, $key);
}

/**
 * The text to send, as query or as form: the pairs in their order, then time (unless a pair has that name), then sign.
 *
 * $pairs is a list of [name, value], or an array of names and values. $time is in milliseconds since 1970, by default the clock's. Throws
 * \InvalidArgumentException for pairs that cannot be sent, for example with a value that is not text.
 */
function sign(
    #[\SensitiveParameter] array $pairs,
    #[\SensitiveParameter] string $key,
    ?array $profile = null,
    string $method = "",
    string $path = "",
    ?int $time = null,
): string {
    $pairs = Check::pairs($pairs);
    if (!in_array("time", array_column($pairs, 0), true)) {
        $pairs[] = ["time", (string) ($time ?? (int) (microtime(true) * 1000))];
    }
    $text = implode("&", array_map(static fn (array $pair): string => encode($pair[0]) . "=" . encode($pair[1]), $pairs));
    return "$text&sign=" . signature("", $text, $key, $profile, $method, $path);
}

/** Calls a gateway. Each call has a connection of its own. */
class Client
{
    private const HEADERS = ["app" => "App", "version" => "Version", "language" => "Language", "authorization" => "Authorization"];
    // CONTRACT 7: nothing was forwarded, so any call can be repeated.
    private const NOT_EXECUTED = ["request_timeout", "request_replayed", "rate_limited", "no_healthy_backend", "version_brownout"];
    // CONTRACT 7: the call may have been executed.
    private const PERHAPS_EXECUTED = ["internal", "backend_unreachable", "store_unavailable", "backend_timeout", "gateway_stopping"];
    // Values of logins, and what else is secret: the gateway masks them in the text that it signed, too. CONTRACT 7.
    private const SECRET = '/((?:^|&)(?:(?:(?:(?:access|refresh|id)_)?token|ticket|code(?:_verifier)?|state|confirm|authorization|credential|passw(?:or)?d'
        . '|(?:client_)?secret|api_key)=|[^&=]*=(?=(?:Bearer%20)?[\w-]{43}(?:&|$))))[^&]+/i';
    private const MAX_CORRECTION_MS = 24 * 3_600_000;
    private const CHECK_WAIT = 30;

    /** Host and port, as in the header Host. */
    private string $host;
    /** What stream_socket_client() connects to. */
    private string $address;
    /** Closures, so that var_export() and serialize() show no secret. */
    private \Closure $key;
    private \Closure $authorization;
    private array $values;
    private array $names;
    private string $sourceName;
    private \Closure $onWarning;
    private \Closure $clock;
    private int $clockOffset = 0;
    private int $lastNow = 0;
    private array $warned = [];

    /**
     * $url is the gateway's origin. $profile has the members preset, values, layout, empty, leave_out, cover and algorithm; what it lacks is as in the
     * preset. $headerNames (of app, version, language, authorization) replace those of the prefix. Times are in seconds: $timeout is that of
     * a whole request and its response, $maxWait the longest pause before a repetition. $onWarning gets a name and a value: without one,
     * error_log() does. $clock returns milliseconds since 1970.
     * Throws \InvalidArgumentException for settings that cannot be right.
     */
    public function __construct(
        string $url,
        #[\SensitiveParameter] string $key,
        ?string $app = null,
        string $prefix = "Acme",
        ?string $version = null,
        ?string $language = null,
        #[\SensitiveParameter] ?string $authorization = null,
        private ?array $profile = null,
        array $headerNames = [],
        private float $connectTimeout = 5,
        private float $timeout = 65,
        private int $retries = 3,
        private float $maxWait = 30,
        ?callable $onWarning = null,
        ?callable $clock = null,
    ) {
        $isOrigin = preg_match('~^(https?)://((\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?)/?$~Di', $url, $parts);
        if (!$isOrigin || (int) ($parts[4] ?? 0) > 65_535) {
            throw new \InvalidArgumentException("url must be http:// or https:// with a host and perhaps a port, and nothing else");
        }
        $isTls = strtolower($parts[1]) === "https";
        $this->host = $parts[2];
        $this->address = ($isTls ? "tls" : "tcp") . "://$parts[3]:" . ($parts[4] ?? ($isTls ? 443 : 80));
        Check::key($key);
        $this->key = static fn (): string => $key;
        new Rules($profile);
        if (!preg_match('/^[A-Za-z][A-Za-z0-9-]{0,31}$/D', $prefix)) {
            throw new \InvalidArgumentException("prefix must be a letter, then at most 31 letters, digits and -");
        }
        $this->sourceName = "$prefix-X-Version-Source";
        $this->names = array_map(static fn (string $name): string => "$prefix-X-$name", self::HEADERS);
        foreach ($headerNames as $header => $name) {
            if (!isset(self::HEADERS[$header])) {
                throw new \InvalidArgumentException("headerNames can have " . implode(", ", array_keys(self::HEADERS)) . ", not $header");
            }
            if (!is_string($name) || !preg_match('/^[A-Za-z0-9!#$%&\'*+.^_`|~-]+$/D', $name)) {
                throw new \InvalidArgumentException("headerNames: $header is no name of a header");
            }
            $this->names[$header] = $name;
        }
        foreach (["app" => $app, "version" => $version, "language" => $language] as $header => $value) {
            $this->values[$header] = self::headerValue($header, $value);
        }
        $this->setAuthorization($authorization);
        $this->onWarning = \Closure::fromCallable($onWarning ?? static function (string $name, string $value): void {
            error_log(Check::printable("signpost: $name: $value" . ($name === "version_unknown" ? " served, not the version asked for" : "")));
        });
        $this->clock = \Closure::fromCallable($clock ?? static fn (): int => (int) (microtime(true) * 1000));
    }

    /** The user's credential. login() sets it, logout() removes it. CONTRACT 8. */
    public function authorization(): ?string
    {
        return ($this->authorization)();
    }

    public function setAuthorization(#[\SensitiveParameter] ?string $authorization): void
    {
        $value = self::headerValue("authorization", $authorization);
        $this->authorization = static fn (): ?string => $value;
    }

    public function __debugInfo(): array
    {
        return ["address" => $this->address];
    }

    /**
     * Signs the pairs and sends them, as query of a GET or form of a POST. Redirects are not followed.
     *
     * $repeatable says that a repetition does no harm: by default a GET's. Throws Problem from status 400 on, TransportError if there is no
     * response, \InvalidArgumentException if the call cannot be sent. Repeats by CONTRACT 10 before that.
     */
    public function call(string $method, string $path, #[\SensitiveParameter] array $pairs = [], ?bool $repeatable = null, ?float $timeout = null): Response
    {
        if ($method !== "GET" && $method !== "POST") {
            throw new \InvalidArgumentException("method must be GET or POST");
        }
        if (!preg_match('~^/(?:[A-Za-z0-9\-._\~!$&\'()*+,;=:@/]++|%[0-9A-Fa-f]{2})*+$~D', $path) || preg_match('~/(?:\.|%2e){1,2}(?:/|$)~Di', $path)) {
            throw new \InvalidArgumentException("path must begin with /, be encoded, and have no query, and no segment . or ..");
        }
        $repeatable ??= $method === "GET";
        $corrected = null;
        for ($repetition = 0; ; ) {
            $pause = 0.5 * 2 ** $repetition * (0.5 + mt_rand() / mt_getrandmax());
            try {
                $time = $this->nextNow() + ($corrected ?? $this->clockOffset);
                $text = sign($pairs, ($this->key)(), $this->profile, $method, $path, $time);
                $response = $this->send($method, $path, $text, $timeout ?? $this->timeout);
                $this->warn($response);
                $failure = $response->status < 400 ? null : new Problem($response, $this->signed($method, $path, $text));
                $isOutside = $failure !== null && $failure->code === "time_out_of_window";
                if ($isOutside && $corrected === null) {
                    $corrected = $this->correction($failure->serverTime);
                    if ($corrected !== null) {
                        continue;
                    }
                }
                if ($corrected !== null && !$isOutside) {
                    // The corrected time was accepted.
                    $this->clockOffset = $corrected;
                }
                if ($failure === null) {
                    return $response;
                }
                $again = in_array($failure->code, self::NOT_EXECUTED, true) || ($repeatable && in_array($failure->code, self::PERHAPS_EXECUTED, true));
                $pause = $failure->retryAfter ?? $pause;
            } catch (TransportError $failure) {
                $again = $repeatable || !$failure->sent;
            }
            if (!$again || $repetition >= $this->retries || $pause > $this->maxWait) {
                throw $failure;
            }
            self::pause($pause);
            $repetition++;
        }
    }

    /**
     * Logs a user in by polling, and sets the credential. Returns the login result: authorization, expires_in, created and account. CONTRACT 8.
     *
     * Calls $show with the address that the user must open, and the code that the user compares. Throws the Problem of a login that failed, for
     * example login_denied.
     */
    public function login(callable $show, ?string $provider = null): array
    {
        $begun = $this->document("POST", "/login", $provider === null ? [] : [["provider", $provider]]);
        $token = self::member($begun, "token");
        $end = self::seconds() + self::duration($begun, "expires_in", 600, 3600);
        $show(self::member($begun, "authorize_url", '~^https?://~'), self::member($begun, "user_code"));
        while (($start = self::seconds()) < $end) {
            $check = [["token", $token], ["wait", (string) self::CHECK_WAIT]];
            $checked = $this->document("POST", "/check", $check, true, self::CHECK_WAIT + 10);
            if (($checked["status"] ?? null) !== "pending") {
                break;
            }
            if (self::seconds() - $start < self::CHECK_WAIT / 2) {
                self::pause(min(self::duration($begun, "interval", 2, 60), $end - self::seconds()));
            }
        }
        $result = $this->document("POST", "/user/login", [["token", $token]], true);
        $this->setAuthorization(self::member($result, "authorization", '/^[ -~]+$/D'));
        return $result;
    }

    /** Ends the login, and forgets the credential. */
    public function logout(): void
    {
        $this->call("POST", "/user/logout");
        $this->setAuthorization(null);
    }

    /** The account of the user who is logged in. */
    public function user(): array
    {
        return $this->document("GET", "/user", []);
    }

    /** Stores an event with the account. It is repeated after a failure only if it has an $idempotencyKey. */
    public function sendEvent(string $event, #[\SensitiveParameter] ?string $data = null, ?string $idempotencyKey = null): array
    {
        $pairs = array_filter(["event" => $event, "data" => $data, "idempotency_key" => $idempotencyKey], "is_string");
        return $this->document("POST", "/event/send", $pairs, $idempotencyKey !== null);
    }

    private function document(string $method, string $path, #[\SensitiveParameter] array $pairs, ?bool $repeatable = null, ?float $timeout = null): array
    {
        $document = json_decode($this->call($method, $path, $pairs, $repeatable, $timeout)->body, true);
        return is_array($document) ? $document : throw new TransportError("$method $path: the response is no JSON object");
    }

    private function send(string $method, string $path, #[\SensitiveParameter] string $text, float $timeout): Response
    {
        [$target, $body] = $method === "GET" ? ["$path?$text", ""] : [$path, $text];
        $head = "$method $target HTTP/1.1\r\nHost: $this->host\r\nConnection: close\r\nAccept: application/json\r\nUser-Agent: signpost-php\r\n";
        foreach ($this->values + ["authorization" => $this->authorization()] as $header => $value) {
            $head .= $value === "" || $value === null ? "" : "{$this->names[$header]}: $value\r\n";
        }
        if ($method === "POST") {
            $head .= "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: " . strlen($body) . "\r\n";
        }
        try {
            return Http::response(Http::exchange($this->address, "$head\r\n$body", $this->connectTimeout, $timeout));
        } catch (TransportError $error) {
            throw new TransportError("$method $path at $this->address: {$error->getMessage()}", $error->sent);
        }
    }

    /** The clock's time, but one that no other request of this client has: two equal requests with one time would have one signature. */
    private function nextNow(): int
    {
        return $this->lastNow = max(($this->clock)(), $this->lastNow + 1);
    }

    /** What must be added to the clock's time, or null: who could have any time signed could keep requests for later. */
    private function correction(?int $serverTime): ?int
    {
        $now = ($this->clock)();
        // The clock may have been set back.
        $this->lastNow = min($this->lastNow, $now);
        return $serverTime !== null && abs($serverTime - $now) <= self::MAX_CORRECTION_MS ? $serverTime - $now : null;
    }

    /** What the client signed, as the gateway shows it: without key and secret values, at most 2 KiB. CONTRACT 7. */
    private function signed(string $method, string $path, #[\SensitiveParameter] string $text): string
    {
        $masked = str_replace(encode(($this->key)()), "***", preg_replace(self::SECRET, '$1***', $text));
        return preg_replace('/^(.{2048}).*/su', '$1', canonical("", $masked, $this->profile, $method, $path)) ?? "";
    }

    private function warn(Response $response): void
    {
        [$asked, $served] = [trim($this->values["version"] ?? ""), $response->header($this->names["version"]) ?? ""];
        $isOther = $asked !== "" && $served !== "" && strcasecmp($asked, $served) !== 0;
        $found = [
            "version_unknown" => $isOther || $response->header($this->sourceName) === "unknown" ? $served : null,
            "deprecated" => $response->header("Deprecation"),
            "sunset" => $response->header("Sunset"),
        ];
        foreach ($found as $name => $value) {
            if ($value !== null && !isset($this->warned[$name])) {
                $this->warned[$name] = true;
                ($this->onWarning)($name, $value);
            }
        }
    }

    private static function headerValue(string $header, #[\SensitiveParameter] ?string $value): ?string
    {
        // The value is not in the error: it can be a credential.
        if (preg_match('/[^ -~]/', $value ?? "")) {
            throw new \InvalidArgumentException("$header must be text of printable ASCII characters");
        }
        return $value;
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

    /** usleep() takes an hour at most, and this and that throw if it is negative. */
    private static function pause(float $seconds): void
    {
        $seconds = max(0, min($seconds, 1e9));
        time_nanosleep((int) $seconds, (int) (fmod($seconds, 1) * 1e9));
    }

    private static function seconds(): float
    {
        return hrtime(true) / 1e9;
    }
}

/**
 * HTTP over PHP's own sockets. php-cli has neither the curl extension nor, in http://, separate timeouts or a sign of truncated responses; and the
 * warnings of http:// have the query.
 *
 * @internal
 */
final class Http
{
    private const MAX_BODY = 16 << 20;
    private const MAX_HEAD = 65_536;
    private const MAX_INTERIM = 10;

    /** Sends a request, and reads until the gateway closes the connection, as the request asks it to. Throws TransportError. */
    public static function exchange(string $address, #[\SensitiveParameter] string $request, float $connectTimeout, float $timeout): string
    {
        $reason = null;
        // PHP reports the reasons as warnings.
        set_error_handler(static function (int $level, string $text) use (&$reason): bool {
            $reason ??= preg_replace(['/^\w+\(\): /', '/\s+/'], ["", " "], $text);
            return true;
        });
        $end = hrtime(true) / 1e9 + $timeout;
        try {
            $stream = stream_socket_client($address, $number, $text, min($connectTimeout, $timeout));
            if ($stream === false) {
                throw new TransportError($reason ?? "no connection", false);
            }
            // A blocking write would have no time limit.
            stream_set_blocking($stream, false);
            while ($request !== "") {
                [$none, $writable] = [null, [$stream]];
                $left = self::left($end, $timeout);
                stream_select($none, $writable, $none, (int) $left, (int) (fmod($left, 1) * 1_000_000));
                $written = fwrite($stream, $request);
                if ($written === false) {
                    // A gateway that rejects a form may have closed the connection: its response says why.
                    break;
                }
                $request = substr($request, $written);
            }
            stream_set_blocking($stream, true);
            $received = "";
            do {
                $left = self::left($end, $timeout);
                stream_set_timeout($stream, (int) $left, (int) (fmod($left, 1) * 1_000_000));
                $received .= fread($stream, 65_536);
                // The rest is for heads, and sizes of chunks.
                if (strlen($received) > self::MAX_BODY + (1 << 20)) {
                    throw new TransportError("the response has more than 16 MiB");
                }
                $state = stream_get_meta_data($stream);
            } while (!$state["eof"]);
            return $received;
        } finally {
            restore_error_handler();
            if ($stream ?? false) {
                fclose($stream);
            }
        }
    }

    /** The seconds that are left. */
    private static function left(float $end, float $timeout): float
    {
        $left = $end - hrtime(true) / 1e9;
        return $left > 0 ? $left : throw new TransportError("no response within $timeout s");
    }

    /** Reads a whole response of HTTP/1.1. Throws TransportError if it is malformed, or broke off. */
    public static function response(#[\SensitiveParameter] string $received): Response
    {
        $interim = -1;
        do {
            [$head, $rest] = explode("\r\n\r\n", $received, 2) + [1 => null];
            if ($rest === null || strlen($head) > self::MAX_HEAD || $interim++ >= self::MAX_INTERIM || !preg_match('~^HTTP/1\.[01] ([1-9][0-9]{2})(?: [^\r\n]*)?(?:\r\n|$)~D', $head, $match)) {
                throw new TransportError($received === "" ? "the connection was closed without a response" : "the response is malformed, or broke off");
            }
            $received = $rest;
        } while ($match[1] < 200);
        $headers = [];
        foreach (array_slice(explode("\r\n", $head), 1) as $line) {
            [$name, $value] = explode(":", $line, 2) + [1 => ""];
            $name = strtolower($name);
            $headers[$name] = (isset($headers[$name]) ? "$headers[$name], " : "") . trim($value, " \t");
        }
        $status = (int) $match[1];
        if ($status === 204 || $status === 304) {
            return new Response($status, $headers, "");
        }
        if (isset($headers["transfer-encoding"])) {
            $rest = self::dechunked($rest);
        } elseif (isset($headers["content-length"])) {
            $length = $headers["content-length"];
            $rest = preg_match('/^[0-9]{1,18}$/D', $length) && strlen($rest) >= $length ? substr($rest, 0, (int) $length) : null;
        }
        if (strlen($rest ?? "") > self::MAX_BODY) {
            throw new TransportError("the response has more than 16 MiB");
        }
        return new Response($status, $headers, $rest ?? throw new TransportError("the response is malformed, or broke off"));
    }

    private static function dechunked(#[\SensitiveParameter] string $chunks): ?string
    {
        $body = "";
        for ($at = 0; preg_match('/\G([0-9a-f]{1,8})[^\r\n]*\r\n/i', $chunks, $size, 0, $at); $at += $length + 2) {
            $length = hexdec($size[1]);
            $at += strlen($size[0]);
            if ($length === 0) {
                return $body;
            }
            $body .= substr($chunks, $at, $length);
        }
        return null;
    }
}

/**
 * A sign profile, complete, and its canonical string. CONTRACT 3.
 *
 * @internal
 */
final class Rules
{
    private const ALLOWED = [
        "preset" => ["plain", "decoded", "bilibili", "alipay", "wechat", "top"],
        "values" => ["wire", "decoded"],
        "layout" => ["pairs", "pairs-key", "concat", "concat-both"],
        "empty" => ["keep", "drop"],
        "cover" => ["parameters", "request"],
        "algorithm" => ["md5", "hmac-sha256"],
    ];
    private const PRESETS = [
        "plain" => [],
        "decoded" => ["values" => "decoded"],
        "bilibili" => [],
        "alipay" => ["values" => "decoded", "empty" => "drop", "leave_out" => ["sign_type"]],
        "wechat" => ["values" => "decoded", "empty" => "drop", "layout" => "pairs-key"],
        "top" => ["values" => "decoded", "empty" => "drop", "layout" => "concat-both"],
    ];

    public string $values = "wire";
    public string $layout = "pairs";
    public string $empty = "keep";
    public array $leave_out = [];
    public string $cover = "parameters";
    public string $algorithm = "md5";
    public string $preset = "plain";

    public function __construct(?array $profile)
    {
        foreach ($profile ?? [] as $name => $value) {
            if ($name === "leave_out") {
                $isList = is_array($value) && $value === array_filter($value, "is_string");
                if (!$isList || in_array("time", $value, true) || in_array("", $value, true)) {
                    throw new \InvalidArgumentException("profile: leave_out must be a list of names, without time");
                }
            } elseif (!isset(self::ALLOWED[$name])) {
                throw new \InvalidArgumentException("profile can have " . implode(", ", array_keys(self::ALLOWED)) . ", leave_out, not $name");
            } elseif (!in_array($value, self::ALLOWED[$name], true)) {
                throw new \InvalidArgumentException("profile: $name must be one of " . implode(", ", self::ALLOWED[$name]));
            }
        }
        foreach (($profile ?? []) + self::PRESETS[$profile["preset"] ?? "plain"] as $name => $value) {
            $this->$name = $value;
        }
    }

    /** The canonical string of pairs as sent, with the key where the layout has it. */
    public function canonical(
        #[\SensitiveParameter] string $query,
        #[\SensitiveParameter] string $form,
        #[\SensitiveParameter] string $key,
        string $method,
        string $path,
    ): string {
        if ($this->cover === "request" && ($method === "" || $path === "")) {
            throw new \InvalidArgumentException("cover request needs method and path");
        }
        $pairs = array_filter([...self::parsed($query), ...self::parsed($form)], fn (array $pair): bool => $this->signs(...$pair["decoded"]));
        // strcmp() compares bytes. Other comparisons take names of digits for numbers. usort() keeps the order of equal names.
        usort($pairs, static fn (array $one, array $other): int => strcmp($one["decoded"][0], $other["decoded"][0]));
        $isConcat = in_array($this->layout, ["concat", "concat-both"], true);
        $parts = array_map(fn (array $pair): string => implode($isConcat ? "" : "=", $pair[$this->values]), $pairs);
        if ($this->layout === "pairs-key") {
            $parts[] = "key=$key";
        }
        // The key of HMAC is not in the string, but where the layout names it.
        $keyOfMd5 = $this->algorithm === "md5" ? $key : "";
        $before = $this->layout === "concat-both" ? $keyOfMd5 : "";
        $after = $this->layout === "pairs-key" ? "" : $keyOfMd5;
        return ($this->cover === "request" ? "$method\n$path\n" : "") . $before . implode($isConcat ? "" : "&", $parts) . $after;
    }

    private function signs(string $name, string $value): bool
    {
        return $name !== "sign" && !in_array($name, $this->leave_out, true) && !($this->empty === "drop" && $value === "");
    }

    /** The pairs of a query or form: each as sent ("wire"), and "decoded". */
    private static function parsed(#[\SensitiveParameter] string $text): array
    {
        $pairs = [];
        foreach (explode("&", Check::text($text, "query or form")) as $pair) {
            if ($pair !== "") {
                $wire = explode("=", $pair, 2) + [1 => ""];
                $pairs[] = ["wire" => $wire, "decoded" => array_map([self::class, "decoded"], $wire)];
            }
        }
        return $pairs;
    }

    private static function decoded(#[\SensitiveParameter] string $text): string
    {
        if (preg_match('/%(?![0-9A-Fa-f]{2})/', $text)) {
            throw new \InvalidArgumentException("query or form has a broken escape");
        }
        return Check::text(urldecode($text), "query or form");
    }
}

/**
 * Checks of what the user gives. Each throws \InvalidArgumentException.
 *
 * @internal
 */
final class Check
{
    /** Pairs as a list. An array with names as keys has pairs, too. */
    public static function pairs(#[\SensitiveParameter] array $pairs): array
    {
        $isList = array_keys($pairs) === array_keys(array_values($pairs));
        $list = [];
        foreach ($pairs as $name => $pair) {
            // PHP makes the key "1" a number.
            $pair = $isList ? $pair : [(string) $name, $pair];
            if (!is_array($pair) || array_keys($pair) !== [0, 1]) {
                throw new \InvalidArgumentException("each pair must be [name, value]");
            }
            foreach ($pair as $part) {
                if (!is_string($part)) {
                    throw new \InvalidArgumentException("a name or a value must be text, not " . get_debug_type($part));
                }
                self::text($part, "a name or a value");
            }
            if ($pair[0] === "sign") {
                throw new \InvalidArgumentException("sign is added, and must not be among the pairs");
            }
            $list[] = $pair;
        }
        return $list;
    }

    public static function key(#[\SensitiveParameter] string $key): string
    {
        if ($key === "" || preg_match('/^[\s\p{Z}\x{FEFF}]|[\s\p{Z}\x{FEFF}]$/Du', self::text($key, "key"))) {
            throw new \InvalidArgumentException("key is empty, or has white space or a line break at an end");
        }
        return $key;
    }

    /** With spaces for control and format characters and separators of lines: it can reach a terminal or a log. CONTRACT 7. */
    public static function printable(#[\SensitiveParameter] string $text): string
    {
        $printable = preg_replace('/(?![\x{200C}\x{200D}])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u', " ", $text);
        // What is not UTF-8 becomes ASCII.
        return $printable ?? preg_replace('/[^ -~]/', " ", $text);
    }

    public static function text(#[\SensitiveParameter] string $text, string $what): string
    {
        return preg_match('//u', $text) ? $text : throw new \InvalidArgumentException("$what is not UTF-8");
    }
}
