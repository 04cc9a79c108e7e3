// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

// C# 7, which Mono's compiler takes, has no annotations of what can be null.
#pragma warning disable 8600, 8601, 8602, 8603, 8604, 8605, 8618, 8625, 8632

using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Net.Http;
using System.Text;
using System.Text.RegularExpressions;

namespace Signpost
{
    /// <summary>What belongs to one call. What is null is the client's, or absent.</summary>
    public sealed class SignpostCall
    {
        private object _json;

        /// <summary>The query of GET, HEAD and DELETE and of a call with another body, otherwise the form. Values are text, numbers, bools, or lists.</summary>
        public IEnumerable<KeyValuePair<string, object>> Pairs { get; set; }

        /// <summary>Null, text, a number, a bool, a dictionary or a list. Json, Body and Upload need the profile's Carrier "headers" or "both".</summary>
        public object Json
        {
            get => _json;
            set
            {
                _json = value;
                HasJson = true;
            }
        }

        public byte[] Body { get; set; }

        /// <summary>A seekable stream, from its position on: it is read twice, and not disposed.</summary>
        public Stream Upload { get; set; }

        /// <summary>The type of Body or Upload.</summary>
        public string ContentType { get; set; }

        /// <summary>Headers of your own.</summary>
        public IReadOnlyDictionary<string, string> Headers { get; set; }

        /// <summary>The user's credential, in place of the client's; "" sends none.</summary>
        public string Credential { get; set; }

        /// <summary>In place of the client's; "" sends none.</summary>
        public string Version { get; set; }

        /// <summary>In place of the client's; "" sends none.</summary>
        public string Language { get; set; }

        /// <summary>For the whole call, with its repetitions and pauses.</summary>
        public TimeSpan? Timeout { get; set; }

        /// <summary>Sent as Idempotency-Key. It makes the call repeatable.</summary>
        public string IdempotencyKey { get; set; }

        /// <summary>Whether a repetition does no harm: by default those of GET, HEAD, PUT and DELETE do none.</summary>
        public bool? Repeatable { get; set; }

        /// <summary>Whether the response has a Stream in place of Bytes. Dispose the response then.</summary>
        public bool AsStream { get; set; }

        /// <summary>The largest body of a response, in bytes.</summary>
        public long Limit { get; set; } = 16 << 20;

        internal bool HasJson { get; private set; }

        internal SignpostCall Copy() => (SignpostCall)MemberwiseClone();
    }

    /// <summary>A response.</summary>
    public sealed class SignpostResponse : IDisposable
    {
        internal SignpostResponse(HttpResponseMessage message, byte[] bytes, Stream stream)
        {
            var headers = new Dictionary<string, string>(StringComparer.OrdinalIgnoreCase);
            foreach (var header in message.Headers.Concat(message.Content.Headers))
            {
                headers[header.Key] = string.Join(", ", header.Value);
            }
            Status = (int)message.StatusCode;
            Headers = headers;
            Bytes = bytes;
            Stream = stream;
        }

        public int Status { get; }

        /// <summary>Names in any letter case.</summary>
        public IReadOnlyDictionary<string, string> Headers { get; }
        public byte[] Bytes { get; }

        /// <summary>The body as it arrives, of a call AsStream.</summary>
        public Stream Stream { get; }

        /// <summary>The body as UTF-8.</summary>
        public string Body => Encoding.UTF8.GetString(Bytes);

        /// <summary>The value of a header, or null.</summary>
        public string Header(string name) => Headers.TryGetValue(name, out var value) ? value : null;

        /// <summary>The body as JSON: Dictionary, List, string, long, double, bool or null.</summary>
        /// <exception cref="HttpRequestException">It is no JSON.</exception>
        public object Json() => new Json(Body).Document();

        public void Dispose() => Stream?.Dispose();

        internal IReadOnlyDictionary<string, object> Object() =>
            Json() as IReadOnlyDictionary<string, object> ?? throw new HttpRequestException("the response is no JSON object");

        /// <summary>The pause that Retry-After asks for, as seconds or as a date, which counts from the header Date.</summary>
        internal TimeSpan? RetryAfter(DateTimeOffset now)
        {
            var after = Header("Retry-After") ?? "";
            if (Regex.IsMatch(after, @"\A[0-9]{1,9}\z"))
            {
                return TimeSpan.FromSeconds(int.Parse(after, CultureInfo.InvariantCulture));
            }
            var pause = Date(after) - (Date(Header("Date") ?? "") ?? now);
            return pause < TimeSpan.Zero ? TimeSpan.Zero : pause;
        }

        private static DateTimeOffset? Date(string text) =>
            DateTimeOffset.TryParseExact(text, "r", CultureInfo.InvariantCulture, DateTimeStyles.AssumeUniversal, out var date) ? date : (DateTimeOffset?)null;
    }

    /// <summary>An account. Username and Provider together identify it, DisplayName never does. CONTRACT 8.</summary>
    public sealed class SignpostAccount
    {
        internal SignpostAccount(IReadOnlyDictionary<string, object> members)
        {
            Members = members;
            Username = SignpostClient.Text(members, "username") ?? throw new HttpRequestException("malformed response: the account has no username");
            DisplayName = SignpostClient.Text(members, "display_name");
            Provider = SignpostClient.Text(members, "provider") ?? SignpostClient.Text(members, "type");
            CreatedAt = members.TryGetValue("created_at", out var time) && time is long number ? number : (long?)null;
        }

