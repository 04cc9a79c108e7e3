<?php

// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

declare(strict_types=1);

namespace Signpost;

/** A response with a status of 400 or more: $response. Decide by $code, which never changes; it is empty if the body is no problem document. CONTRACT 7. */
class Problem extends \RuntimeException
{
    private const MAX_BYTES = 65_536;

    /** @var string */
    public $code;
    public readonly int $status;
    public readonly ?string $title;
    public readonly ?string $detail;
    public readonly ?string $hint;
    /** The text that the gateway signed: of sign_mismatch only. Below it the message shows $signed, the client's. */
    public readonly ?string $canonical;
    public readonly ?string $requestId;
    /** Milliseconds since 1970, below 2^53: of time_out_of_window only. */
    public readonly ?int $serverTime;

    /** @param ?int $retryAfter seconds */
    public function __construct(public readonly Response $response, #[\SensitiveParameter] string $signed = "", public readonly ?int $retryAfter = null)
    {
        $document = self::document($response);
        $text = static fn (string $name): ?string => is_string($document[$name] ?? null) ? $document[$name] : null;
        $this->status = $response->status;
        $this->title = $text("title");
        $this->detail = $text("detail");
        $this->hint = $text("hint");
        $this->canonical = $text("canonical");
        $this->requestId = $text("request_id") ?? $response->header("X-Request-Id");
        $serverTime = $document["server_time"] ?? null;
        $this->serverTime = is_int($serverTime) && $serverTime >= 0 && $serverTime < 2 ** 53 ? $serverTime : null;
        $code = $text("code") ?? "";
        $said = implode(" ", array_filter([$this->title, $this->hint ?? $this->detail], static fn ($part): bool => ($part ?? "") !== ""));
        $message = rtrim("$this->status $code") . ($said === "" ? "" : ": $said") . ($this->requestId === null ? "" : " (request $this->requestId)");
        $compared = $this->canonical === null ? [] : ["the gateway signed: $this->canonical", "this client signed: $signed"];
        parent::__construct(implode("\n", array_map([Check::class, "printable"], [$message, ...$compared])));
        $this->code = $code;
    }

    /** The members of a problem document, or none. */
    private static function document(Response $response): array
    {
        $isProblem = preg_match('~^application/problem\+json *(;|$)~Di', $response->header("Content-Type") ?? "");
        $document = $isProblem && strlen($response->body) <= self::MAX_BYTES ? json_decode($response->body, true) : null;
        return is_array($document) && is_string($document["code"] ?? null) ? $document : [];
    }
}
