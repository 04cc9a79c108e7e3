// Signpost's client for C# 7 and later, in one file: for .NET 8 and Mono 6.8. It needs nothing else. Copy it into your project.
// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

// C# 7 has no annotations of what can be null, so a project with <Nullable> would warn of each.
#pragma warning disable 8600, 8601, 8602, 8603, 8604, 8618, 8625, 8632

using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using System.Net.Http;
using System.Net.Sockets;
using System.Security.Cryptography;
using System.Text;
using System.Text.RegularExpressions;
using System.Threading;
using System.Threading.Tasks;

/// <summary>Calls a Signpost gateway: signs a request by its rules, sends exactly what it signed, and logs users in.</summary>
/// <remarks>Threads can share a client. Change its settings before its first call only; but Authorization at any time.
/// What cannot be right is an ArgumentException. CONTRACT is gateway/protocol/CONTRACT.md.</remarks>
public sealed class Signpost
{
    private const int MaxProblemBytes = 65536;
    private const int MaxResponseBytes = 16 << 20;
    private const long MaxClockErrorMilliseconds = 86400000; // beyond a day, the gateway's clock can as well be wrong
    private const int CheckWaitSeconds = 30;
    private const RegexOptions AnyCase = RegexOptions.IgnoreCase | RegexOptions.CultureInvariant;
    private static readonly Regex UrlGrammar =
        new Regex(@"\A(https?://(?:\[[0-9a-f:.]+\]|[^\s/?#@:\[\]\\%]+)(?::[0-9]{1,5})?)/?\z", AnyCase);
    private static readonly Regex PrefixGrammar = new Regex(@"\A[A-Za-z][A-Za-z0-9-]{0,31}\z");
    private static readonly Regex PathGrammar = new Regex(@"\A/(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*\z");
    private static readonly Regex DotSegment = new Regex(@"/(?:\.|%2e){1,2}(?:/|\z)", AnyCase);
    // Values of logins, and what else is secret: the gateway masks them in the text that it signed, too. CONTRACT 7.
    private static readonly Regex Secret = new Regex("((?:^|&)(?:(?:(?:(?:access|refresh|id)_)?token|ticket|code(?:_verifier)?|state|confirm|authorization"
        + @"|credential|passw(?:or)?d|(?:client_)?secret|api_key)=|[^&=]*=(?=(?:Bearer%20)?[\w-]{43}(?:&|\z))))[^&]+", AnyCase);
    private static readonly string[] ConventionHeaders = { "app", "version", "language", "authorization" };
    private static readonly UnicodeCategory[] Unprintable =
    {
        UnicodeCategory.Control, UnicodeCategory.Format, UnicodeCategory.LineSeparator, UnicodeCategory.ParagraphSeparator,
    };
    private static readonly UTF8Encoding Utf8 = new UTF8Encoding(false, true);
    // CONTRACT 7: nothing was forwarded, so any call can be repeated.
    private static readonly string[] NotExecuted =
        { "request_timeout", "request_replayed", "rate_limited", "no_healthy_backend", "version_brownout" };
    // CONTRACT 7: the call may have been executed.
    private static readonly string[] PerhapsExecuted =
        { "internal", "backend_unreachable", "store_unavailable", "backend_timeout", "gateway_stopping" };

    private readonly string _origin;
    private readonly string _key;
    private readonly SocketsHttpHandler _handler;
    private readonly HttpClient _http;
    private readonly Random _random = new Random();
    private readonly ConcurrentDictionary<string, bool> _warned = new ConcurrentDictionary<string, bool>();
    private readonly object _lock = new object();
    private string _app, _version, _language, _prefix = "Acme";
    private volatile string _authorization;
    private SignpostProfile _profile;
    private Rules _rules = new Rules(null);
    private IReadOnlyDictionary<string, string> _headerNames = new Dictionary<string, string>();
    private long _clockOffset, _lastTime; // _lastTime is of the clock, without the offset

