<?php

// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

declare(strict_types=1);

namespace Signpost;

/**
 * A connection that carries one request after the other. The stream does not block: each wait has a deadline, and asks whether the call is cancelled.
 *
 * @internal
 */
final class Connection
{
    private const MAX_HEAD = 65_536;
    private const MAX_INTERIM = 10;
    private const MAX_ERROR_BODY = 1 << 20;

    public bool $isReusable = false;
    private string $received = "";
    private bool $isAtEnd = false;
    private bool $isReused = false;
    private float $idleSince = 0;
    private float $end;
    private ?\Closure $cancelled;
    /** The proxy takes absolute addresses, and perhaps a credential. */
    private bool $isProxied = false;
    private string $proxyHeader = "";

    /** @param resource $stream */
    private function __construct(private $stream)
    {
        stream_set_blocking($stream, false);
    }

    /** @param resource $context */
    public static function open(string $address, $context, float $end, ?\Closure $cancelled): self
    {
        [$stream, $reason] = self::quietly(static function () use ($address, $context, $end) {
            return stream_socket_client($address, $number, $text, max(0.001, $end - self::now()), STREAM_CLIENT_CONNECT, $context);
        });
        $connection = new self($stream ?: throw new TransportError($reason ?? "no connection", false));
        [$connection->end, $connection->cancelled] = [$end, $cancelled];
        return $connection;
    }

    public function close(): void
    {
        fclose($this->stream);
    }

    /** Whether an idle connection can be used: the gateway may have closed it, or sent what nobody asked for. */
    public function isAlive(int $maxIdle): bool
    {
        $this->isReused = true;
        return self::now() - $this->idleSince < $maxIdle && !$this->fill() && !$this->isAtEnd;
    }

