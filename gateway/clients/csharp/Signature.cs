// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

// C# 7, which Mono's compiler takes, has no annotations of what can be null.
#pragma warning disable 8600, 8601, 8602, 8603, 8604, 8605, 8618, 8625, 8632

using System;
using System.Collections;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using System.Security.Cryptography;
using System.Text;
using System.Text.RegularExpressions;

namespace Signpost
{
    /// <summary>Signs, also without a client. Pairs are names and values: text, numbers, bools, or lists of these. CONTRACT 3.</summary>
    public static class SignpostSignature
    {
        private static readonly UTF8Encoding Utf8 = new UTF8Encoding(false, true);
        private static readonly Regex PlainNumber = new Regex(@"\A-?[0-9]+(\.[0-9]+)?\z");

        /// <summary>Encodes a name or a value by RFC 3986.</summary>
        public static string Encode(string text)
        {
            var encoded = new StringBuilder();
            foreach (var one in ToUtf8(text, "a name or a value"))
            {
                var isPlain = one >= '0' && one <= '9' || one >= 'A' && one <= 'Z' || one >= 'a' && one <= 'z' || "-._~".IndexOf((char)one) >= 0;
                encoded.Append(isPlain ? ((char)one).ToString() : "%" + one.ToString("X2", CultureInfo.InvariantCulture));
            }
            return encoded.ToString();
        }

        /// <summary>The canonical string of pairs as they are sent, with &lt;APP_KEY&gt; in the key's place. CONTRACT 3.</summary>
        /// <remarks>Method and path count only with Cover = "request".</remarks>
        public static string Canonical(string query, string form, SignpostProfile profile = null, string method = "", string path = "") =>
            new Rules(profile).Canonical(query, form, "<APP_KEY>", method, path);

        /// <summary>The signature of pairs as they are sent, in hex. A sign among them is not signed. CONTRACT 3.</summary>
        public static string Signature(string query, string form, string key, SignpostProfile profile = null, string method = "", string path = "") =>
            new Rules(profile).Signature(query, form, CheckKey(key), method, path);

        /// <summary>The text to send as query or as form: the pairs in their order, then time, unless a pair has that name, then sign.</summary>
        /// <remarks>Names can repeat. The time is in milliseconds since 1970, by default the system's.</remarks>
        public static string Sign(
            IEnumerable<KeyValuePair<string, object>> pairs, string key, SignpostProfile profile = null, string method = "", string path = "",
            long? time = null)
        {
            var text = EncodePairs(pairs, time ?? DateTimeOffset.UtcNow.ToUnixTimeMilliseconds());
            return text + "&sign=" + Signature("", text, key, profile, method, path);
        }

        /// <summary>The text of a signature in headers, with &lt;APP_KEY&gt; in the key's place. CONTRACT 3.</summary>
        /// <remarks>Target is path and query as sent, bodyHash the SHA-256 of the body in lower-case hex, algorithm hmac-sha256 or md5.</remarks>
        public static string HeadText(string method, string target, string time, string nonce, string bodyHash, string algorithm = "hmac-sha256") =>
            string.Join("\n", method, target, time, nonce, bodyHash) + (algorithm == "md5" ? "\n<APP_KEY>" : "");

        /// <summary>The signature that is sent in headers. CONTRACT 3.</summary>
        public static string Head(string method, string target, string time, string nonce, string bodyHash, string key, string algorithm = "hmac-sha256")
        {
            var text = HeadText(method, target, time, nonce, bodyHash);
            return algorithm == "md5" ? Hash(text + "\n" + CheckKey(key), key, false) : Hash(text, CheckKey(key), true);
        }

        /// <summary>The pairs as they are sent.</summary>
        internal static List<string> EncodePairs(IEnumerable<KeyValuePair<string, object>> pairs)
        {
            var parts = new List<string>();
            foreach (var pair in pairs ?? new KeyValuePair<string, object>[0])
            {
                var values = pair.Value is IEnumerable list && !(pair.Value is string) && !(pair.Value is IDictionary) ? list : new[] { pair.Value };
                parts.AddRange(values.Cast<object>().Select(value => Encode(pair.Key) + "=" + Encode(Text(value))));
            }
            return parts;
        }

