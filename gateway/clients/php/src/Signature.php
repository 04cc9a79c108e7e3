<?php

// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

declare(strict_types=1);

namespace Signpost;

/** Signs, also without a client. An object is a sign profile, complete. CONTRACT 3. */
final class Signature
{
    private const ALLOWED = [
        "preset" => ["plain", "decoded", "bilibili", "alipay", "wechat", "top"],
        "values" => ["wire", "decoded"],
        "layout" => ["pairs", "pairs-key", "concat", "concat-both"],
        "empty" => ["keep", "drop"],
        "cover" => ["parameters", "request"],
        "algorithm" => ["md5", "hmac-sha256"],
        "carrier" => ["parameters", "headers", "both"],
    ];
    private const PRESETS = [
        "plain" => [],
        "decoded" => ["values" => "decoded"],
        "bilibili" => [],
        "alipay" => ["values" => "decoded", "empty" => "drop", "leave_out" => ["sign_type"]],
        "wechat" => ["values" => "decoded", "empty" => "drop", "layout" => "pairs-key"],
        "top" => ["values" => "decoded", "empty" => "drop", "layout" => "concat-both"],
    ];

    public string $values = "wire";
    public string $layout = "pairs";
    public string $empty = "keep";
    public array $leave_out = [];
    public string $cover = "parameters";
    public string $algorithm = "md5";
    public string $preset = "plain";
    public string $carrier = "parameters";
    /** Of signatures in headers. */
    public string $headerAlgorithm = "hmac-sha256";

    public function __construct(?array $profile)
    {
        foreach ($profile ?? [] as $name => $value) {
            if ($name === "leave_out") {
                $isList = is_array($value) && $value === array_filter($value, "is_string");
                if (!$isList || in_array("time", $value, true) || in_array("", $value, true)) {
                    throw new \InvalidArgumentException("profile: leave_out must be a list of names, without time");
                }
            } elseif (!isset(self::ALLOWED[$name])) {
                throw new \InvalidArgumentException("profile can have " . implode(", ", array_keys(self::ALLOWED)) . ", leave_out, not $name");
            } elseif (!in_array($value, self::ALLOWED[$name], true)) {
                throw new \InvalidArgumentException("profile: $name must be one of " . implode(", ", self::ALLOWED[$name]));
            }
        }
        foreach (($profile ?? []) + self::PRESETS[$profile["preset"] ?? "plain"] as $name => $value) {
            $this->$name = $value;
        }
        if ($this->carrier === "headers" && isset($profile["algorithm"])) {
            $this->headerAlgorithm = $this->algorithm;
        }
    }

