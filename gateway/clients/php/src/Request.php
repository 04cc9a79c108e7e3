<?php

// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

declare(strict_types=1);

namespace Signpost;

/** A signed request, for a Transport. var_dump() shows neither query, headers nor body. */
final class Request
{
    /**
     * @param string $origin https://api.example:8443
     * @param string $target path and query
     * @param array<string, string> $headers without Host and Content-Length
     * @param string|resource $body a seekable stream has $length bytes from its current position
     * @param float $timeout seconds until the response must be there
     * @param ?\Closure $cancelled returns true if the request is no longer wanted
     * @param ?\Closure $sink gets the pieces of a body whose status is below 400
     * @param int $limit of bytes of the response's body
     * @param bool $repeatable whether it does no harm to send it twice
     */
    public function __construct(
        public readonly string $method,
        public readonly string $origin,
        #[\SensitiveParameter] public readonly string $target,
        #[\SensitiveParameter] public readonly array $headers,
        #[\SensitiveParameter] public readonly mixed $body,
        public readonly ?int $length,
        public readonly float $timeout = 65,
        public readonly ?\Closure $cancelled = null,
        public readonly ?\Closure $sink = null,
        public readonly int $limit = 16 << 20,
        public readonly bool $repeatable = true,
    ) {
    }

    public function __debugInfo(): array
    {
        return ["method" => $this->method, "origin" => $this->origin, "path" => explode("?", $this->target)[0]];
    }
}
