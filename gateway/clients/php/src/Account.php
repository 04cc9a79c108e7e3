<?php

// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

declare(strict_types=1);

namespace Signpost;

/** A user's account. $username and $provider together identify it, $displayName never does. CONTRACT 8. */
final class Account
{
    public readonly string $username;
    public readonly ?string $displayName;
    /** v1 calls it type. */
    public readonly ?string $provider;
    /** Milliseconds since 1970. */
    public readonly ?int $createdAt;

    /** @param array<string, mixed> $members as they were received */
    public function __construct(public readonly array $members)
    {
        $text = static fn (string $name): ?string => is_string($members[$name] ?? null) ? $members[$name] : null;
        $this->username = $text("username") ?? throw new TransportError("malformed response: the account's username");
        $this->displayName = $text("display_name");
        $this->provider = $text("provider") ?? $text("type");
        $this->createdAt = is_int($members["created_at"] ?? null) ? $members["created_at"] : null;
    }
}
