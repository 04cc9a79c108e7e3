<?php

// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

declare(strict_types=1);

namespace Signpost;

/** A login's result, or a renewal's, which has no account. var_dump() does not show the credential. CONTRACT 8. */
final class Login
{
    /** @param int $expiresIn seconds until the credential expires: renew it before, then the user need not log in again */
    public function __construct(
        #[\SensitiveParameter] public readonly string $credential,
        public readonly int $expiresIn,
        public readonly bool $created = false,
        public readonly ?Account $account = null,
    ) {
    }

    public function __debugInfo(): array
    {
        return ["expiresIn" => $this->expiresIn, "created" => $this->created, "account" => $this->account];
    }
}
