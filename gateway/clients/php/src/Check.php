<?php

// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

declare(strict_types=1);

namespace Signpost;

/**
 * Checks of what the user gives. Each throws \InvalidArgumentException.
 *
 * @internal
 */
final class Check
{
    /** Pairs as a list of texts. An array with names as keys has pairs, too. A value that is a list is one pair for each element. */
    public static function pairs(#[\SensitiveParameter] array $pairs): array
    {
        $isList = array_is_list($pairs);
        $list = [];
        foreach ($pairs as $name => $pair) {
            // PHP makes the key "1" a number.
            $pair = $isList ? $pair : [(string) $name, $pair];
            if (!is_array($pair) || array_keys($pair) !== [0, 1] || !is_string($pair[0])) {
                throw new \InvalidArgumentException("each pair must be [name, value], and each name must be text");
            }
            self::text($pair[0], "a name or a value");
            $values = is_array($pair[1]) && array_is_list($pair[1]) ? $pair[1] : [$pair[1]];
            foreach ($values as $value) {
                $list[] = [$pair[0], self::value($value)];
            }
        }
        return $list;
    }

    private static function value(#[\SensitiveParameter] mixed $value): string
    {
        $isNumber = is_int($value) || (is_float($value) && ($value === 0.0 || (abs($value) >= 1e-4 && abs($value) < 1e15)));
        if (!is_string($value) && !is_bool($value) && !$isNumber) {
            throw new \InvalidArgumentException("a value must be text, a number with a plain text, true or false, or a list of these, not " . get_debug_type($value));
        }
        return is_string($value) ? self::text($value, "a name or a value") : json_encode($value);
    }

    public static function key(#[\SensitiveParameter] string $key): string
    {
        if ($key === "" || preg_match('/^[\s\p{Z}\x{FEFF}]|[\s\p{Z}\x{FEFF}]$/Du', self::text($key, "key"))) {
            throw new \InvalidArgumentException("key is empty, or has white space or a line break at an end");
        }
        return $key;
    }

    public static function path(string $path): void
    {
        if (!preg_match('~^/(?:[A-Za-z0-9\-._\~!$&\'()*+,;=:@/]++|%[0-9A-Fa-f]{2})*+$~D', $path) || preg_match('~/(?:\.|%2e){1,2}(?:/|$)~Di', $path)) {
            throw new \InvalidArgumentException("path must begin with /, be encoded, and have no query, and no segment . or ..");
        }
    }

    public static function headerName(string $name): string
    {
        return preg_match('/^[A-Za-z0-9!#$%&\'*+.^_`|~-]+$/D', $name) ? $name : throw new \InvalidArgumentException("not a header's name: " . self::printable($name));
    }

    public static function headerValue(string $header, #[\SensitiveParameter] ?string $value): ?string
    {
        // The value is not in the error: it can be a credential.
        if (preg_match('/[^ -~]/', $value ?? "")) {
            throw new \InvalidArgumentException("$header must be text of printable ASCII characters");
        }
        return $value;
    }

    /** With spaces for control and format characters and separators of lines: it can reach a terminal or a log. CONTRACT 7. */
    public static function printable(#[\SensitiveParameter] string $text): string
    {
        $printable = preg_replace('/(?![\x{200C}\x{200D}])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u', " ", $text);
        // What is not UTF-8 becomes ASCII.
        return $printable ?? preg_replace('/[^ -~]/', " ", $text);
    }

    public static function text(#[\SensitiveParameter] string $text, string $what): string
    {
        return preg_match('//u', $text) ? $text : throw new \InvalidArgumentException("$what is not UTF-8");
    }
}
