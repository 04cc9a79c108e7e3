// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

package signpost;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.ByteArrayOutputStream;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** A sign profile, complete, and the signatures by its rules. CONTRACT 3. */
final class SignProfile {
    private static final Map<String, List<String>> ALLOWED = Map.of(
            "preset", List.of("plain", "decoded", "bilibili", "alipay", "wechat", "top"),
            "carrier", List.of("parameters", "headers", "both"),
            "values", List.of("wire", "decoded"),
            "layout", List.of("pairs", "pairs-key", "concat", "concat-both"),
            "empty", List.of("keep", "drop"),
            "cover", List.of("parameters", "request"),
            "algorithm", List.of("md5", "hmac-sha256"));
    private static final Map<String, Map<String, ?>> PRESETS = Map.of(
            "plain", Map.of(),
            "decoded", Map.of("values", "decoded"),
            "bilibili", Map.of(),
            "alipay", Map.of("values", "decoded", "empty", "drop", "leave_out", List.of("sign_type")),
            "wechat", Map.of("values", "decoded", "empty", "drop", "layout", "pairs-key"),
            "top", Map.of("values", "decoded", "empty", "drop", "layout", "concat-both"));

    final String carrier;
    private final boolean isDecoded;
    private final boolean isEmptyDropped;
    private final boolean isRequestCovered;
    private final boolean isHmac;
    private final boolean isHeadMd5;
    private final String layout;
    private final List<?> leaveOut;

    SignProfile(Map<String, ?> profile) {
        profile.forEach(SignProfile::check);
        var members = new HashMap<String, Object>(PRESETS.get(profile.containsKey("preset") ? profile.get("preset") : "plain"));
        members.putAll(profile);
        carrier = (String) members.getOrDefault("carrier", "parameters");
        isDecoded = "decoded".equals(members.get("values"));
        isEmptyDropped = "drop".equals(members.get("empty"));
        isRequestCovered = "request".equals(members.get("cover"));
        isHmac = "hmac-sha256".equals(members.get("algorithm"));
        isHeadMd5 = carrier.equals("headers") && "md5".equals(members.get("algorithm"));
        layout = (String) members.getOrDefault("layout", "pairs");
        leaveOut = (List<?>) members.getOrDefault("leave_out", List.of());
    }

    private static void check(String name, Object value) {
        if (name.equals("leave_out")) {
            var list = value instanceof List ? (List<?>) value : List.of("");
            var areNames = list.stream().allMatch(one -> one instanceof String && !Set.of("", "time").contains(one));
            Text.check(areNames, "profile: leave_out must be a list of names, without time");
            return;
        }
        var allowed = ALLOWED.get(name);
        Text.check(allowed != null, "profile can have preset, carrier, values, layout, empty, leave_out, cover, algorithm, not " + name);
        Text.check(value instanceof String && allowed.contains(value), "profile: " + name + " must be one of " + String.join(", ", allowed));
    }

    /** Encodes a name or a value by RFC 3986. */
    static String encode(String text) {
        var encoded = new StringBuilder();
        for (var one : Text.utf8(text, "a name or a value")) {
            if (one >= '0' && one <= '9' || one >= 'A' && one <= 'Z' || one >= 'a' && one <= 'z' || "-._~".indexOf(one) >= 0) {
                encoded.append((char) one);
            } else {
                encoded.append(String.format("%%%02X", one));
            }
        }
        return encoded.toString();
    }

    /** The pairs as they are sent, without a signature. A list is its name, repeated. */
    static List<String> encode(Collection<? extends Map.Entry<String, ?>> pairs) {
        Text.check(pairs != null, "pairs is null");
        var parts = new ArrayList<String>();
        for (var pair : pairs) {
            var isList = pair.getValue() instanceof Collection;
            for (var value : isList ? (Collection<?>) pair.getValue() : Arrays.asList((Object) pair.getValue())) {
                parts.add(encode(pair.getKey()) + "=" + encode(valueText(pair.getKey(), value)));
            }
        }
        return parts;
    }

    private static String valueText(String name, Object value) {
        if (value instanceof Double || value instanceof Float || value instanceof BigDecimal) {
            Text.check(Double.isFinite(((Number) value).doubleValue()), "the value of " + name + " is no finite number");
            return new BigDecimal(value.toString()).stripTrailingZeros().toPlainString();
        }
        var isClear = value instanceof CharSequence || value instanceof Boolean || value instanceof Long || value instanceof Integer
                || value instanceof Short || value instanceof Byte || value instanceof BigInteger;
        Text.check(isClear, "the value of " + name + " must be a text, a number, a boolean, or a list of these");
        return value.toString();
    }

