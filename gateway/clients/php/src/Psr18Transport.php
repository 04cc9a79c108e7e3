<?php

// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

declare(strict_types=1);

namespace Signpost;

use Psr\Http\Client\ClientExceptionInterface;
use Psr\Http\Client\ClientInterface;
use Psr\Http\Message\RequestFactoryInterface;
use Psr\Http\Message\StreamFactoryInterface;

/** Sends by a PSR-18 client, whose own settings hold: timeouts, proxies, TLS. It must neither follow redirects nor repeat. */
final class Psr18Transport implements Transport
{
    public function __construct(
        private ClientInterface $client,
        private RequestFactoryInterface $requests,
        private StreamFactoryInterface $streams,
    ) {
    }

    public function send(Request $request): Response
    {
        $message = $this->requests->createRequest($request->method, $request->origin . $request->target);
        if ($message->getRequestTarget() !== $request->target) {
            throw new \InvalidArgumentException("the PSR-17 factory changes the address, so that it is not what was signed");
        }
        foreach ($request->headers as $name => $value) {
            $message = $message->withHeader($name, $value);
        }
        if ($request->length !== null) {
            $body = is_string($request->body) ? $this->streams->createStream($request->body) : $this->streams->createStreamFromResource($request->body);
            $message = $message->withHeader("Content-Length", (string) $request->length)->withBody($body);
        }
        try {
            $response = $this->client->sendRequest($message);
            $headers = array_map(static fn (array $values): string => implode(", ", $values), $response->getHeaders());
            [$stream, $body, $length] = [$response->getBody(), "", 0];
            $sink = $response->getStatusCode() < 400 ? $request->sink : null;
            while (!$stream->eof()) {
                $piece = $stream->read(65_536);
                if (($length += strlen($piece)) > $request->limit) {
                    throw new TransportError("the response has more than $request->limit bytes");
                }
                $sink === null ? $body .= $piece : $sink($piece);
            }
            return new Response($response->getStatusCode(), array_change_key_case($headers), $body);
        } catch (ClientExceptionInterface $error) {
            // Its message has the address, with the signature.
            throw new TransportError(str_replace($request->target, explode("?", $request->target)[0], $error->getMessage()));
        }
    }
}
