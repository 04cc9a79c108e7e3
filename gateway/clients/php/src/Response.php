<?php

// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

declare(strict_types=1);

namespace Signpost;

/** A response. var_dump() does not show its body, which can have a credential. */
final class Response
{
    /** @param array<string, string> $headers with names in lower case */
    public function __construct(
        public readonly int $status,
        public readonly array $headers = [],
        #[\SensitiveParameter] public readonly string $body = "",
    ) {
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

    /** Seconds of Retry-After: a number, or an HTTP date, which counts from the header Date. */
    public function retryAfter(int $nowMs): ?int
    {
        $after = $this->header("Retry-After") ?? "";
        if (preg_match('/^[0-9]{1,10}$/D', $after)) {
            return (int) $after;
        }
        [$until, $now] = [self::seconds($after), self::seconds($this->header("Date") ?? "")];
        return $until === null ? null : max(0, $until - ($now ?? intdiv($nowMs, 1000)));
    }

    public function __debugInfo(): array
    {
        return ["status" => $this->status];
    }

    private static function seconds(string $date): ?int
    {
        $read = \DateTimeImmutable::createFromFormat('D, d M Y H:i:s \G\M\T', $date, new \DateTimeZone("UTC"));
        return $read === false ? null : $read->getTimestamp();
    }
}
