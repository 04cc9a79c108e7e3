<?php

// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

declare(strict_types=1);

namespace Signpost;

/** Sends requests: CurlTransport by default, Psr18Transport, FakeTransport in tests, or your own. */
interface Transport
{
    /** Sends a request exactly as it is, without following redirects or repeating, and returns the whole response, whatever its status.
     *
     * @throws TransportError if there is no usable response
     * @throws Cancelled if $request->cancelled returns true
     */
    public function send(Request $request): Response;
}
