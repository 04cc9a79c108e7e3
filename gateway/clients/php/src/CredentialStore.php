<?php

// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

declare(strict_types=1);

namespace Signpost;

/** Keeps one user's credential, for example in that user's session. See Client::withStore(). */
interface CredentialStore
{
    public function load(): ?string;

    public function save(#[\SensitiveParameter] string $credential): void;

    public function clear(): void;
}
