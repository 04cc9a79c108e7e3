// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

// C# 7, which Mono's compiler takes, has no annotations of what can be null.
#pragma warning disable 8600, 8601, 8602, 8603, 8604, 8605, 8618, 8625, 8632

using System;
using System.Collections;
using System.Collections.Generic;
using System.Globalization;
using System.Net.Http;
using System.Text;
using System.Text.RegularExpressions;

namespace Signpost
{
    /// <summary>Reads a JSON document of at most 64 levels. Throws HttpRequestException if it is none. Writes one, too.</summary>
    internal sealed class Json
    {
        private static readonly Regex NumberGrammar = new Regex(@"\G-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?");
        private static readonly Regex HexGrammar = new Regex(@"\G[0-9A-Fa-f]{4}");
        private readonly string _text;
        private int _at;

        internal Json(string text)
        {
            _text = text;
        }

        internal object Document()
        {
            var value = Value(0);
            Next();
            Expect(_at == _text.Length);
            return value;
        }

        private object Value(int depth)
        {
            Expect(depth <= 64);
            switch (Next())
            {
                case '{':
                    var members = new Dictionary<string, object>();
                    for (_at++; Next() != '}';)
                    {
                        Expect(members.Count == 0 || Take(','));
                        Expect(Next() == '"');
                        var name = String();
                        Expect(Next() == ':' && Take(':'));
                        members[name] = Value(depth + 1);
                    }
                    _at++;
                    return members;
                case '[':
                    var list = new List<object>();
                    for (_at++; Next() != ']';)
                    {
                        Expect(list.Count == 0 || Take(','));
                        list.Add(Value(depth + 1));
                    }
                    _at++;
                    return list;
                case '"':
                    return String();
                case 't':
                    return Word("true", true);
                case 'f':
                    return Word("false", false);
                case 'n':
                    return Word("null", null);
                default:
                    return Number();
            }
        }

        private string String()
        {
            var text = new StringBuilder();
            for (_at++; !Take('"');)
            {
                var one = Peek();
                Expect(one >= ' ');
                _at++;
                if (one == '\\')
                {
                    var simple = "\"\\/bfnrt".IndexOf(Peek());
                    var isHex = Peek() == 'u' && HexGrammar.IsMatch(_text, _at + 1);
                    Expect(simple >= 0 || isHex);
                    one = isHex ? (char)Convert.ToInt32(_text.Substring(_at + 1, 4), 16) : "\"\\/\b\f\n\r\t"[simple];
                    _at += isHex ? 5 : 1;
                }
                text.Append(one);
            }
            return text.ToString();
        }

        private object Number()
        {
            var match = NumberGrammar.Match(_text, _at);
            Expect(match.Success);
            _at += match.Length;
            if (!match.Groups[1].Success && !match.Groups[2].Success && match.Length <= 18)
            {
                return long.Parse(match.Value, CultureInfo.InvariantCulture);
            }
            // What is too large for Mono is infinite, as in .NET.
            var isFinite = double.TryParse(match.Value, NumberStyles.Float, CultureInfo.InvariantCulture, out var number);
            return isFinite ? number : match.Value[0] == '-' ? double.NegativeInfinity : double.PositiveInfinity;
        }

        private object Word(string word, object value)
        {
            Expect(string.CompareOrdinal(_text, _at, word, 0, word.Length) == 0);
            _at += word.Length;
            return value;
        }

        /// <summary>The next character that is no white space, or 0 at the end.</summary>
        private char Next()
        {
            while (Peek() == ' ' || Peek() == '\t' || Peek() == '\n' || Peek() == '\r')
            {
                _at++;
            }
            return Peek();
        }

        private char Peek() => _at < _text.Length ? _text[_at] : '\0';

        private bool Take(char expected)
        {
            var isTaken = Peek() == expected;
            _at += isTaken ? 1 : 0;
            return isTaken;
        }

        private static void Expect(bool isJson)
        {
            if (!isJson)
            {
                throw new HttpRequestException("the response is no JSON, or has more than 64 levels");
            }
        }

        /// <summary>The JSON of null, text, numbers, bools, dictionaries with texts as keys, and lists.</summary>
        internal static string Write(object value)
        {
            var json = new StringBuilder();
            Write(value, json, 0);
            return json.ToString();
        }

        private static void Write(object value, StringBuilder json, int depth)
        {
            SignpostSignature.Check(depth <= 64, "Json has more than 64 levels, or contains itself");
            if (value is string || value is char)
            {
                json.Append('"');
                foreach (var one in value.ToString())
                {
                    var isEscaped = one < ' ' || one == '"' || one == '\\' || char.IsSurrogate(one);
                    json.Append(isEscaped ? "\\u" + ((int)one).ToString("x4", CultureInfo.InvariantCulture) : one.ToString());
                }
                json.Append('"');
            }
            else if (value is IDictionary members)
            {
                var separator = "{";
                foreach (DictionaryEntry member in members)
                {
                    SignpostSignature.Check(member.Key is string, "Json has a dictionary whose keys are no text");
                    json.Append(separator);
                    Write(member.Key, json, depth + 1);
                    json.Append(':');
                    Write(member.Value, json, depth + 1);
                    separator = ",";
                }
                json.Append(members.Count == 0 ? "{}" : "}");
            }
            else if (value is IEnumerable list)
            {
                json.Append('[');
                var separator = "";
                foreach (var one in list)
                {
                    json.Append(separator);
                    Write(one, json, depth + 1);
                    separator = ",";
                }
                json.Append(']');
            }
            else
            {
                var text = value == null ? "null" : value is bool ? ((bool)value ? "true" : "false") : value is double || value is float
                    ? Convert.ToDouble(value, CultureInfo.InvariantCulture).ToString("R", CultureInfo.InvariantCulture)
                    : Convert.ToString(value, CultureInfo.InvariantCulture);
                var isJson = value == null || value is bool || value is IConvertible && !(value is Enum) && NumberGrammar.Match(text).Length == text.Length;
                SignpostSignature.Check(isJson, $"Json cannot have {text ?? "an object"}: serialize it yourself, and set Body and ContentType");
                json.Append(text);
            }
        }
    }
}