    /** The text to send as query or as form: the pairs in their order, then time, unless a pair has that name, then sign. */
    String sign(Collection<? extends Map.Entry<String, ?>> pairs, String key, String method, String path, long time) {
        var parts = encode(pairs);
        for (var pair : pairs) {
            Text.check(!"sign".equals(pair.getKey()), "a pair is named sign: the client adds it");
        }
        if (pairs.stream().noneMatch(pair -> pair.getKey().equals("time"))) {
            parts.add("time=" + time);
        }
        var text = String.join("&", parts);
        return text + "&sign=" + signature("", text, key, method, path);
    }

    String signature(String query, String form, String key, String method, String path) {
        return hash(canonical(query, form, key, method, path), isHmac ? key : null);
    }

    String canonical(String query, String form, String key, String method, String path) {
        Text.check(!isRequestCovered || !method.isEmpty() && !path.isEmpty(), "the profile covers the request: method and path are needed");
        var signed = new ArrayList<String[]>(); // decoded name, then name and value as in the string
        for (var sent : (query + "&" + form).split("&")) {
            var parts = sent.split("=", 2);
            var value = parts.length == 2 ? parts[1] : "";
            var name = decode(parts[0]);
            var decodedValue = decode(value);
            if (!sent.isEmpty() && !name.equals("sign") && !leaveOut.contains(name) && !(isEmptyDropped && value.isEmpty())) {
                signed.add(isDecoded ? new String[] {name, name, decodedValue} : new String[] {name, parts[0], value});
            }
        }
        // By the bytes of the decoded name, unlike compareTo. Pairs of one name keep their order.
        signed.sort(Comparator.comparing(pair -> pair[0].getBytes(UTF_8), Arrays::compareUnsigned));
        var isConcat = layout.startsWith("concat");
        var parts = signed.stream().map(pair -> pair[1] + (isConcat ? "" : "=") + pair[2]).collect(Collectors.toCollection(ArrayList::new));
        var isKeyLabelled = layout.equals("pairs-key");
        if (isKeyLabelled) {
            parts.add("key=" + key);
        }
        var text = String.join(isConcat ? "" : "&", parts);
        if (!isHmac && !isKeyLabelled) {
            text = (layout.equals("concat-both") ? key : "") + text + key;
        }
        return isRequestCovered ? method + "\n" + path + "\n" + text : text;
    }

    /** The text of a signature in headers: method, target, time, nonce, SHA-256 of the body; with MD5 also the key. */
    String headText(List<String> lines, String key) { return String.join("\n", lines) + (isHeadMd5 ? "\n" + key : ""); }
    String headSignature(List<String> lines, String key) { return hash(headText(lines, key), isHeadMd5 ? null : key); }

    private static String decode(String sent) {
        var bytes = Text.utf8(sent, "query or form");
        var decoded = new ByteArrayOutputStream();
        for (var i = 0; i < bytes.length; i++) {
            if (bytes[i] == '%') {
                var high = i + 2 < bytes.length ? Character.digit(bytes[i + 1], 16) : -1;
                var low = i + 2 < bytes.length ? Character.digit(bytes[i + 2], 16) : -1;
                Text.check(high >= 0 && low >= 0, "query or form has a % without two hex digits");
                decoded.write(16 * high + low);
                i += 2;
            } else {
                decoded.write(bytes[i] == '+' ? ' ' : bytes[i]);
            }
        }
        try {
            return UTF_8.newDecoder().decode(ByteBuffer.wrap(decoded.toByteArray())).toString();
        } catch (CharacterCodingException error) {
            throw new IllegalArgumentException("query or form is not UTF-8 once decoded");
        }
    }

    /** MD5, or HMAC-SHA-256 by a key, in hex. */
    private static String hash(String text, String hmacKey) {
        var bytes = Text.utf8(text, "query or form");
        if (hmacKey == null) {
            return hex(digest("MD5").digest(bytes));
        }
        try {
            var mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(Text.utf8(hmacKey, "key"), "HmacSHA256"));
            return hex(mac.doFinal(bytes));
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException("this JVM has no HMAC-SHA-256", error);
        }
    }

    static MessageDigest digest(String algorithm) {
        try {
            return MessageDigest.getInstance(algorithm);
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException("this JVM has no " + algorithm, error);
        }
    }

    static String hex(byte[] bytes) {
        var hex = new StringBuilder();
        for (var one : bytes) {
            hex.append(String.format("%02x", one));
        }
        return hex.toString();
    }
}