    public function useProxy(#[\SensitiveParameter] ?string $credential): void
    {
        $this->isProxied = true;
        $this->proxyHeader = $credential === null ? "" : "Proxy-Authorization: Basic " . base64_encode($credential) . "\r\n";
    }

    /** Asks the proxy for a connection to host and port. */
    public function tunnel(string $authority, #[\SensitiveParameter] ?string $credential, float $end): void
    {
        $this->useProxy($credential);
        try {
            $this->write("CONNECT $authority HTTP/1.1\r\nHost: $authority\r\n$this->proxyHeader\r\n");
            [$status] = $this->head();
        } catch (TransportError $error) {
            throw new TransportError("proxy: {$error->getMessage()}", false);
        }
        [$this->isProxied, $this->proxyHeader] = [false, ""];
        if ($status >= 300 || $this->received !== "") {
            throw new TransportError("the proxy refuses the connection: $status", false);
        }
    }

    public function encrypt(float $end): void
    {
        $method = STREAM_CRYPTO_METHOD_TLSv1_2_CLIENT | STREAM_CRYPTO_METHOD_TLSv1_3_CLIENT;
        while (true) {
            [$done, $reason] = self::quietly(fn () => stream_socket_enable_crypto($this->stream, true, $method));
            if ($done !== 0) {
                break;
            }
            try {
                $this->wait(false);
            } catch (TransportError $error) {
                throw new TransportError("TLS: {$error->getMessage()}", false);
            }
        }
        if ($done !== true) {
            throw new TransportError($reason ?? "no TLS connection", false);
        }
    }

    /** Sends a request, and reads the response. */
    public function exchange(Request $request, float $end): Response
    {
        [$this->end, $this->cancelled, $this->isReusable] = [$end, $request->cancelled, false];
        $head = "$request->method " . ($this->isProxied ? $request->origin : "") . "$request->target HTTP/1.1\r\n";
        $head .= "Host: " . explode("://", $request->origin)[1] . "\r\n$this->proxyHeader";
        foreach ($request->headers as $name => $value) {
            $head .= "$name: $value\r\n";
        }
        $head .= $request->length === null ? "\r\n" : "Content-Length: $request->length\r\n\r\n";
        try {
            $isSent = is_string($request->body) ? $this->write($head . $request->body) : $this->write($head) && $this->writeStream($request);
            [$status, $headers, $version] = $this->head();
        } catch (TransportError $error) {
            throw new TransportError($error->getMessage(), true, $this->isReused && $this->received === "" && $this->isAtEnd);
        }
        $sink = $status < 400 ? $request->sink : null;
        [$body, $length, $whole] = ["", 0, true];
        $limit = $status < 400 ? $request->limit : self::MAX_ERROR_BODY;
        foreach ($this->pieces($request->method, $status, $headers) as $piece) {
            if (($length += strlen($piece)) > $limit) {
                $whole = $status < 400 ? throw new TransportError("the response has more than $limit bytes") : false;
                $body = substr($body . $piece, 0, $limit);
                break;
            }
            $sink === null ? $body .= $piece : $sink($piece);
        }
        // RFC 9112 section 6.3: with both, the length may be an attack.
        $isAmbiguous = isset($headers["transfer-encoding"], $headers["content-length"]);
        $isKept = $version === "1" && !$isAmbiguous && !preg_match('/(^|,)\s*close\s*(,|$)/i', $headers["connection"] ?? "");
        $this->isReusable = $isSent && $whole && $isKept && !$this->isAtEnd && $this->received === "";
        $this->idleSince = self::now();
        return new Response($status, $headers, $body);
    }

    /** Sends bytes. Returns false if a response began before all were sent, or the gateway takes no more: its response says why. */
    private function write(#[\SensitiveParameter] string $bytes): bool
    {
        for ($at = 0; $at < strlen($bytes); ) {
            [$written] = self::quietly(fn () => fwrite($this->stream, substr($bytes, $at, 65_536)));
            $at += (int) $written;
            $isOver = $this->fill() && preg_match('~^HTTP/1\.[01] [2-9]~', $this->received);
            if ($isOver || $this->isAtEnd || ($written === false && self::now() >= $this->end)) {
                return $at >= strlen($bytes);
            }
            if ((int) $written === 0) {
                $this->wait(true);
            }
        }
        return true;
    }

    private function writeStream(Request $request): bool
    {
        for ($left = $request->length; $left > 0; $left -= strlen($piece)) {
            $piece = (string) fread($request->body, min($left, 65_536));
            if ($piece === "") {
                throw new TransportError("the body's stream has become shorter");
            }
            if (!$this->write($piece)) {
                return false;
            }
        }
        return true;
    }

    /** Reads a head, after interim responses: status, headers with names in lower case, and the digit behind HTTP/1. */
    private function head(): array
    {
        for ($interim = 0; $interim <= self::MAX_INTERIM; $interim++) {
            while (($at = strpos($this->received, "\r\n\r\n")) === false && strlen($this->received) <= self::MAX_HEAD) {
                $this->more($this->received === "" ? "the connection was closed without a response" : "the response broke off");
            }
            $head = substr($this->received, 0, (int) $at);
            if ($at === false || $at > self::MAX_HEAD || !preg_match('~^HTTP/1\.([01]) ([1-9][0-9]{2})(?: [^\r\n]*)?(?:\r\n|$)~D', $head, $match)) {
                break;
            }
            $this->received = substr($this->received, $at + 4);
            if ((int) $match[2] === 101) {
                break;
            }
            if ((int) $match[2] >= 200) {
                return [(int) $match[2], self::headers($head), $match[1]];
            }
        }
        throw new TransportError("the response is malformed");
    }

    private static function headers(string $head): array
    {
        $headers = [];
        foreach (array_slice(explode("\r\n", $head), 1) as $line) {
            [$name, $value] = explode(":", $line, 2) + [1 => ""];
            $name = strtolower($name);
            $headers[$name] = (isset($headers[$name]) ? "$headers[$name], " : "") . trim($value, " \t");
        }
        return $headers;
    }

    /** The body, whose end is that of its framing. */
    private function pieces(string $method, int $status, array $headers): \Generator
    {
        if ($method === "HEAD" || $status === 204 || $status === 304) {
            return;
        }
        if (isset($headers["transfer-encoding"])) {
            strcasecmp($headers["transfer-encoding"], "chunked") === 0 || throw new TransportError("the response is malformed");
            while (($size = $this->chunkSize()) > 0) {
                yield from $this->exactly($size);
                $this->line() === "" || throw new TransportError("the response is malformed");
            }
            while ($this->line() !== "") {
                // A trailer.
            }
        } elseif (isset($headers["content-length"])) {
            $length = preg_match('/^[0-9]{1,18}$/D', $headers["content-length"]) ? (int) $headers["content-length"] : null;
            yield from $this->exactly($length ?? throw new TransportError("the response is malformed"));
        } else {
            while (true) {
                if ($this->received !== "") {
                    yield $this->taken(strlen($this->received));
                }
                if (!$this->fill()) {
                    if ($this->isAtEnd) {
                        return;
                    }
                    $this->wait(false);
                }
            }
        }
    }

    private function chunkSize(): int
    {
        return preg_match('/^([0-9a-f]{1,8})[ \t]*(?:;|$)/Di', $this->line(), $size) ? hexdec($size[1]) : throw new TransportError("the response is malformed");
    }

    private function line(): string
    {
        while (($at = strpos($this->received, "\r\n")) === false) {
            strlen($this->received) <= self::MAX_HEAD || throw new TransportError("the response is malformed");
            $this->more("the response broke off");
        }
        $line = $this->taken($at);
        $this->taken(2);
        return $line;
    }

    private function exactly(int $length): \Generator
    {
        while ($length > 0) {
            if ($this->received === "") {
                $this->more("the response broke off");
            }
            $piece = $this->taken(min($length, strlen($this->received)));
            $length -= strlen($piece);
            yield $piece;
        }
    }

    private function taken(int $length): string
    {
        $taken = substr($this->received, 0, $length);
        $this->received = substr($this->received, $length);
        return $taken;
    }

    private function more(string $otherwise): void
    {
        while (!$this->fill()) {
            if ($this->isAtEnd) {
                throw new TransportError($otherwise);
            }
            $this->wait(false);
        }
    }

    /** Takes what has arrived. First, since a wait does not see what TLS has decrypted already. */
    private function fill(): bool
    {
        [$bytes] = self::quietly(fn () => fread($this->stream, 65_536));
        $this->received .= (string) $bytes;
        $this->isAtEnd = $this->isAtEnd || ($bytes === "" || $bytes === false) && feof($this->stream);
        return (string) $bytes !== "";
    }

    private function wait(bool $toWrite): void
    {
        if ($this->cancelled !== null && ($this->cancelled)()) {
            throw new Cancelled("the call was cancelled");
        }
        $left = $this->end - self::now();
        if ($left <= 0) {
            throw new TransportError("no response in time");
        }
        $left = $this->cancelled === null ? $left : min($left, 0.05);
        [$readable, $writable, $none] = [[$this->stream], $toWrite ? [$this->stream] : null, null];
        self::quietly(static function () use ($readable, $writable, $none, $left) {
            return stream_select($readable, $writable, $none, (int) $left, (int) (fmod($left, 1) * 1_000_000));
        });
    }

    private static function now(): float
    {
        return hrtime(true) / 1e9;
    }

    /** The result, and the first of the warnings, by which PHP reports reasons. */
    private static function quietly(\Closure $function): array
    {
        $reason = null;
        set_error_handler(static function (int $level, string $text) use (&$reason): bool {
            $reason ??= preg_replace(['/^\w+\(\): /', '/\s+/'], ["", " "], $text);
            return true;
        });
        try {
            return [$function(), $reason];
        } finally {
            restore_error_handler();
        }
    }
}
