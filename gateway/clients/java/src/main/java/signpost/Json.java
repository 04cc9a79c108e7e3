// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

package signpost;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Pattern;

/** Reads a JSON document of at most 64 levels: Map, List, String, Long, Double, Boolean or null. Writes one of these. */
final class Json {
    private static final Pattern NUMBER = Pattern.compile("-?(?:0|[1-9][0-9]*+)(\\.[0-9]++)?+([eE][+-]?[0-9]++)?+");
    private static final Pattern HEX = Pattern.compile("[0-9A-Fa-f]{4}");
    private final String text;
    private int at;

    Json(String text) { this.text = text; }

    Object document() throws IOException {
        var value = value(0);
        next();
        expect(at == text.length());
        return value;
    }

    private Object value(int depth) throws IOException {
        expect(depth <= 64);
        switch (next()) {
            case '{':
                var object = new LinkedHashMap<String, Object>();
                for (at++; next() != '}'; ) {
                    expect(object.isEmpty() || take(','));
                    expect(next() == '"');
                    var name = string();
                    expect(next() == ':' && take(':'));
                    object.put(name, value(depth + 1));
                }
                at++;
                return object;
            case '[':
                var list = new ArrayList<Object>();
                for (at++; next() != ']'; ) {
                    expect(list.isEmpty() || take(','));
                    list.add(value(depth + 1));
                }
                at++;
                return list;
            case '"':
                return string();
            case 't':
                return word("true", Boolean.TRUE);
            case 'f':
                return word("false", Boolean.FALSE);
            case 'n':
                return word("null", null);
            default:
                return number();
        }
    }

    private String string() throws IOException {
        var string = new StringBuilder();
        for (at++; !take('"'); ) {
            var one = peek();
            expect(one >= ' ');
            at++;
            if (one == '\\') {
                var escape = peek();
                at++;
                var simple = "\"\\/bfnrt".indexOf(escape);
                if (simple >= 0) {
                    one = "\"\\/\b\f\n\r\t".charAt(simple);
                } else {
                    expect(escape == 'u' && HEX.matcher(text).region(at, text.length()).lookingAt());
                    one = (char) Integer.parseInt(text.substring(at, at + 4), 16);
                    at += 4;
                }
            }
            string.append(one);
        }
        return string.toString();
    }

    private Number number() throws IOException {
        var number = NUMBER.matcher(text).region(at, text.length());
        expect(number.lookingAt());
        at = number.end();
        if (number.group(1) == null && number.group(2) == null && number.group().length() <= 18) {
            return Long.valueOf(number.group());
        }
        return Double.valueOf(number.group());
    }

    private Object word(String word, Object value) throws IOException {
        expect(text.startsWith(word, at));
        at += word.length();
        return value;
    }

    /** The next character that is no white space, or 0 at the end. */
    private char next() {
        while (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r') {
            at++;
        }
        return peek();
    }

    private char peek() { return at < text.length() ? text.charAt(at) : 0; }

    private boolean take(char expected) {
        var isTaken = peek() == expected;
        at += isTaken ? 1 : 0;
        return isTaken;
    }

    private static void expect(boolean isJson) throws IOException {
        if (!isJson) {
            throw new IOException("the response is no JSON, or has more than 64 levels");
        }
    }

    /** A value as JSON. What JSON cannot have is an IllegalArgumentException. */
    static String write(Object value) {
        var json = new StringBuilder();
        write(value, json, 0);
        return json.toString();
    }

    private static void write(Object value, StringBuilder json, int depth) {
        Text.check(depth <= 64, "json has more than 64 levels");
        if (value instanceof CharSequence) {
            json.append('"');
            value.toString().chars().forEach(one ->
                    json.append(one < ' ' || one == '"' || one == '\\' ? String.format("\\u%04x", one) : String.valueOf((char) one)));
            json.append('"');
        } else if (value instanceof Collection) {
            var start = json.length();
            for (var one : (Collection<?>) value) {
                write(one, json.append(','), depth + 1);
            }
            wrap(json, start, "[", ']');
        } else if (value instanceof Map) {
            var start = json.length();
            for (var member : ((Map<?, ?>) value).entrySet()) {
                Text.check(member.getKey() instanceof String, "json has a name that is no text");
                write(member.getKey(), json.append(','), depth);
                write(member.getValue(), json.append(':'), depth + 1);
            }
            wrap(json, start, "{", '}');
        } else {
            var isClear = value == null || value instanceof Boolean || value instanceof Number && Double.isFinite(((Number) value).doubleValue());
            Text.check(isClear, "json can have maps, collections, texts, finite numbers, booleans and null");
            json.append(value);
        }
    }

    /** Puts the first bracket in place of the first comma. */
    private static void wrap(StringBuilder json, int start, String first, char last) {
        json.replace(start, Math.min(start + 1, json.length()), first).append(last);
    }
}