        public string Username { get; }
        public string DisplayName { get; }

        /// <summary>v1 calls it type.</summary>
        public string Provider { get; }

        /// <summary>Milliseconds since 1970, or null.</summary>
        public long? CreatedAt { get; }

        /// <summary>As they were received.</summary>
        public IReadOnlyDictionary<string, object> Members { get; }
    }

    /// <summary>The result of a login, or of a renewal, which has no account. CONTRACT 8.</summary>
    public sealed class SignpostLogin
    {
        internal SignpostLogin(IReadOnlyDictionary<string, object> members)
        {
            Credential = SignpostClient.Text(members, "authorization") ?? throw new HttpRequestException("malformed response: it has no credential");
            ExpiresIn = members.TryGetValue("expires_in", out var seconds) && seconds is long number && number >= 0 ? number : 0;
            Created = members.TryGetValue("created", out var created) && true.Equals(created);
            var account = members.TryGetValue("account", out var value) ? value as IReadOnlyDictionary<string, object> : null;
            Account = account == null ? null : new SignpostAccount(account);
        }

        public string Credential { get; }

        /// <summary>Seconds until the credential expires: renew it before, then the user need not log in again.</summary>
        public long ExpiresIn { get; }

        /// <summary>Whether this login created the account.</summary>
        public bool Created { get; }
        public SignpostAccount Account { get; }
    }

    /// <summary>A page of an account's events, newest first.</summary>
    public sealed class SignpostEvents
    {
        internal SignpostEvents(IReadOnlyDictionary<string, object> members)
        {
            var events = members.TryGetValue("events", out var list) ? list as List<object> : null;
            Events = (events ?? new List<object>()).OfType<IReadOnlyDictionary<string, object>>().ToList();
            Next = SignpostClient.Text(members, "next");
        }

        /// <summary>Each with id, event, received_at and perhaps data.</summary>
        public IReadOnlyList<IReadOnlyDictionary<string, object>> Events { get; }

        /// <summary>The argument before of the next page, or null.</summary>
        public string Next { get; }
    }

    /// <summary>A server-sent event.</summary>
    public sealed class ServerSentEvent
    {
        public string Event { get; internal set; }
        public string Data { get; internal set; }

        /// <summary>The last id, or "".</summary>
        public string Id { get; internal set; }
    }

    /// <summary>Keeps one user's credential, for example in that user's session.</summary>
    public interface ICredentialStore
    {
        string Load();
        void Save(string credential);
        void Clear();
    }

    /// <summary>A response of status 400 or more. Decide by its Code: that never changes. CONTRACT 7.</summary>
    public sealed class SignpostProblem : Exception
    {
        internal SignpostProblem(SignpostResponse response, IReadOnlyDictionary<string, object> document, string signed, TimeSpan? retryAfter)
            : base(Describe(response, document, signed))
        {
            Response = response;
            Status = response.Status;
            Code = SignpostClient.Text(document, "code") ?? "";
            Title = SignpostClient.Text(document, "title");
            Detail = SignpostClient.Text(document, "detail");
            Hint = SignpostClient.Text(document, "hint");
            Canonical = SignpostClient.Text(document, "canonical");
            RequestId = SignpostClient.Text(document, "request_id") ?? response.Header("X-Request-Id");
            RetryAfter = retryAfter;
            ServerTime = document.TryGetValue("server_time", out var time) && time is long number && number >= 0 && number < 1L << 53 ? number : (long?)null;
        }

        /// <summary>The response as it was received, Signpost's or an API's own; at most 1 MiB of its body.</summary>
        public SignpostResponse Response { get; }
        public int Status { get; }

        /// <summary>Empty if the body is no problem document. What such a document lacks is null.</summary>
        public string Code { get; }
        public string Title { get; }
        public string Detail { get; }
        public string Hint { get; }

        /// <summary>The text that the gateway signed: of sign_mismatch only. Below it the message shows the client's.</summary>
        public string Canonical { get; }
        public string RequestId { get; }
        public TimeSpan? RetryAfter { get; }

        /// <summary>Milliseconds since 1970, or null.</summary>
        public long? ServerTime { get; }

        private static string Describe(SignpostResponse response, IReadOnlyDictionary<string, object> document, string signed)
        {
            var code = SignpostClient.Text(document, "code");
            var texts = new[] { SignpostClient.Text(document, "title"), SignpostClient.Text(document, "hint") ?? SignpostClient.Text(document, "detail") };
            var said = texts.Where(text => text != null);
            var id = SignpostClient.Text(document, "request_id") ?? response.Header("X-Request-Id");
            var message = response.Status + (code == null ? "" : $" {code}: {string.Join(" ", said)}") + (id == null ? "" : $" (request {id})");
            var canonical = SignpostClient.Text(document, "canonical");
            var compared = canonical == null ? new string[0] : new[] { "the gateway signed: " + canonical, "this client signed: " + signed };
            return string.Join("\n", new[] { message }.Concat(compared).Select(SignpostClient.Printable));
        }
    }
}
