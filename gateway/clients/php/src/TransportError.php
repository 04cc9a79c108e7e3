<?php

// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

declare(strict_types=1);

namespace Signpost;

/** There is no usable response: no connection, a lost one, a timeout, a malformed or a too long response. */
class TransportError extends \RuntimeException
{
    /**
     * @param bool $sent whether the request may have reached the gateway
     * @param bool $stale whether an idle connection was closed before anything of a response arrived
     */
    public function __construct(string $message, public readonly bool $sent = true, public readonly bool $stale = false)
    {
        parent::__construct(Check::printable($message));
    }
}