        internal static string EncodePairs(IEnumerable<KeyValuePair<string, object>> pairs, long time)
        {
            var parts = EncodePairs(pairs);
            Check(!parts.Any(part => part.StartsWith("sign=", StringComparison.Ordinal)), "a pair is named sign: the client adds it");
            if (!parts.Any(part => part.StartsWith("time=", StringComparison.Ordinal)))
            {
                parts.Add("time=" + time.ToString(CultureInfo.InvariantCulture));
            }
            return string.Join("&", parts);
        }

        /// <summary>The text of a value: of a number only if it has no exponent.</summary>
        private static string Text(object value)
        {
            var text = value is bool ? ((bool)value ? "true" : "false") : value as string ?? (value is IConvertible && !(value is DateTime) && !(value is Enum)
                ? Convert.ToString(value, CultureInfo.InvariantCulture) : null);
            Check(text != null && (value is string || value is char || value is bool || PlainNumber.IsMatch(text)),
                "a value must be text, a number with a plain text, a bool or a list of these, not " + (value == null ? "null" : value.GetType().Name));
            return text;
        }

        internal static string Hex(byte[] bytes) => string.Concat(bytes.Select(one => one.ToString("x2", CultureInfo.InvariantCulture)));

        private static string Hash(string text, string key, bool isHmac)
        {
            using (var hash = isHmac ? new HMACSHA256(ToUtf8(key, "key")) : (HashAlgorithm)MD5.Create())
            {
                return Hex(hash.ComputeHash(ToUtf8(text, "query or form")));
            }
        }

        internal static string CheckKey(string key)
        {
            ToUtf8(key, "key");
            Check(key != "" && key == key.Trim(), "key is empty, or has white space at an end, perhaps the line break of its file: trim it");
            return key;
        }

        internal static void Check(bool isRight, string otherwise)
        {
            if (!isRight)
            {
                throw new ArgumentException(otherwise);
            }
        }

        internal static string Decode(string sent)
        {
            var bytes = ToUtf8(sent, "query or form");
            var decoded = new List<byte>(bytes.Length);
            for (var at = 0; at < bytes.Length; at++)
            {
                if (bytes[at] == '%')
                {
                    var hex = at + 2 < bytes.Length ? Encoding.ASCII.GetString(bytes, at + 1, 2) : "";
                    var isHex = byte.TryParse(hex, NumberStyles.AllowHexSpecifier, CultureInfo.InvariantCulture, out var one);
                    Check(isHex, "query or form has a % without two hex digits");
                    decoded.Add(one);
                    at += 2;
                }
                else
                {
                    decoded.Add(bytes[at] == '+' ? (byte)' ' : bytes[at]);
                }
            }
            try
            {
                return Utf8.GetString(decoded.ToArray());
            }
            catch (DecoderFallbackException)
            {
                throw new ArgumentException("query or form is not UTF-8 once decoded");
            }
        }

        internal static byte[] ToUtf8(string text, string what)
        {
            Check(text != null, what + " is null");
            try
            {
                return Utf8.GetBytes(text);
            }
            catch (EncoderFallbackException)
            {
                throw new ArgumentException(what + " has a lone surrogate, so it is no text");
            }
        }

        /// <summary>A sign profile, complete. CONTRACT 3.</summary>
        internal sealed class Rules
        {
            private readonly bool _isDecoded, _isEmptyDropped, _isRequestCovered, _isHmac;
            private readonly string _layout;
            private readonly string[] _leaveOut;

            /// <summary>parameters, headers or both; whether signatures in headers are HMACs.</summary>
            internal readonly string Carrier;
            internal readonly bool IsHeaderHmac;