    /// <summary>A client of the gateway at an origin, with the application's key, which has no white space around it.</summary>
    public Signpost(string url, string key)
    {
        var origin = UrlGrammar.Match(url ?? "");
        Check(origin.Success, "url must be http:// or https:// with a host and perhaps a port, and nothing else");
        _origin = origin.Groups[1].Value;
        Check(Uri.TryCreate(_origin, UriKind.Absolute, out _), "url has a host or a port that cannot be");
        _key = CheckKey(key);
        // Of Mono and .NET. It adds no header (HttpWebRequest: Expect), and its exceptions have no address.
        _handler = new SocketsHttpHandler
        {
            AllowAutoRedirect = false,
            UseCookies = false,
            ConnectTimeout = TimeSpan.FromSeconds(5),
            PooledConnectionIdleTimeout = TimeSpan.FromSeconds(50), // CONTRACT 10: below the gateway's 60 s
        };
        _http = new HttpClient(_handler)
        {
            MaxResponseContentBufferSize = MaxResponseBytes,
            Timeout = System.Threading.Timeout.InfiniteTimeSpan,
        };
    }

    /// <summary>The application's ident, required in multi-application mode.</summary>
    public string App { get => _app; set => _app = CheckHeader("App", value); }

    /// <summary>The version to call. CONTRACT 5.</summary>
    public string Version { get => _version; set => _version = CheckHeader("Version", value); }

    /// <summary>The language of texts for people. CONTRACT 6.</summary>
    public string Language { get => _language; set => _language = CheckHeader("Language", value); }

    /// <summary>The user's credential. Login sets it, Logout removes it. CONTRACT 8.</summary>
    public string Authorization { get => _authorization; set => _authorization = CheckHeader("Authorization", value); }

    /// <summary>The prefix of the convention headers.</summary>
    public string Prefix
    {
        get => _prefix;
        set
        {
            Check(PrefixGrammar.IsMatch(value ?? ""), "Prefix must be a letter, then at most 31 letters, digits and -");
            _prefix = value;
        }
    }

    /// <summary>Names of the convention headers app, version, language, authorization, in place of those with the prefix.</summary>
    public IReadOnlyDictionary<string, string> HeaderNames
    {
        get => _headerNames;
        set
        {
            foreach (var name in value)
            {
                Check(ConventionHeaders.Contains(name.Key), $"HeaderNames can have {string.Join(", ", ConventionHeaders)}, not {name.Key}");
                Check(new HttpRequestMessage().Headers.TryAddWithoutValidation(name.Value, ""), $"HeaderNames: {name.Key} has no name of a header");
            }
            _headerNames = value;
        }
    }

    /// <summary>The sign profile; null for the gateway's defaults. CONTRACT 3.</summary>
    public SignpostProfile Profile
    {
        get => _profile;
        set
        {
            _rules = new Rules(value);
            _profile = value;
        }
    }

    /// <summary>5 s by default. Mono ignores it: there, Timeout ends the attempt.</summary>
    public TimeSpan ConnectTimeout { get => _handler.ConnectTimeout; set => _handler.ConnectTimeout = value; }

    /// <summary>For a whole request and its response.</summary>
    public TimeSpan Timeout { get; set; } = TimeSpan.FromSeconds(65);

    /// <summary>How often a call is repeated at most.</summary>
    public int Retries { get; set; } = 3;

    /// <summary>The longest pause before a repetition.</summary>
    public TimeSpan MaxWait { get; set; } = TimeSpan.FromSeconds(30);

    /// <summary>Gets version_unknown, deprecated or sunset, and a value: each once for a client. By default standard error does; null: nothing.</summary>
    public Action<string, string> OnWarning { get; set; } = (name, value) =>
        Console.Error.WriteLine(Printable($"signpost: {name}: {value}{(name == "version_unknown" ? " served, not the version asked for" : "")}"));

    /// <summary>Milliseconds since 1970.</summary>
    public Func<long> Clock { get; set; } = () => DateTimeOffset.UtcNow.ToUnixTimeMilliseconds();

