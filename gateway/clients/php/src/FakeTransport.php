<?php

// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

declare(strict_types=1);

namespace Signpost;

/** For tests of your code: a function responds in place of a gateway. */
final class FakeTransport implements Transport
{
    /** @var list<Request> */
    public array $requests = [];

    /** @param \Closure(Request): Response $respond */
    public function __construct(private \Closure $respond)
    {
    }

    public function send(Request $request): Response
    {
        $this->requests[] = $request;
        $response = ($this->respond)($request);
        if ($request->sink === null || $response->status >= 400) {
            return $response;
        }
        ($request->sink)($response->body);
        return new Response($response->status, $response->headers);
    }
}
