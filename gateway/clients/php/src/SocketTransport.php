<?php

// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

declare(strict_types=1);

namespace Signpost;

/**
 * HTTP/1.1 over PHP's own sockets, with connections that are kept: php-cli has no curl extension, and its http:// keeps none, does not notice
 * truncated responses, and shows the query in warnings.
 */
final class SocketTransport implements Transport
{
    /** CONTRACT 10: below the gateway's 60 s. */
    private const MAX_IDLE_SECONDS = 50;
    private const MAX_IDLE = 8;

    /** @var array<string, list<Connection>> */
    private array $idle = [];
    private int $process;
    /** Connections of the process that forked this one. To close them here would end them there. */
    private array $foreign = [];

    /**
     * $proxy is http://[user:password@]host:port, "" for none, null for that of HTTPS_PROXY or HTTP_PROXY, unless NO_PROXY has the host. $caFile has
     * the authorities to trust, in place of the system's; $clientCertFile and $clientKeyFile a certificate of the client's own, all PEM.
     */
    public function __construct(
        private float $connectTimeout = 5,
        #[\SensitiveParameter] private ?string $proxy = null,
        private ?string $caFile = null,
        private ?string $clientCertFile = null,
        private ?string $clientKeyFile = null,
    ) {
        if (($proxy ?? "") !== "") {
            self::parsedProxy($proxy);
        }
        $this->process = getmypid();
    }

    public function __debugInfo(): array
    {
        return [];
    }

    public function send(Request $request): Response
    {
        $end = hrtime(true) / 1e9 + $request->timeout;
        $connection = $this->idle($request->origin) ?? $this->open($request, $end);
        try {
            $response = $connection->exchange($request, $end);
        } catch (\Throwable $error) {
            $connection->close();
            throw $error;
        }
        if ($connection->isReusable && count($this->idle[$request->origin]) < self::MAX_IDLE) {
            $this->idle[$request->origin][] = $connection;
        } else {
            $connection->close();
        }
        return $response;
    }

    private function idle(string $origin): ?Connection
    {
        if ($this->process !== getmypid()) {
            [$this->process, $this->foreign[], $this->idle] = [getmypid(), $this->idle, []];
        }
        $this->idle[$origin] ??= [];
        while (($connection = array_pop($this->idle[$origin])) !== null) {
            if ($connection->isAlive(self::MAX_IDLE_SECONDS)) {
                return $connection;
            }
            $connection->close();
        }
        return null;
    }

    private function open(Request $request, float $end): Connection
    {
        preg_match('~^(https?)://(.+?)(?::([0-9]+))?$~Di', $request->origin, $parts);
        $isTls = strtolower($parts[1]) === "https";
        $port = $parts[3] ?? ($isTls ? "443" : "80");
        $proxy = $this->proxyFor($isTls, trim($parts[2], "[]"));
        $context = stream_context_create(["ssl" => array_filter([
            "peer_name" => trim($parts[2], "[]"),
            "cafile" => $this->caFile,
            "local_cert" => $this->clientCertFile,
            "local_pk" => $this->clientKeyFile,
            "alpn_protocols" => "http/1.1",
        ])]);
        $connectEnd = min($end, hrtime(true) / 1e9 + $this->connectTimeout);
        $connection = Connection::open("tcp://" . ($proxy[0] ?? "$parts[2]:$port"), $context, $connectEnd, $request->cancelled);
        try {
            if ($isTls && $proxy !== null) {
                $connection->tunnel("$parts[2]:$port", $proxy[1], $connectEnd);
            }
            if ($isTls) {
                $connection->encrypt($connectEnd);
            } elseif ($proxy !== null) {
                $connection->useProxy($proxy[1]);
            }
        } catch (\Throwable $error) {
            $connection->close();
            throw $error;
        }
        return $connection;
    }

    /** Host and port of the proxy, and its credential, or null. */
    private function proxyFor(bool $isTls, string $host): ?array
    {
        // A web server makes HTTP_PROXY of a request's header Proxy.
        $names = $isTls ? ["https_proxy", "HTTPS_PROXY"] : ["http_proxy", ...(PHP_SAPI === "cli" ? ["HTTP_PROXY"] : [])];
        $variable = static fn (string ...$names): string => (string) current([...array_filter(array_map("getenv", $names), "is_string"), ""]);
        $proxy = $this->proxy ?? $variable(...$names);
        foreach ($this->proxy === null ? explode(",", $variable("no_proxy", "NO_PROXY")) : [] as $entry) {
            $entry = ltrim(strtolower(preg_replace('/:[0-9]+$/', "", trim($entry))), ".");
            if ($entry === "*" || ($entry !== "" && str_ends_with("." . strtolower($host), ".$entry"))) {
                return null;
            }
        }
        return $proxy === "" ? null : self::parsedProxy($proxy);
    }

    private static function parsedProxy(#[\SensitiveParameter] string $proxy): array
    {
        if (!preg_match('~^(?:http://)?(?:([^@/]*)@)?(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?/?$~Di', $proxy, $parts)) {
            throw new \InvalidArgumentException("proxy must be http://host:port, perhaps with user:password@ before the host");
        }
        return [$parts[2] . ":" . (($parts[3] ?? "") === "" ? "80" : $parts[3]), $parts[1] === "" ? null : rawurldecode($parts[1])];
    }
}
