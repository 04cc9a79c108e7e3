<?php

// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

declare(strict_types=1);

namespace Signpost;

/** HTTP/1.1 by libcurl, with connections that are kept. */
final class CurlTransport implements Transport
{
    private const MAX_HEAD = 65_536;
    private const HEAD = '~^HTTP/1\.[01] (?!101)[1-9][0-9]{2}[ \r]~';
    /** RFC 9112 section 6.3: two of them may be an attack. */
    private const AMBIGUOUS = '~^(?:Content-Length|Transfer-Encoding):.*^(?:Content-Length|Transfer-Encoding):~ims';
    /** Of libcurl. PHP has no name for it. */
    private const SEND_FAIL_REWIND = 65;
    private const MAX_ERROR_BODY = 1 << 20;

    /** @var list<\CurlMultiHandle> Each has the connections of requests that followed each other, and is of one request at a time. */
    private array $idle = [];
    private int $process;
    /** Those of the process that forked this one. To close their connections here would end them there. */
    private array $foreign = [];
    private array $options;

    /**
     * $proxy is http://[user:password@]host:port, "" for none, null for that of HTTPS_PROXY or HTTP_PROXY, unless NO_PROXY has the host. $caFile has
     * the authorities to trust, in place of the system's; $clientCertFile and $clientKeyFile a certificate of the client's own, all PEM.
     */
    public function __construct(
        float $connectTimeout = 5,
        #[\SensitiveParameter] ?string $proxy = null,
        ?string $caFile = null,
        ?string $clientCertFile = null,
        ?string $clientKeyFile = null,
    ) {
        if (($proxy ?? "") !== "" && !preg_match('~^(?:http://)?(?:[^@/]*@)?(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?/?$~Di', $proxy)) {
            throw new \InvalidArgumentException("proxy must be http://host:port, perhaps with user:password@ before the host");
        }
        $this->process = getmypid();
        $this->options = [
            CURLOPT_HTTP_VERSION => CURL_HTTP_VERSION_1_1,
            CURLOPT_SSLVERSION => CURL_SSLVERSION_TLSv1_2,
            CURLOPT_CONNECTTIMEOUT_MS => max(1, (int) ($connectTimeout * 1000)),
            CURLOPT_PATH_AS_IS => true,
            CURLOPT_SUPPRESS_CONNECT_HEADERS => true,
            CURLOPT_PROXYPORT => 80,
        ];
        $this->options += $proxy === null ? [] : [CURLOPT_PROXY => $proxy, CURLOPT_NOPROXY => ""];
        // Without a folder that has none, libcurl adds the system's authorities.
        $this->options += $caFile === null ? [] : [CURLOPT_CAINFO => $caFile, CURLOPT_CAPATH => $caFile];
        $this->options += $clientCertFile === null ? [] : [CURLOPT_SSLCERT => $clientCertFile];
        $this->options += $clientKeyFile === null ? [] : [CURLOPT_SSLKEY => $clientKeyFile];
        // CONTRACT 10: below the gateway's 60 s. PHP 8.1 has no such option.
        $this->options += defined("CURLOPT_MAXAGE_CONN") ? [CURLOPT_MAXAGE_CONN => 50] : [];
    }

    public function __debugInfo(): array
    {
        return [];
    }

    public function send(Request $request): Response
    {
        if ($this->process !== getmypid()) {
            [$this->process, $this->foreign[], $this->idle] = [getmypid(), $this->idle, []];
        }
        $multi = array_pop($this->idle) ?? curl_multi_init();
        $handle = curl_init($request->origin . $request->target);
        [$head, $received] = ["", ""];
        curl_setopt_array($handle, $this->optionsOf($request) + $this->options + [
            CURLOPT_HEADERFUNCTION => static function ($handle, string $line) use (&$head): int {
                // A new one follows an interim response.
                $head = str_starts_with($line, "HTTP/") ? $line : $head . $line;
                return strlen($head) <= self::MAX_HEAD && preg_match(self::HEAD, $head) && !preg_match(self::AMBIGUOUS, $head) ? strlen($line) : -1;
            },
            CURLOPT_WRITEFUNCTION => static function ($handle, string $piece) use (&$received): int {
                $received .= $piece;
                return strlen($piece);
            },
        ]);
        curl_multi_add_handle($multi, $handle);
        try {
            return $this->receive($request, $multi, $handle, $head, $received);
        } finally {
            // If the response is not whole, this closes the connection.
            curl_multi_remove_handle($multi, $handle);
            $this->idle[] = $multi;
        }
    }