    /// <summary>A name and a value, not encoded.</summary>
    public static KeyValuePair<string, string> Pair(string name, string value) => new KeyValuePair<string, string>(name, value);

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
        IEnumerable<KeyValuePair<string, string>> pairs, string key, SignpostProfile profile = null, string method = "", string path = "",
        long? time = null)
    {
        var text = EncodePairs(pairs, time ?? DateTimeOffset.UtcNow.ToUnixTimeMilliseconds());
        return text + "&sign=" + Signature("", text, key, profile, method, path);
    }

    /// <summary>As CallAsync. A GET is repeatable, a POST is not.</summary>
    public SignpostResponse Call(string method, string path, params KeyValuePair<string, string>[] pairs) =>
        CallAsync(method, path, pairs).GetAwaiter().GetResult();

    /// <summary>As CallAsync.</summary>
    public SignpostResponse Call(
        string method, string path, IEnumerable<KeyValuePair<string, string>> pairs, bool? repeatable = null, TimeSpan? timeout = null) =>
        CallAsync(method, path, pairs, repeatable, timeout).GetAwaiter().GetResult();

    /// <summary>Signs the pairs and sends them, as query of a GET or form of a POST. Redirects are not followed.</summary>
    /// <param name="repeatable">Whether a repetition does no harm: by default a GET's does none.</param>
    /// <exception cref="SignpostProblem">A status of 400 or more. The call was repeated by CONTRACT 10 before.</exception>
    /// <exception cref="HttpRequestException">No usable response, for example none in time.</exception>
    public async Task<SignpostResponse> CallAsync(
        string method, string path, IEnumerable<KeyValuePair<string, string>> pairs, bool? repeatable = null, TimeSpan? timeout = null,
        CancellationToken cancellation = default(CancellationToken))
    {
        Check(method == "GET" || method == "POST", "method must be GET or POST");
        var isPath = PathGrammar.IsMatch(path ?? "") && !DotSegment.IsMatch(path);
        Check(isPath, "path must begin with /, be encoded, and have no query and no segment . or ..");
        var isRepeatable = repeatable ?? method == "GET";
        var offset = Interlocked.Read(ref _clockOffset);
        var isCorrected = false;
        for (var repetitions = 0; ; repetitions++)
        {
            var request = Request(method, path, pairs, NextTime() + offset, out string text);
            var pause = Pause(repetitions);
            try
            {
                var response = await SendAsync(request, path, text, timeout ?? Timeout, cancellation).ConfigureAwait(false);
                KeepOffset(isCorrected, offset);
                return response;
            }
            catch (SignpostProblem problem)
            {
                var isOutOfWindow = problem.Code == "time_out_of_window";
                KeepOffset(isCorrected && !isOutOfWindow, offset);
                if (isOutOfWindow && !isCorrected && problem.ServerTime != null)
                {
                    offset = problem.ServerTime.Value - ClockTime();
                    isCorrected = Math.Abs(offset) <= MaxClockErrorMilliseconds;
                    if (isCorrected)
                    {
                        repetitions--; // It is not one of the retries.
                        continue;
                    }
                }
                var isRepeated = NotExecuted.Contains(problem.Code) || isRepeatable && PerhapsExecuted.Contains(problem.Code);
                pause = problem.RetryAfter == null ? pause : TimeSpan.FromSeconds(problem.RetryAfter.Value);
                if (!isRepeated || repetitions >= Retries || pause > MaxWait)
                {
                    throw;
                }
            }
            catch (HttpRequestException error) when (repetitions < Retries && pause <= MaxWait && (isRepeatable || IsUnsent(error)))
            {
                // It is repeated.
            }
            await Task.Delay(pause, cancellation).ConfigureAwait(false);
        }
    }

    /// <summary>As LoginAsync.</summary>
    public SignpostLogin Login(Action<string, string> show, string provider = null) => LoginAsync(show, provider).GetAwaiter().GetResult();

    /// <summary>Logs a user in by polling, and sets Authorization. CONTRACT 8.</summary>
    /// <param name="show">Gets the address that the user must open, and the code that the user compares.</param>
    /// <param name="provider">Null for the default one.</param>
    /// <exception cref="SignpostProblem">Also that of a login that failed, for example login_denied.</exception>
    public async Task<SignpostLogin> LoginAsync(
        Action<string, string> show, string provider = null, CancellationToken cancellation = default(CancellationToken))
    {
        var pairs = provider == null ? new KeyValuePair<string, string>[0] : new[] { Pair("provider", provider) };
        var begun = (await CallAsync("POST", "/login", pairs, cancellation: cancellation).ConfigureAwait(false)).Object();
        var token = Text(begun, "token");
        var authorizeUrl = Text(begun, "authorize_url");
        if (token == null || authorizeUrl == null)
        {
            throw new HttpRequestException("POST /login: the response has no token: is this version a login service?");
        }
        if (!Regex.IsMatch(authorizeUrl, @"\Ahttps?://") || Printable(authorizeUrl) != authorizeUrl)
        {
            throw new HttpRequestException("POST /login: malformed response: authorize_url is no address");
        }
        show(authorizeUrl, Printable(Text(begun, "user_code")));
        var interval = Seconds(begun, "interval", 2, 60);
        var end = Seconds(begun, "expires_in", 600, 3600);
        var check = new[] { Pair("token", token), Pair("wait", CheckWaitSeconds.ToString(CultureInfo.InvariantCulture)) };
        var checkTimeout = TimeSpan.FromSeconds(CheckWaitSeconds + 10);
        var clock = System.Diagnostics.Stopwatch.StartNew();
        while (clock.Elapsed < end)
        {
            var start = clock.Elapsed;
            var response = await CallAsync("POST", "/check", check, true, checkTimeout, cancellation).ConfigureAwait(false);
            if (Text(response.Object(), "status") != "pending")
            {
                break;
            }
            if ((clock.Elapsed - start).TotalSeconds < CheckWaitSeconds / 2)
            {
                var left = Math.Max(0, (end - clock.Elapsed).TotalMilliseconds + 1); // A timer counts whole ones, and can be early.
                await Task.Delay((int)Math.Min(interval.TotalMilliseconds, left), cancellation).ConfigureAwait(false);
            }
        }
        var collected = await CallAsync("POST", "/user/login", check.Take(1), true, null, cancellation).ConfigureAwait(false);
        var login = new SignpostLogin(collected.Object());
        Authorization = login.Authorization ?? throw new HttpRequestException("POST /user/login: the response has no credential");
        return login;
    }

    /// <summary>As LogoutAsync.</summary>
    public void Logout() => LogoutAsync().GetAwaiter().GetResult();

    /// <summary>Ends the login, and forgets the credential.</summary>
    public async Task LogoutAsync(CancellationToken cancellation = default(CancellationToken))
    {
        await CallAsync("POST", "/user/logout", new KeyValuePair<string, string>[0], cancellation: cancellation).ConfigureAwait(false);
        Authorization = null;
    }

    /// <summary>As UserAsync.</summary>
    public IReadOnlyDictionary<string, object> User() => UserAsync().GetAwaiter().GetResult();

    /// <summary>The account of the user who is logged in.</summary>
    public async Task<IReadOnlyDictionary<string, object>> UserAsync(CancellationToken cancellation = default(CancellationToken)) =>
        (await CallAsync("GET", "/user", new KeyValuePair<string, string>[0], cancellation: cancellation).ConfigureAwait(false)).Object();

    /// <summary>As SendEventAsync.</summary>
    public IReadOnlyDictionary<string, object> SendEvent(string @event, string data = null, string idempotencyKey = null) =>
        SendEventAsync(@event, data, idempotencyKey).GetAwaiter().GetResult();

    /// <summary>Stores an event with the account. It is repeatable only with an idempotency key.</summary>
    public async Task<IReadOnlyDictionary<string, object>> SendEventAsync(
        string @event, string data = null, string idempotencyKey = null, CancellationToken cancellation = default(CancellationToken))
    {
        var all = new[] { Pair("event", @event), Pair("data", data), Pair("idempotency_key", idempotencyKey) };
        var pairs = all.Where((pair, index) => index == 0 || pair.Value != null);
        return (await CallAsync("POST", "/event/send", pairs, idempotencyKey != null, null, cancellation).ConfigureAwait(false)).Object();
    }

    private HttpRequestMessage Request(string method, string path, IEnumerable<KeyValuePair<string, string>> pairs, long time, out string text)
    {
        var isPost = method == "POST";
        text = EncodePairs(pairs, time);
        text = isPost ? text : AsWritten(path, text);
        text += "&sign=" + _rules.Signature("", text, _key, method, path);
        var target = isPost ? path : path + "?" + text;
        Uri.TryCreate(_origin + target, UriKind.Absolute, out var address);
        // Uri writes %41 in a path as A: what is sent would not be what was signed.
        Check(address?.PathAndQuery == target, "path has an escape that .NET would change, or the address is too long");
        var request = new HttpRequestMessage(isPost ? HttpMethod.Post : HttpMethod.Get, address);
        if (isPost)
        {
            request.Content = new ByteArrayContent(Encoding.ASCII.GetBytes(text));
            request.Content.Headers.TryAddWithoutValidation("Content-Type", "application/x-www-form-urlencoded");
        }
        request.Headers.TryAddWithoutValidation("Accept", "application/json");
        request.Headers.TryAddWithoutValidation("User-Agent", "signpost-csharp");
        var values = new[] { App, Version, Language, Authorization };
        for (var index = 0; index < values.Length; index++)
        {
            if (!string.IsNullOrEmpty(values[index]))
            {
                request.Headers.TryAddWithoutValidation(HeaderName(ConventionHeaders[index]), values[index]);
            }
        }
        return request;
    }

    /// <summary>The query as Uri writes it, so that this is signed: Mono's writes %28 as (, if another escape is not ASCII.</summary>
    private string AsWritten(string path, string query)
    {
        Check(Uri.TryCreate(_origin + path + "?" + query, UriKind.Absolute, out var address), "the address is too long");
        var written = address.Query.Substring(1);
        var pairs = written.Split('&').Select(pair => string.Join("=", pair.Split('=').Select(part => Encode(Decode(part)))));
        Check(string.Join("&", pairs) == query, "a pair has a character that .NET removes from addresses, for example U+200E: send it by POST");
        return written;
    }

    private async Task<SignpostResponse> SendAsync(HttpRequestMessage request, string path, string text, TimeSpan timeout, CancellationToken cancellation)
    {
        SignpostResponse response;
        using (request)
        using (var timer = CancellationTokenSource.CreateLinkedTokenSource(cancellation))
        {
            timer.CancelAfter(timeout);
            try
            {
                var sending = _http.SendAsync(request, timer.Token);
                // Mono goes on to connect after the token is cancelled.
                await Task.WhenAny(sending, Task.Delay(System.Threading.Timeout.Infinite, timer.Token)).ConfigureAwait(false);
                using (var message = sending.IsCompleted ? await sending.ConfigureAwait(false) : throw new OperationCanceledException(timer.Token))
                {
                    response = new SignpostResponse(message, await message.Content.ReadAsByteArrayAsync().ConfigureAwait(false));
                }
            }
            catch (OperationCanceledException error) when (!cancellation.IsCancellationRequested)
            {
                // Not by the timer: the handler's timeout for connecting.
                var inner = timer.IsCancellationRequested ? new TimeoutException() : (Exception)error;
                throw new HttpRequestException($"{request.Method} {path}: no {(inner == error ? "connection" : "response")} in time", inner);
            }
            catch (HttpRequestException error)
            {
                throw new HttpRequestException($"{request.Method} {path}: {error.GetBaseException().Message}", error);
            }
        }
        Warn(response);
        return response.Status < 400 ? response : throw new SignpostProblem(response, ProblemDocument(response), Signed(request.Method.Method, path, text));
    }

    /// <summary>What the client signed, as the gateway shows it: without key and secret values, at most 2 KiB. CONTRACT 7.</summary>
    private string Signed(string method, string path, string text)
    {
        var masked = Secret.Replace(text, "$1***").Replace(Encode(_key), "***");
        return string.Concat(_rules.Canonical("", masked, "<APP_KEY>", method, path).Take(2048));
    }

    /// <summary>Whether there was no connection, so that nothing was sent.</summary>
    private static bool IsUnsent(HttpRequestException error)
    {
        var codes = new[] { SocketError.ConnectionRefused, SocketError.HostNotFound, SocketError.NoData, SocketError.TryAgain };
        var code = (error.GetBaseException() as SocketException)?.SocketErrorCode ?? SocketError.Success;
        return codes.Contains(code) || error.InnerException is OperationCanceledException;
    }

    private string HeaderName(string one) =>
        HeaderNames.TryGetValue(one, out var name) ? name : $"{Prefix}-X-{char.ToUpperInvariant(one[0])}{one.Substring(1)}";

    /// <summary>A time of the clock that no other request of this client has: two equal requests with one time would have one signature.</summary>
    private long NextTime()
    {
        lock (_lock)
        {
            return _lastTime = Math.Max(Clock(), _lastTime + 1);
        }
    }

    /// <summary>The clock's time. If the clock was set back, the times go on from it; those of other threads are only a little ahead.</summary>
    private long ClockTime()
    {
        lock (_lock)
        {
            var now = Clock();
            _lastTime = _lastTime - now >= 1000 ? now : _lastTime;
            return now;
        }
    }

    /// <summary>Keeps a correction for later calls, once the gateway took the time of a request.</summary>
    private void KeepOffset(bool isTaken, long offset)
    {
        if (isTaken)
        {
            Interlocked.Exchange(ref _clockOffset, offset);
        }
    }

    private TimeSpan Pause(int repetitions)
    {
        lock (_lock)
        {
            return TimeSpan.FromSeconds(0.5 * Math.Pow(2, Math.Min(repetitions, 20)) * (0.5 + _random.NextDouble()));
        }
    }

    private void Warn(SignpostResponse response)
    {
        string asked = (Version ?? "").Trim(), served = response.Header(HeaderName("version")) ?? "";
        var isOther = asked != "" && served != "" && !asked.Equals(served, StringComparison.OrdinalIgnoreCase);
        Warn("version_unknown", isOther || response.Header(Prefix + "-X-Version-Source") == "unknown" ? served : null);
        Warn("deprecated", response.Header("Deprecation"));
        Warn("sunset", response.Header("Sunset"));
    }

    private void Warn(string name, string value)
    {
        if (value != null && _warned.TryAdd(name, true))
        {
            OnWarning?.Invoke(name, value);
        }
    }

    private static void Check(bool isRight, string otherwise)
    {
        if (!isRight)
        {
            throw new ArgumentException(otherwise);
        }
    }

    private static string CheckKey(string key)
    {
        ToUtf8(key, "key");
        Check(key != "" && key == key.Trim(), "key is empty, or has white space at an end, perhaps the line break of its file: trim it");
        return key;
    }

    private static string CheckHeader(string name, string value)
    {
        Check(value == null || value.All(one => one >= ' ' && one <= '~'), name + " must be printable ASCII: it is sent as a header");
        return value;
    }

    private static byte[] ToUtf8(string text, string what)
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

    /// <summary>The pairs as they are sent, and a time if they have none.</summary>
    private static string EncodePairs(IEnumerable<KeyValuePair<string, string>> pairs, long time)
    {
        Check(pairs != null, "pairs is null");
        var parts = new List<string>();
        var hasTime = false;
        foreach (var pair in pairs)
        {
            Check(pair.Key != "sign", "a pair is named sign: the client adds it");
            hasTime |= pair.Key == "time";
            parts.Add(Encode(pair.Key) + "=" + Encode(pair.Value));
        }
        if (!hasTime)
        {
            parts.Add("time=" + time.ToString(CultureInfo.InvariantCulture));
        }
        return string.Join("&", parts);
    }

    private static string Decode(string sent)
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

    /// <summary>With spaces for control and format characters and separators of lines: it can reach a terminal or a log. CONTRACT 7.</summary>
    internal static string Printable(string text)
    {
        var shown = new StringBuilder();
        for (int at = 0, length; at < (text ?? "").Length; at += length)
        {
            length = char.IsSurrogatePair(text, at) ? 2 : 1;
            var category = CharUnicodeInfo.GetUnicodeCategory(text, at);
            var isJoiner = text[at] == '\u200C' || text[at] == '\u200D';
            shown.Append(Unprintable.Contains(category) && !isJoiner ? " " : text.Substring(at, length));
        }
        return shown.ToString();
    }

    internal static string Text(IReadOnlyDictionary<string, object> document, string name) =>
        document.TryGetValue(name, out var value) ? value as string : null;

    /// <summary>Reads a number of seconds, and takes at least 1 and at most max.</summary>
    private static TimeSpan Seconds(IReadOnlyDictionary<string, object> document, string name, double otherwise, double max)
    {
        document.TryGetValue(name, out var value);
        var seconds = value is long || value is double ? Convert.ToDouble(value, CultureInfo.InvariantCulture) : otherwise;
        return TimeSpan.FromSeconds(Math.Max(1, Math.Min(seconds, max)));
    }

    internal static IReadOnlyDictionary<string, object> ProblemDocument(SignpostResponse response)
    {
        var type = (response.Header("Content-Type") ?? "").Split(';')[0].Trim();
        if (type.Equals("application/problem+json", StringComparison.OrdinalIgnoreCase) && response.Bytes.Length <= MaxProblemBytes)
        {
            try
            {
                var document = response.Object();
                if (Text(document, "code") != null)
                {
                    return document;
                }
            }
            catch (HttpRequestException)
            {
                // Then the status has to do.
            }
        }
        return new Dictionary<string, object>();
    }

    /// <summary>A sign profile, complete. CONTRACT 3.</summary>
    private sealed class Rules
    {
        private readonly bool _isDecoded, _isEmptyDropped, _isRequestCovered, _isHmac;
        private readonly string _layout;
        private readonly string[] _leaveOut;

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
            _layout = Member("Layout", profile.Layout, "pairs", "pairs-key", "concat", "concat-both") ?? presetLayout;
            _leaveOut = profile.LeaveOut?.ToArray() ?? (preset == "alipay" ? new[] { "sign_type" } : new string[0]);
            Check(!_leaveOut.Any(name => string.IsNullOrEmpty(name) || name == "time"), "profile: LeaveOut must be names, without time");
        }

        private static string Member(string name, string value, params string[] allowed)
        {
            Check(value == null || allowed.Contains(value), $"profile: {name} must be one of {string.Join(", ", allowed)}");
            return value;
        }

        internal string Signature(string query, string form, string key, string method, string path)
        {
            var text = ToUtf8(Canonical(query, form, key, method, path), "query or form");
            using (var hash = _isHmac ? new HMACSHA256(ToUtf8(key, "key")) : (HashAlgorithm)MD5.Create())
            {
                return string.Concat(hash.ComputeHash(text).Select(one => one.ToString("x2", CultureInfo.InvariantCulture)));
            }
        }

        internal string Canonical(string query, string form, string key, string method, string path)
        {
            var hasRequest = !string.IsNullOrEmpty(method) && !string.IsNullOrEmpty(path);
            Check(hasRequest || !_isRequestCovered, "the profile covers the request: method and path are needed");
            var isConcat = _layout.StartsWith("concat", StringComparison.Ordinal);
            var signed = new List<KeyValuePair<byte[], string>>(); // decoded name, pair as in the string
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
                signed.Add(new KeyValuePair<byte[], string>(Utf8.GetBytes(decodedName), pair));
            }
            // By the bytes of the decoded name. OrderBy is stable: pairs of one name keep their order.
            var parts = signed.OrderBy(pair => pair.Key, Comparer<byte[]>.Create(CompareBytes)).Select(pair => pair.Value).ToList();
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

        private static int CompareBytes(byte[] one, byte[] other)
        {
            for (var index = 0; index < one.Length && index < other.Length; index++)
            {
                if (one[index] != other[index])
                {
                    return one[index] - other[index];
                }
            }
            return one.Length - other.Length;
        }
    }

    /// <summary>Reads a JSON document of at most 64 levels. Throws HttpRequestException if it is none.</summary>
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
}

