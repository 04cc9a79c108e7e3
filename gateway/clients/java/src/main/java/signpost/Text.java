// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

package signpost;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.util.Arrays;
import java.util.Map;

/** Checks of arguments, and forms of text. No message has a value in it. */
final class Text {
    private Text() {}

    static void check(boolean isRight, String otherwise) {
        if (!isRight) {
            throw new IllegalArgumentException(otherwise);
        }
    }

    static String checkKey(String key) {
        utf8(key, "key");
        check(!key.isEmpty() && key.strip().equals(key), "key is empty, or has white space at an end, perhaps the line break of its file: strip it");
        return key;
    }

    static String checkHeader(String name, String value) {
        check(value == null || value.chars().allMatch(one -> one >= ' ' && one <= '~'), name + " must be printable ASCII: it is sent as a header");
        return value;
    }

    static void checkHeaderName(String name) {
        check(name != null && name.matches("[A-Za-z0-9!#$%&'*+.^_`|~-]+"), "a header has no name, or one with a wrong character");
    }

    /** Without a group that is repeated: its recursion would exhaust the stack. */
    static String checkPath(String path) {
        check(path != null, "path is null");
        var escapesRemoved = path.replaceAll("%[0-9A-Fa-f]{2}", "");
        var isEncoded = escapesRemoved.matches("[A-Za-z0-9\\-._~!$&'()*+,;=:@/]*");
        check(path.startsWith("/") && isEncoded, "path must begin with /, be encoded, and have no query");
        for (var segment : path.replaceAll("%2[Ee]", ".").split("/")) {
            check(!segment.equals(".") && !segment.equals(".."), "path must have no segment . or ..");
        }
        return path;
    }

    static byte[] utf8(String text, String what) {
        check(text != null, what + " is null");
        try {
            var encoded = UTF_8.newEncoder().encode(CharBuffer.wrap(text));
            return Arrays.copyOf(encoded.array(), encoded.limit());
        } catch (CharacterCodingException error) {
            throw new IllegalArgumentException(what + " has a lone surrogate, so it is no text");
        }
    }

    /** With spaces for control and format characters and separators of lines: it can reach a terminal or a log. CONTRACT 7. */
    static String printable(String text) { return text.replaceAll("[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}&&[^\\u200C\\u200D]]", " "); }

    /** A member of a JSON object if it is a text, otherwise null. */
    static String member(Map<String, Object> object, String name) {
        return object.get(name) instanceof String ? (String) object.get(name) : null;
    }

    /** A member of a JSON object if it is a whole number from 0 on, otherwise null. */
    static Long number(Map<String, Object> object, String name) {
        return object.get(name) instanceof Long && (Long) object.get(name) >= 0 ? (Long) object.get(name) : null;
    }
}