    private function optionsOf(Request $request): array
    {
        // libcurl would wait before it sends a long body.
        $headers = ["Expect:"];
        foreach ($request->headers as $name => $value) {
            $headers[] = $value === "" ? "$name;" : "$name: $value";
        }
        $options = [
            CURLOPT_HTTPHEADER => $headers,
            CURLOPT_CUSTOMREQUEST => $request->method,
            CURLOPT_NOBODY => $request->method === "HEAD",
            // If a kept connection turns out to be closed, libcurl sends a request again, though it may have been executed: but not one whose body
            // cannot be read twice, as that of a function.
            CURLOPT_FRESH_CONNECT => !$request->repeatable && (int) $request->length === 0,
        ];
        // libcurl does not read it in upper case: a web server makes it of a request's header Proxy.
        $proxy = PHP_SAPI === "cli" && getenv("http_proxy") === false && !str_starts_with($request->origin, "https") ? getenv("HTTP_PROXY") : false;
        $options += $proxy === false || isset($this->options[CURLOPT_PROXY]) ? [] : [CURLOPT_PROXY => $proxy];
        if ($request->length === null) {
            return $options;
        }
        $at = 0;
        return $options + [
            CURLOPT_UPLOAD => true,
            CURLOPT_INFILESIZE => $request->length,
            CURLOPT_READFUNCTION => static function ($handle, $stream, int $most) use ($request, &$at): string {
                $piece = is_string($request->body) ? substr($request->body, $at, $most) : fread($request->body, min($most, $request->length - $at));
                $at += strlen($piece);
                return $piece;
            },
        ];
    }

    /** Receives the response, and hands its body on as it arrives: not in libcurl's functions, where a sink could call nothing. */
    private function receive(Request $request, \CurlMultiHandle $multi, \CurlHandle $handle, string &$head, string &$received): Response
    {
        [$body, $length, $end] = ["", 0, hrtime(true) / 1e9 + $request->timeout];
        do {
            curl_multi_exec($multi, $running);
            $status = curl_getinfo($handle, CURLINFO_RESPONSE_CODE);
            [$piece, $received] = [$received, ""];
            $length += strlen($piece);
            if ($status >= 400) {
                $body .= $piece;
                if ($length > self::MAX_ERROR_BODY) {
                    return new Response($status, self::headers($head), substr($body, 0, self::MAX_ERROR_BODY));
                }
            } elseif ($length > $request->limit) {
                throw new TransportError("the response has more than $request->limit bytes");
            } elseif ($request->sink === null) {
                $body .= $piece;
            } elseif ($piece !== "") {
                ($request->sink)($piece);
            }
            if ($running > 0) {
                ($request->cancelled !== null && ($request->cancelled)()) && throw new Cancelled("the call was cancelled");
                $left = $end - hrtime(true) / 1e9;
                $left > 0 || throw new TransportError("no response in time", self::isSent($handle));
                curl_multi_select($multi, min($left, $request->cancelled === null ? 1 : 0.05));
            }
        } while ($running > 0);
        $result = curl_multi_info_read($multi)["result"];
        if ($result !== CURLE_OK) {
            $reasons = [self::SEND_FAIL_REWIND => "the connection was closed without a response", CURLE_WRITE_ERROR => "the response is malformed"];
            throw new TransportError($reasons[$result] ?? (curl_error($handle) ?: curl_strerror($result)), self::isSent($handle), $result === self::SEND_FAIL_REWIND);
        }
        return new Response($status, self::headers($head), $body);
    }

    /** Whether there was a connection, with TLS. */
    private static function isSent(\CurlHandle $handle): bool
    {
        return curl_getinfo($handle, CURLINFO_PRETRANSFER_TIME) > 0;
    }

    /** By names in lower case. */
    private static function headers(string $head): array
    {
        $headers = [];
        foreach (array_slice(explode("\r\n", rtrim($head)), 1) as $line) {
            [$name, $value] = explode(":", $line, 2) + [1 => ""];
            $name = strtolower($name);
            $headers[$name] = (isset($headers[$name]) ? "$headers[$name], " : "") . trim($value, " \t");
        }
        return $headers;
    }
}