/// <summary>A response of a status below 400.</summary>
public sealed class SignpostResponse
{
    internal SignpostResponse(HttpResponseMessage message, byte[] bytes)
    {
        var headers = new Dictionary<string, string>(StringComparer.OrdinalIgnoreCase);
        foreach (var header in message.Headers.Concat(message.Content.Headers))
        {
            headers[header.Key] = string.Join(", ", header.Value);
        }
        Status = (int)message.StatusCode;
        Headers = headers;
        Bytes = bytes;
    }

    public int Status { get; }

    /// <summary>Names in any letter case.</summary>
    public IReadOnlyDictionary<string, string> Headers { get; }

    public byte[] Bytes { get; }

    /// <summary>The body as UTF-8.</summary>
    public string Body => Encoding.UTF8.GetString(Bytes);

    /// <summary>The value of a header, or null.</summary>
    public string Header(string name) => Headers.TryGetValue(name, out var value) ? value : null;

    /// <summary>The body as JSON: Dictionary, List, string, long, double, bool or null.</summary>
    /// <exception cref="HttpRequestException">It is no JSON.</exception>
    public object Json() => new Signpost.Json(Body).Document();

    internal IReadOnlyDictionary<string, object> Object() =>
        Json() as IReadOnlyDictionary<string, object> ?? throw new HttpRequestException("the response is no JSON object");
}