            internal Rules(SignpostProfile profile)
            {
                profile = profile ?? new SignpostProfile();
                var preset = Member("Preset", profile.Preset, "plain", "decoded", "bilibili", "alipay", "wechat", "top") ?? "plain";
                var isPlain = preset == "plain" || preset == "bilibili";
                var presetLayout = preset == "wechat" ? "pairs-key" : preset == "top" ? "concat-both" : "pairs";
                _isDecoded = (Member("Values", profile.Values, "wire", "decoded") ?? (isPlain ? "wire" : "decoded")) == "decoded";
                _isEmptyDropped = (Member("Empty", profile.Empty, "keep", "drop") ?? (isPlain || preset == "decoded" ? "keep" : "drop")) == "drop";
                _isRequestCovered = Member("Cover", profile.Cover, "parameters", "request") == "request";
                _isHmac = Member("Algorithm", profile.Algorithm, "md5", "hmac-sha256") == "hmac-sha256";
                Carrier = Member("Carrier", profile.Carrier, "parameters", "headers", "both") ?? "parameters";
                IsHeaderHmac = Carrier != "headers" || profile.Algorithm != "md5";
                _layout = Member("Layout", profile.Layout, "pairs", "pairs-key", "concat", "concat-both") ?? presetLayout;
                _leaveOut = profile.LeaveOut?.ToArray() ?? (preset == "alipay" ? new[] { "sign_type" } : new string[0]);
                Check(!_leaveOut.Any(name => string.IsNullOrEmpty(name) || name == "time"), "profile: LeaveOut must be names, without time");
            }

            private static string Member(string name, string value, params string[] allowed)
            {
                Check(value == null || allowed.Contains(value), $"profile: {name} must be one of {string.Join(", ", allowed)}");
                return value;
            }

            internal string Signature(string query, string form, string key, string method, string path) =>
                Hash(Canonical(query, form, key, method, path), key, _isHmac);

            internal string Canonical(string query, string form, string key, string method, string path)
            {
                var hasRequest = !string.IsNullOrEmpty(method) && !string.IsNullOrEmpty(path);
                Check(hasRequest || !_isRequestCovered, "the profile covers the request: method and path are needed");
                var isConcat = _layout.StartsWith("concat", StringComparison.Ordinal);
                var signed = new List<KeyValuePair<string, string>>(); // bytes of the decoded name, pair as in the string
                foreach (var sent in (query + "&" + form).Split('&'))
                {
                    var equals = sent.IndexOf('=');
                    var name = equals < 0 ? sent : sent.Substring(0, equals);
                    var value = equals < 0 ? "" : sent.Substring(equals + 1);
                    var decodedName = Decode(name);
                    var decodedValue = Decode(value);
                    if (sent == "" || decodedName == "sign" || _leaveOut.Contains(decodedName) || _isEmptyDropped && value == "")
                    {
                        continue;
                    }
                    var pair = (_isDecoded ? decodedName : name) + (isConcat ? "" : "=") + (_isDecoded ? decodedValue : value);
                    signed.Add(new KeyValuePair<string, string>(Hex(Utf8.GetBytes(decodedName)), pair));
                }
                // OrderBy is stable: pairs of one name keep their order.
                var parts = signed.OrderBy(pair => pair.Key, StringComparer.Ordinal).Select(pair => pair.Value).ToList();
                var isKeyLabelled = _layout == "pairs-key";
                if (isKeyLabelled)
                {
                    parts.Add("key=" + key);
                }
                var text = string.Join(isConcat ? "" : "&", parts);
                if (!_isHmac && !isKeyLabelled)
                {
                    text = (_layout == "concat-both" ? key : "") + text + key;
                }
                return _isRequestCovered ? method + "\n" + path + "\n" + text : text;
            }
        }
    }

    /// <summary>The sign profile of an application. What is null is as in the preset, or else the gateway's default. CONTRACT 3.</summary>
    public sealed class SignpostProfile
    {
        /// <summary>plain, decoded, bilibili, alipay, wechat or top.</summary>
        public string Preset { get; set; }

        /// <summary>wire or decoded.</summary>
        public string Values { get; set; }

        /// <summary>pairs, pairs-key, concat or concat-both.</summary>
        public string Layout { get; set; }

        /// <summary>keep or drop.</summary>
        public string Empty { get; set; }

        /// <summary>Names that are not signed, in addition to sign.</summary>
        public IEnumerable<string> LeaveOut { get; set; }

        /// <summary>parameters or request.</summary>
        public string Cover { get; set; }

        /// <summary>md5 or hmac-sha256.</summary>
        public string Algorithm { get; set; }

        /// <summary>parameters, headers or both: where the signature is.</summary>
        public string Carrier { get; set; }
    }
}