    /** Encodes a name or a value by RFC 3986. Throws \InvalidArgumentException if it is not UTF-8. */
    public static function encode(#[\SensitiveParameter] string $text): string
    {
        return rawurlencode(Check::text($text, "a name or a value"));
    }

    /** Pairs as they are sent, without time and sign. */
    public static function encodePairs(#[\SensitiveParameter] array $pairs): string
    {
        return self::joined(Check::pairs($pairs));
    }

    /**
     * The canonical string of pairs as they are sent, with <APP_KEY> in the key's place.
     *
     * $method and $path count with cover = request only. Throws \InvalidArgumentException for broken escapes, and what is not UTF-8.
     */
    public static function canonical(
        #[\SensitiveParameter] string $query,
        #[\SensitiveParameter] string $form,
        ?array $profile = null,
        string $method = "",
        string $path = "",
    ): string {
        return (new self($profile))->text($query, $form, "<APP_KEY>", $method, $path);
    }

    /** The signature of pairs as they are sent, in lower-case hex. A sign among them is not signed. */
    public static function signature(
        #[\SensitiveParameter] string $query,
        #[\SensitiveParameter] string $form,
        #[\SensitiveParameter] string $key,
        ?array $profile = null,
        string $method = "",
        string $path = "",
    ): string {
        $rules = new self($profile);
        $text = $rules->text($query, $form, Check::key($key), $method, $path);
        return $rules->algorithm === "md5" ? md5($text) : hash_hmac("sha256", $text, $key);
    }

    /**
     * The text to send, as query or as form: the pairs in their order, then time (unless a pair has that name), then sign.
     *
     * $pairs is a list of [name, value], or an array of names and values. $time is in milliseconds since 1970, by default the clock's. Throws
     * \InvalidArgumentException for pairs that cannot be sent, for example with a value that is not text.
     */
    public static function sign(
        #[\SensitiveParameter] array $pairs,
        #[\SensitiveParameter] string $key,
        ?array $profile = null,
        string $method = "",
        string $path = "",
        ?int $time = null,
    ): string {
        $pairs = Check::pairs($pairs);
        if (in_array("sign", array_column($pairs, 0), true)) {
            throw new \InvalidArgumentException("sign is added, and must not be among the pairs");
        }
        if (!in_array("time", array_column($pairs, 0), true)) {
            $pairs[] = ["time", (string) ($time ?? (int) (microtime(true) * 1000))];
        }
        $text = self::joined($pairs);
        return "$text&sign=" . self::signature("", $text, $key, $profile, $method, $path);
    }

    /** The text of a signature in headers, with <APP_KEY> in the key's place. $target is path and query as sent, $bodyHash the SHA-256 of the body in hex. */
    public static function headText(string $method, string $target, int|string $time, string $nonce, string $bodyHash, string $algorithm = "hmac-sha256"): string
    {
        return "$method\n$target\n$time\n$nonce\n$bodyHash" . ($algorithm === "md5" ? "\n<APP_KEY>" : "");
    }

    /** The signature that is sent in headers. */
    public static function head(
        string $method,
        #[\SensitiveParameter] string $target,
        int|string $time,
        string $nonce,
        string $bodyHash,
        #[\SensitiveParameter] string $key,
        string $algorithm = "hmac-sha256",
    ): string {
        $text = self::headText($method, $target, $time, $nonce, $bodyHash);
        return $algorithm === "md5" ? md5("$text\n" . Check::key($key)) : hash_hmac("sha256", $text, Check::key($key));
    }

    private static function joined(#[\SensitiveParameter] array $pairs): string
    {
        return implode("&", array_map(static fn (array $pair): string => self::encode($pair[0]) . "=" . self::encode($pair[1]), $pairs));
    }

    /** The canonical string of pairs as sent, with the key where the layout has it. */
    private function text(
        #[\SensitiveParameter] string $query,
        #[\SensitiveParameter] string $form,
        #[\SensitiveParameter] string $key,
        string $method,
        string $path,
    ): string {
        if ($this->cover === "request" && ($method === "" || $path === "")) {
            throw new \InvalidArgumentException("cover request needs method and path");
        }
        $pairs = array_filter([...self::parsed($query), ...self::parsed($form)], fn (array $pair): bool => $this->signs(...$pair["decoded"]));
        // strcmp() compares bytes. Other comparisons take names of digits for numbers. usort() keeps the order of equal names.
        usort($pairs, static fn (array $one, array $other): int => strcmp($one["decoded"][0], $other["decoded"][0]));
        $isConcat = in_array($this->layout, ["concat", "concat-both"], true);
        $parts = array_map(fn (array $pair): string => implode($isConcat ? "" : "=", $pair[$this->values]), $pairs);
        if ($this->layout === "pairs-key") {
            $parts[] = "key=$key";
        }
        // The key of HMAC is not in the string, but where the layout names it.
        $keyOfMd5 = $this->algorithm === "md5" ? $key : "";
        $before = $this->layout === "concat-both" ? $keyOfMd5 : "";
        $after = $this->layout === "pairs-key" ? "" : $keyOfMd5;
        return ($this->cover === "request" ? "$method\n$path\n" : "") . $before . implode($isConcat ? "" : "&", $parts) . $after;
    }

    private function signs(string $name, string $value): bool
    {
        return $name !== "sign" && !in_array($name, $this->leave_out, true) && !($this->empty === "drop" && $value === "");
    }

    /** The pairs of a query or form: each as sent ("wire"), and "decoded". */
    private static function parsed(#[\SensitiveParameter] string $text): array
    {
        $pairs = [];
        foreach (explode("&", Check::text($text, "query or form")) as $pair) {
            if ($pair !== "") {
                $wire = explode("=", $pair, 2) + [1 => ""];
                $pairs[] = ["wire" => $wire, "decoded" => array_map([self::class, "decoded"], $wire)];
            }
        }
        return $pairs;
    }

    private static function decoded(#[\SensitiveParameter] string $text): string
    {
        if (preg_match('/%(?![0-9A-Fa-f]{2})/', $text)) {
            throw new \InvalidArgumentException("query or form has a broken escape");
        }
        return Check::text(urldecode($text), "query or form");
    }
}