/// <summary>What a login returns. CONTRACT 8.</summary>
public sealed class SignpostLogin
{
    internal SignpostLogin(IReadOnlyDictionary<string, object> members)
    {
        Authorization = Signpost.Text(members, "authorization");
        ExpiresIn = members.TryGetValue("expires_in", out var seconds) && seconds is long number && number >= 0 ? number : 0;
        Created = members.TryGetValue("created", out var created) && true.Equals(created);
        Account = members.TryGetValue("account", out var account) ? account as IReadOnlyDictionary<string, object> : null;
    }

    /// <summary>The credential.</summary>
    public string Authorization { get; }

    /// <summary>Seconds until the credential expires.</summary>
    public long ExpiresIn { get; }

    /// <summary>Whether this login created the account.</summary>
    public bool Created { get; }

    /// <summary>The account: username, and other members.</summary>
    public IReadOnlyDictionary<string, object> Account { get; }
}

/// <summary>A response of status 400 or more. Decide by its Code: that never changes. CONTRACT 7.</summary>
public sealed class SignpostProblem : Exception
{
    internal SignpostProblem(SignpostResponse response, IReadOnlyDictionary<string, object> document, string signed)
        : base(Describe(response, document, signed))
    {
        Status = response.Status;
        Code = Signpost.Text(document, "code") ?? "";
        Title = Signpost.Text(document, "title");
        Detail = Signpost.Text(document, "detail");
        Hint = Signpost.Text(document, "hint");
        Canonical = Signpost.Text(document, "canonical");
        RequestId = Signpost.Text(document, "request_id") ?? response.Header("X-Request-Id");
        var after = response.Header("Retry-After") ?? "";
        RetryAfter = Regex.IsMatch(after, @"\A[0-9]{1,9}\z") ? int.Parse(after, CultureInfo.InvariantCulture) : (int?)null;
        ServerTime = document.TryGetValue("server_time", out var time) && time is long number && number >= 0 && number < 1L << 53 ? number : (long?)null;
    }

    public int Status { get; }

    /// <summary>Empty if the body is no problem document. What such a document lacks is null.</summary>
    public string Code { get; }

    public string Title { get; }

    public string Detail { get; }

    public string Hint { get; }

    /// <summary>The text that the gateway signed: of sign_mismatch only. Below it the message shows the client's.</summary>
    public string Canonical { get; }

    public string RequestId { get; }

    /// <summary>Seconds, or null.</summary>
    public int? RetryAfter { get; }

    /// <summary>Milliseconds since 1970, or null.</summary>
    public long? ServerTime { get; }

    private static string Describe(SignpostResponse response, IReadOnlyDictionary<string, object> document, string signed)
    {
        var code = Signpost.Text(document, "code");
        var texts = new[] { Signpost.Text(document, "title"), Signpost.Text(document, "hint") ?? Signpost.Text(document, "detail") };
        var said = texts.Where(text => text != null);
        var id = Signpost.Text(document, "request_id") ?? response.Header("X-Request-Id");
        var message = response.Status + (code == null ? "" : $" {code}: {string.Join(" ", said)}") + (id == null ? "" : $" (request {id})");
        var canonical = Signpost.Text(document, "canonical");
        var compared = canonical == null ? new string[0] : new[] { "the gateway signed: " + canonical, "this client signed: " + signed };
        return string.Join("\n", new[] { message }.Concat(compared).Select(Signpost.Printable));
    }
}
