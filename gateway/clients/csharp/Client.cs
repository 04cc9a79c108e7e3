// Signpost's client: signs a request by the gateway's rules, sends exactly what it signed, and logs users in. CONTRACT is gateway/protocol/CONTRACT.md.
//
// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

// C# 7, which Mono's compiler takes, has no annotations of what can be null.
#pragma warning disable 8600, 8601, 8602, 8603, 8604, 8605, 8618, 8625, 8632

using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Diagnostics;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Net.Http;
using System.Net.Sockets;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using System.Text;
using System.Text.RegularExpressions;
using System.Threading;
using System.Threading.Tasks;

namespace Signpost
{
    /// <summary>Calls a gateway. It has no state of a user: a credential belongs to a call, or to the light copy of WithCredential.</summary>
    /// <remarks>Threads can share a client. Change its settings before its first call only. What cannot be right is an ArgumentException.</remarks>
    public sealed class SignpostClient : IDisposable
    {
        private const int MaxProblemBytes = 65536;
        private const int MaxErrorBytes = 1 << 20;
        private const long MaxClockErrorMilliseconds = 86400000; // beyond a day, the gateway's clock can as well be wrong
        private const int CheckWaitSeconds = 30;
        private const RegexOptions AnyCase = RegexOptions.IgnoreCase | RegexOptions.CultureInvariant;
        private static readonly Regex UrlGrammar =
            new Regex(@"\A(https?://(?:\[[0-9a-f:.]+\]|[^\s/?#@:\[\]\\%]+)(?::[0-9]{1,5})?)/?\z", AnyCase);
        private static readonly Regex PrefixGrammar = new Regex(@"\A[A-Za-z][A-Za-z0-9-]{0,31}\z");
        private static readonly Regex PathGrammar = new Regex(@"\A/(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*\z");
        private static readonly Regex DotSegment = new Regex(@"/(?:\.|%2e){1,2}(?:/|\z)", AnyCase);
        // Values of logins, and what else is secret: the gateway masks them in the text that it signed, too. CONTRACT 7.
        private static readonly Regex Secret = new Regex("((?:^|[&?])(?:(?:(?:(?:access|refresh|id)_)?token|ticket|code(?:_verifier)?|state|confirm"
            + @"|authorization|credential|passw(?:or)?d|(?:client_)?secret|api_key)=|[^&=]*=(?=(?:Bearer%20)?[\w-]{43}(?:[&\n]|\z))))[^&\n]+", AnyCase);
        private static readonly string[] Methods = { "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE" };
        private static readonly string[] ConventionHeaders = { "app", "version", "language", "authorization" };
        private static readonly string[] ReservedHeaders =
            { "host", "connection", "content-length", "content-type", "transfer-encoding", "expect", "te", "trailer", "upgrade" };
        private static readonly UnicodeCategory[] Unprintable =
        {
            UnicodeCategory.Control, UnicodeCategory.Format, UnicodeCategory.LineSeparator, UnicodeCategory.ParagraphSeparator,
        };
        // CONTRACT 7: nothing was forwarded, so any call can be repeated.
        private static readonly string[] NotExecuted =
            { "request_timeout", "request_replayed", "rate_limited", "spool_full", "no_healthy_backend", "version_brownout" };
        // CONTRACT 7: the call may have been executed.
        private static readonly string[] PerhapsExecuted =
            { "internal", "backend_unreachable", "store_unavailable", "backend_timeout", "gateway_stopping" };

        private readonly string _origin, _key;
        private readonly HttpClient _given;
        private readonly Shared _shared = new Shared();
        private string _app, _version, _language, _prefix = "Acme", _proxy, _credential;
        private ICredentialStore _store;
        private bool _isCopy;
        private SignpostProfile _profile;
        private SignpostSignature.Rules _rules = new SignpostSignature.Rules(null);
        private IReadOnlyDictionary<string, string> _headerNames = new Dictionary<string, string>();

        /// <summary>A client of the gateway at an origin, with the application's key, which has no white space around it.</summary>
        public SignpostClient(string url, string key)
        {
            var origin = UrlGrammar.Match(url ?? "");
            Check(origin.Success, "url must be http:// or https:// with a host and perhaps a port, and nothing else");
            _origin = origin.Groups[1].Value;
            Check(Uri.TryCreate(_origin, UriKind.Absolute, out _), "url has a host or a port that cannot be");
            _key = SignpostSignature.CheckKey(key);
        }

        /// <summary>Sends by a handler of your own, which must neither follow redirects nor keep cookies. It is not disposed.</summary>
        public SignpostClient(string url, string key, HttpMessageHandler handler)
            : this(url, key, new HttpClient(handler, false) { Timeout = System.Threading.Timeout.InfiniteTimeSpan })
        {
        }

        /// <summary>Sends by an HttpClient of your own, for example of IHttpClientFactory. Its Timeout counts, too. It is not disposed.</summary>
        public SignpostClient(string url, string key, HttpClient http)
            : this(url, key)
        {
            _given = http;
        }

        /// <summary>The application's ident, required in multi-application mode.</summary>
        public string App { get => _app; set => _app = CheckHeader("App", value); }

        /// <summary>The version to call. CONTRACT 5.</summary>
        public string Version { get => _version; set => _version = CheckHeader("Version", value); }

        /// <summary>The language of texts for people. CONTRACT 6.</summary>
        public string Language { get => _language; set => _language = CheckHeader("Language", value); }

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
                _rules = new SignpostSignature.Rules(value);
                _profile = value;
            }
        }

        /// <summary>Mono ignores it: there, Timeout ends the attempt.</summary>
        public TimeSpan ConnectTimeout { get; set; } = TimeSpan.FromSeconds(5);

        /// <summary>For one request and its response.</summary>
        public TimeSpan Timeout { get; set; } = TimeSpan.FromSeconds(65);

        /// <summary>How often a call is repeated at most.</summary>
        public int Retries { get; set; } = 3;

        /// <summary>The longest pause before a repetition.</summary>
        public TimeSpan MaxWait { get; set; } = TimeSpan.FromSeconds(30);

        /// <summary>http://[user:password@]host:port, "" for none, null for that of HTTPS_PROXY or HTTP_PROXY, unless NO_PROXY has the host.</summary>
        public string Proxy
        {
            get => _proxy;
            set
            {
                new Proxy(value);
                _proxy = value;
            }
        }

        /// <summary>A PEM file of the authorities to trust, in place of the system's.</summary>
        public string CaFile { get; set; }

        /// <summary>A certificate of the client's own, with its key.</summary>
        public X509Certificate2 ClientCertificate { get; set; }

        /// <summary>Gets version_unknown, deprecated, sunset or clock_off, and a value: each once. By default standard error does; null: nothing.</summary>
        public Action<string, string> OnWarning { get; set; } = (name, value) =>
            Console.Error.WriteLine(Printable($"signpost: {name}: {value}{(name == "version_unknown" ? " served, not the version asked for" : "")}"));

        /// <summary>Milliseconds since 1970.</summary>
        public Func<long> Clock { get; set; } = () => DateTimeOffset.UtcNow.ToUnixTimeMilliseconds();

        /// <summary>A copy for this user, which shares connections and clock. CONTRACT 8.</summary>
        public SignpostClient WithCredential(string credential) => Copy(CheckHeader("credential", credential), null);

        /// <summary>A copy for the user whose credential is in the store. Logins and renewals save there, a logout clears it.</summary>
        public SignpostClient WithStore(ICredentialStore store) => Copy(null, store);

        /// <summary>Closes the connections, but not of a handler or HttpClient of your own. To dispose a copy does nothing.</summary>
        public void Dispose()
        {
            if (!_isCopy)
            {
                _shared.Http?.Dispose();
            }
        }

        /// <summary>A name and a value, not encoded.</summary>
        public static KeyValuePair<string, object> Pair(string name, object value) => new KeyValuePair<string, object>(name, value);

        /// <summary>The pairs that have a value.</summary>
        private static IEnumerable<KeyValuePair<string, object>> Present(params (string Name, object Value)[] pairs) =>
            pairs.Where(pair => pair.Value != null).Select(pair => Pair(pair.Name, pair.Value));

        /// <summary>As CallAsync.</summary>
        public SignpostResponse Call(string method, string path, params KeyValuePair<string, object>[] pairs) =>
            CallAsync(method, path, pairs).GetAwaiter().GetResult();

        /// <summary>As CallAsync.</summary>
        public SignpostResponse Call(string method, string path, SignpostCall call) => CallAsync(method, path, call).GetAwaiter().GetResult();

        /// <summary>As CallAsync, with pairs alone.</summary>
        public Task<SignpostResponse> CallAsync(string method, string path, params KeyValuePair<string, object>[] pairs) =>
            CallAsync(method, path, new SignpostCall { Pairs = pairs });

        /// <summary>Signs a call and sends it. Redirects are not followed.</summary>
        /// <exception cref="SignpostProblem">A status of 400 or more. The call was repeated by CONTRACT 10 before.</exception>
        /// <exception cref="HttpRequestException">No usable response, for example none in time.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled. The call may have been executed.</exception>
        public async Task<SignpostResponse> CallAsync(
            string method, string path, SignpostCall call, CancellationToken cancellation = default(CancellationToken))
        {
            Check(Methods.Contains(method), "method must be one of " + string.Join(", ", Methods));
            var isPath = PathGrammar.IsMatch(path ?? "") && !DotSegment.IsMatch(path);
            Check(isPath, "path must begin with /, be encoded, and have no query and no segment . or ..");
            var prepared = new Prepared(this, method, path, call ?? new SignpostCall());
            call = prepared.Call;
            var isRepeatable = call.Repeatable ?? (call.IdempotencyKey != null || method != "POST" && method != "PATCH");
            var clock = Stopwatch.StartNew();
            var offset = Interlocked.Read(ref _shared.ClockOffset);
            var isCorrected = false;
            for (var repetitions = 0; ; repetitions++)
            {
                var request = prepared.Request(NextTime() + offset, out string signed);
                var pause = _shared.Pause(repetitions);
                var left = call.Timeout - clock.Elapsed;
                try
                {
                    var response = await SendAsync(request, prepared, signed, left ?? Timeout, cancellation).ConfigureAwait(false);
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
                    var isAsked = PerhapsExecuted.Contains(problem.Code) || problem.RetryAfter != null && (problem.Status == 429 || problem.Status == 503);
                    pause = problem.RetryAfter ?? pause;
                    if (!NotExecuted.Contains(problem.Code) && !(isRepeatable && isAsked) || !MayPause(repetitions, pause, call.Timeout - clock.Elapsed))
                    {
                        throw;
                    }
                }
                catch (HttpRequestException error) when ((isRepeatable || IsUnsent(error)) && MayPause(repetitions, pause, call.Timeout - clock.Elapsed))
                {
                    // It is repeated.
                }
                await Task.Delay(pause, cancellation).ConfigureAwait(false);
            }
        }

        /// <summary>Server-sent events as they arrive, until the response ends. Call's Timeout is that of the whole response.</summary>
        public IEnumerable<ServerSentEvent> ServerSentEvents(string path, SignpostCall call = null)
        {
            call = call?.Copy() ?? new SignpostCall();
            call.AsStream = true;
            call.Limit = long.MaxValue;
            var headers = call.Headers?.ToDictionary(header => header.Key, header => header.Value) ?? new Dictionary<string, string>();
            headers["Accept"] = "text/event-stream";
            call.Headers = headers;
            string name = null, id = "";
            var data = new List<string>();
            using (var response = Call("GET", path, call))
            using (var lines = new StreamReader(response.Stream, Encoding.UTF8))
            {
                for (var line = lines.ReadLine(); line != null; line = lines.ReadLine())
                {
                    var colon = line.IndexOf(':');
                    var field = colon < 0 ? line : line.Substring(0, colon);
                    var value = colon < 0 ? "" : line.Substring(colon + 1);
                    value = value.StartsWith(" ", StringComparison.Ordinal) ? value.Substring(1) : value;
                    if (line == "")
                    {
                        if (data.Count > 0)
                        {
                            yield return new ServerSentEvent { Event = string.IsNullOrEmpty(name) ? "message" : name, Data = string.Join("\n", data), Id = id };
                        }
                        name = null;
                        data.Clear();
                    }
                    else if (field == "data")
                    {
                        data.Add(value);
                    }
                    name = field == "event" ? value : name;
                    id = field == "id" ? value : id;
                }
            }
        }

        /// <summary>As LoginAsync.</summary>
        public SignpostLogin Login(Action<string, string> show, string provider = null, TimeSpan? timeout = null) =>
            LoginAsync(show, provider, timeout).GetAwaiter().GetResult();

        /// <summary>Logs a user in by polling. Without a store, continue with WithCredential(login.Credential). CONTRACT 8.</summary>
        /// <remarks>Show gets the address that the user must open, and the code that the user compares. The timeout is that of the whole login.</remarks>
        /// <exception cref="SignpostProblem">Also that of a login that failed, for example login_denied.</exception>
        public async Task<SignpostLogin> LoginAsync(
            Action<string, string> show, string provider = null, TimeSpan? timeout = null, CancellationToken cancellation = default(CancellationToken))
        {
            var clock = Stopwatch.StartNew();
            var checking = Copy(_credential, _store);
            checking.Timeout = TimeSpan.FromSeconds(CheckWaitSeconds + 10);
            var begin = new SignpostCall { Pairs = Present(("provider", provider)), Credential = "", Timeout = timeout };
            var begun = await ObjectAsync("POST", "/login", begin, cancellation).ConfigureAwait(false);
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
            var end = clock.Elapsed + Seconds(begun, "expires_in", 600, 3600);
            end = timeout < end ? timeout.Value : end;
            while (clock.Elapsed < end)
            {
                var start = clock.Elapsed;
                var wait = (int)Math.Max(0, Math.Min(CheckWaitSeconds, (end - start).TotalSeconds - 1));
                var pairs = Present(("token", token), ("wait", wait));
                var check = new SignpostCall { Pairs = pairs, Credential = "", Repeatable = true, Timeout = timeout - clock.Elapsed };
                var @checked = await checking.ObjectAsync("POST", "/check", check, cancellation).ConfigureAwait(false);
                if (Text(@checked, "status") != "pending")
                {
                    break;
                }
                if ((clock.Elapsed - start).TotalSeconds < CheckWaitSeconds / 2)
                {
                    var left = Math.Max(0, (end - clock.Elapsed).TotalMilliseconds + 1); // A timer counts whole ones, and can be early.
                    await Task.Delay((int)Math.Min(interval.TotalMilliseconds, left), cancellation).ConfigureAwait(false);
                }
            }
            if (timeout < clock.Elapsed)
            {
                throw new HttpRequestException($"the login was not completed within {timeout}");
            }
            var collect = new SignpostCall { Pairs = Present(("token", token)), Credential = "", Repeatable = true, Timeout = timeout - clock.Elapsed };
            return await TakeAsync("/user/login", collect, cancellation).ConfigureAwait(false);
        }

        /// <summary>Begins a redirect login: the address to open, and the code_verifier to keep in the user's session. CONTRACT 8 and 10.</summary>
        /// <remarks>Put a new random value into the query of returnTo and into the session. When the user comes back, compare them, then exchange.</remarks>
        public (string Url, string CodeVerifier) LoginUrl(string returnTo, string provider = null)
        {
            Check(_rules.Carrier != "headers", "a browser cannot sign in headers: the profile's Carrier must be parameters or both");
            var random = new byte[32];
            using (var generator = RandomNumberGenerator.Create())
            using (var sha256 = SHA256.Create())
            {
                generator.GetBytes(random);
                var verifier = Base64Url(random);
                var challenge = Base64Url(sha256.ComputeHash(Encoding.ASCII.GetBytes(verifier)));
                var pairs = Present(("app", App), ("return_to", returnTo), ("provider", provider), ("code_challenge", challenge), ("code_challenge_method", "S256"));
                var time = NextTime() + Interlocked.Read(ref _shared.ClockOffset);
                var query = SignpostSignature.Sign(pairs.Where(pair => (string)pair.Value != ""), _key, _profile, "GET", "/login", time);
                return (_origin + "/login?" + query, verifier);
            }
        }

        /// <summary>Ends a redirect login. A ticket serves once, within 60 s.</summary>
        public Task<SignpostLogin> ExchangeAsync(string ticket, string codeVerifier = null, CancellationToken cancellation = default(CancellationToken)) =>
            TakeAsync("/user/login", new SignpostCall { Pairs = Present(("ticket", ticket), ("code_verifier", codeVerifier)), Credential = "" }, cancellation);

        /// <summary>A new credential. The old one ends 60 s later; log in again when this fails with authorization_invalid.</summary>
        public Task<SignpostLogin> RenewAsync(CancellationToken cancellation = default(CancellationToken)) =>
            TakeAsync("/user/renew", new SignpostCall { Repeatable = true }, cancellation);

        /// <summary>Ends the login, and clears the store.</summary>
        public async Task LogoutAsync(CancellationToken cancellation = default(CancellationToken))
        {
            await CallAsync("POST", "/user/logout", new SignpostCall(), cancellation).ConfigureAwait(false);
            _store?.Clear();
        }

        /// <summary>The account of the user who is logged in.</summary>
        public async Task<SignpostAccount> UserAsync(CancellationToken cancellation = default(CancellationToken)) =>
            new SignpostAccount(await ObjectAsync("GET", "/user", new SignpostCall(), cancellation).ConfigureAwait(false));

        /// <summary>Stores an event with the account: id, event and received_at. It is repeatable only with an idempotency key.</summary>
        public Task<IReadOnlyDictionary<string, object>> SendEventAsync(
            string @event, string data = null, string idempotencyKey = null, CancellationToken cancellation = default(CancellationToken))
        {
            var pairs = Present(("event", @event), ("data", data), ("idempotency_key", idempotencyKey));
            return ObjectAsync("POST", "/event/send", new SignpostCall { Pairs = pairs, Repeatable = idempotencyKey != null }, cancellation);
        }

        /// <summary>A page of the account's events. Since v2.</summary>
        public async Task<SignpostEvents> EventsAsync(int limit = 20, string before = null, CancellationToken cancellation = default(CancellationToken))
        {
            var call = new SignpostCall { Pairs = Present(("limit", limit), ("before", before)) };
            return new SignpostEvents(await ObjectAsync("GET", "/events", call, cancellation).ConfigureAwait(false));
        }

        private SignpostClient Copy(string credential, ICredentialStore store)
        {
            var copy = (SignpostClient)MemberwiseClone();
            copy._credential = credential;
            copy._store = store;
            copy._isCopy = true;
            return copy;
        }

        private async Task<IReadOnlyDictionary<string, object>> ObjectAsync(string method, string path, SignpostCall call, CancellationToken cancellation) =>
            (await CallAsync(method, path, call, cancellation).ConfigureAwait(false)).Object();

        /// <summary>Takes a login's result, and saves the credential in the store.</summary>
        private async Task<SignpostLogin> TakeAsync(string path, SignpostCall call, CancellationToken cancellation)
        {
            var login = new SignpostLogin(await ObjectAsync("POST", path, call, cancellation).ConfigureAwait(false));
            _store?.Save(login.Credential);
            return login;
        }

        private HttpClient Http()
        {
            lock (_shared)
            {
                return _given ?? _shared.Http ?? (_shared.Http = NewHttp());
            }
        }

        private HttpClient NewHttp()
        {
            // Of Mono and .NET. It adds no header (HttpWebRequest: Expect), and its exceptions have no address.
            var handler = new SocketsHttpHandler
            {
                AllowAutoRedirect = false,
                UseCookies = false,
                ConnectTimeout = ConnectTimeout,
                PooledConnectionIdleTimeout = TimeSpan.FromSeconds(50), // CONTRACT 10: below the gateway's 60 s
                Proxy = new Proxy(Proxy),
            };
            if (CaFile != null)
            {
                handler.SslOptions.RemoteCertificateValidationCallback = new Authorities(CaFile).Trusts;
            }
            if (ClientCertificate != null)
            {
                handler.SslOptions.ClientCertificates = new X509CertificateCollection { ClientCertificate };
                handler.SslOptions.LocalCertificateSelectionCallback = (sender, host, certificates, remote, issuers) => ClientCertificate;
            }
            return new HttpClient(handler) { Timeout = System.Threading.Timeout.InfiniteTimeSpan };
        }

        private async Task<SignpostResponse> SendAsync(
            HttpRequestMessage request, Prepared prepared, string signed, TimeSpan timeout, CancellationToken cancellation)
        {
            SignpostResponse response;
            var where = $"{request.Method} {prepared.Path}";
            var timer = CancellationTokenSource.CreateLinkedTokenSource(cancellation);
            HttpResponseMessage message = null;
            try
            {
                timer.CancelAfter(timeout > TimeSpan.Zero ? timeout : TimeSpan.Zero);
                var sending = Http().SendAsync(request, HttpCompletionOption.ResponseHeadersRead, timer.Token);
                // Mono goes on to connect after the token is cancelled.
                await Task.WhenAny(sending, Task.Delay(System.Threading.Timeout.Infinite, timer.Token)).ConfigureAwait(false);
                message = sending.IsCompleted ? await sending.ConfigureAwait(false) : throw new OperationCanceledException(timer.Token);
                if ((int)message.StatusCode < 200)
                {
                    // Mono takes an interim response for the whole, so its connection has another one: none is used again.
                    lock (_shared)
                    {
                        _shared.Http = null;
                    }
                    throw new HttpRequestException("an interim response");
                }
                response = await ReceiveAsync(message, prepared.Call, timer).ConfigureAwait(false);
                message = response.Stream == null ? message : null;
                timer = response.Stream == null ? timer : null;
            }
            catch (OperationCanceledException error) when (!cancellation.IsCancellationRequested)
            {
                // Not by the timer: the handler's timeout for connecting.
                var inner = timer.IsCancellationRequested ? new TimeoutException() : (Exception)error;
                throw new HttpRequestException($"{where}: no {(inner == error ? "connection" : "response")} in time", inner);
            }
            catch (Exception error) when (error is HttpRequestException || error is IOException)
            {
                throw new HttpRequestException($"{where}: {error.GetBaseException().Message}", error);
            }
            finally
            {
                message?.Dispose();
                timer?.Dispose();
            }
            Warn(response, prepared.Version);
            return response.Status < 400 ? response : throw new SignpostProblem(
                response, ProblemDocument(response), Signed(prepared, signed), response.RetryAfter(DateTimeOffset.FromUnixTimeMilliseconds(Clock())));
        }

        private static async Task<SignpostResponse> ReceiveAsync(HttpResponseMessage message, SignpostCall call, CancellationTokenSource timer)
        {
            var isError = (int)message.StatusCode >= 400;
            if (message.Content.Headers.TryGetValues("Content-Length", out IEnumerable<string> lengths) && string.Join(",", lengths).Contains(","))
            {
                throw new HttpRequestException("malformed response: two lengths"); // Mono takes the first.
            }
            var received = await message.Content.ReadAsStreamAsync().ConfigureAwait(false);
            if (call.AsStream && !isError)
            {
                return new SignpostResponse(message, null, new ResponseStream(received, call.Limit, timer.Token, message, timer));
            }
            // Of an error, the beginning is enough.
            using (var stream = new ResponseStream(received, isError ? long.MaxValue : call.Limit, timer.Token, message))
            {
                var bytes = new MemoryStream();
                var buffer = new byte[65536];
                for (int count; (count = await stream.ReadAsync(buffer, 0, buffer.Length, CancellationToken.None).ConfigureAwait(false)) > 0;)
                {
                    bytes.Write(buffer, 0, isError ? (int)Math.Min(count, MaxErrorBytes - bytes.Length) : count);
                    if (isError && bytes.Length >= MaxErrorBytes)
                    {
                        break;
                    }
                }
                return new SignpostResponse(message, bytes.ToArray(), null);
            }
        }

        /// <summary>What the client signed, as the gateway shows it: without key and secret values, at most 2 KiB. CONTRACT 7.</summary>
        private string Signed(Prepared prepared, string text)
        {
            var masked = Secret.Replace(text, "$1***").Replace(SignpostSignature.Encode(_key), "***");
            var shown = prepared.IsInHeaders ? masked : _rules.Canonical("", masked, "<APP_KEY>", prepared.Method, prepared.Path);
            return string.Concat(shown.Take(2048));
        }

        private bool MayPause(int repetitions, TimeSpan pause, TimeSpan? left) => repetitions < Retries && pause <= MaxWait && !(pause >= left);

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
            lock (_shared)
            {
                return _shared.LastTime = Math.Max(Clock(), _shared.LastTime + 1);
            }
        }

        /// <summary>The clock's time. If the clock was set back, the times go on from it; those of other threads are only a little ahead.</summary>
        private long ClockTime()
        {
            lock (_shared)
            {
                var now = Clock();
                _shared.LastTime = _shared.LastTime - now >= 1000 ? now : _shared.LastTime;
                return now;
            }
        }

        /// <summary>Keeps a correction for later calls, once the gateway took the time of a request.</summary>
        private void KeepOffset(bool isTaken, long offset)
        {
            if (isTaken)
            {
                Interlocked.Exchange(ref _shared.ClockOffset, offset);
                Warn("clock_off", $"{(Math.Abs(offset) + 500) / 1000} s {(offset > 0 ? "behind" : "ahead")}");
            }
        }

        private void Warn(SignpostResponse response, string version)
        {
            string asked = (version ?? "").Trim(), served = response.Header(HeaderName("version")) ?? "";
            var isOther = asked != "" && served != "" && !asked.Equals(served, StringComparison.OrdinalIgnoreCase);
            Warn("version_unknown", isOther || response.Header(Prefix + "-X-Version-Source") == "unknown" ? served : null);
            Warn("deprecated", response.Header("Deprecation"));
            Warn("sunset", response.Header("Sunset"));
        }

        private void Warn(string name, string value)
        {
            if (value != null && _shared.Warned.TryAdd(name, true))
            {
                OnWarning?.Invoke(name, value);
            }
        }

        private static void Check(bool isRight, string otherwise) => SignpostSignature.Check(isRight, otherwise);

        private static string CheckHeader(string name, string value)
        {
            Check(value == null || value.All(one => one >= ' ' && one <= '~'), name + " must be printable ASCII: it is sent as a header");
            return value;
        }

        private static string Base64Url(byte[] bytes) => Convert.ToBase64String(bytes).TrimEnd('=').Replace('+', '-').Replace('/', '_');

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

        private static IReadOnlyDictionary<string, object> ProblemDocument(SignpostResponse response)
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

        /// <summary>What a client and its copies share.</summary>
        private sealed class Shared
        {
            internal readonly ConcurrentDictionary<string, bool> Warned = new ConcurrentDictionary<string, bool>();
            internal long ClockOffset, LastTime; // LastTime is of the clock, without the offset
            internal HttpClient Http;
            private readonly Random _random = new Random();

            internal TimeSpan Pause(int repetitions)
            {
                lock (this)
                {
                    return TimeSpan.FromSeconds(0.5 * Math.Pow(2, Math.Min(repetitions, 20)) * (0.5 + _random.NextDouble()));
                }
            }
        }

        /// <summary>A call whose arguments are checked, ready to be signed again for each repetition.</summary>
        private sealed class Prepared
        {
            internal readonly string Method, Path, Version;
            internal readonly SignpostCall Call;
            internal readonly bool IsInHeaders;
            private readonly SignpostClient _client;
            private readonly bool _isForm;
            private readonly string _type, _encoded, _hash;
            private readonly byte[] _bytes;
            private readonly long _start, _length;

            internal Prepared(SignpostClient client, string method, string path, SignpostCall call)
            {
                _client = client;
                Method = method;
                Path = path;
                var rules = client._rules;
                var bodies = (call.HasJson ? 1 : 0) + (call.Body != null ? 1 : 0) + (call.Upload != null ? 1 : 0);
                Check(bodies <= 1, "a call has one of Json, Body and Upload");
                Check(bodies == 0 || method != "GET" && method != "HEAD", method + " has no body");
                Check(bodies == 0 || rules.Carrier != "parameters", "Json, Body and Upload are signed in headers: set the profile's carrier to headers or both");
                Check(call.ContentType == null || bodies == 1, "ContentType needs a body");
                Check(call.Upload == null || call.Upload.CanSeek, "Upload must be a stream that can be read twice");
                call = call.Copy();
                call.Pairs = call.Pairs?.ToList();
                Call = call;
                _isForm = bodies == 0 && (method == "POST" || method == "PUT" || method == "PATCH");
                var isPairs = (method == "GET" || method == "POST") && bodies == 0 && call.Pairs != null && call.Pairs.Any();
                IsInHeaders = rules.Carrier == "headers" || rules.Carrier == "both" && !isPairs;
                _encoded = IsInHeaders ? string.Join("&", SignpostSignature.EncodePairs(call.Pairs)) : null;
                _bytes = call.HasJson ? SignpostSignature.ToUtf8(Json.Write(call.Json), "Json") : call.Body;
                _type = _isForm ? "application/x-www-form-urlencoded"
                    : CheckHeader("ContentType", call.ContentType) ?? (call.HasJson ? "application/json" : bodies == 1 ? "application/octet-stream" : null);
                using (var sha256 = SHA256.Create())
                {
                    _start = call.Upload?.Position ?? 0;
                    _hash = SignpostSignature.Hex(call.Upload != null ? sha256.ComputeHash(call.Upload)
                        : sha256.ComputeHash(_bytes ?? Encoding.ASCII.GetBytes(_isForm ? _encoded ?? "" : "")));
                    _length = call.Upload == null ? 0 : call.Upload.Position - _start;
                }
                Version = call.Version ?? client.Version;
            }

            /// <summary>The request, signed for a time, and the text that was signed.</summary>
            internal HttpRequestMessage Request(long time, out string signed)
            {
                var now = time.ToString(CultureInfo.InvariantCulture);
                var text = IsInHeaders ? _encoded : SignpostSignature.EncodePairs(Call.Pairs, time);
                text = _isForm || text == "" ? text : AsWritten(text);
                signed = text;
                if (!IsInHeaders)
                {
                    text += "&sign=" + _client._rules.Signature("", text, _client._key, Method, Path);
                }
                var target = _isForm || text == "" ? Path : Path + "?" + text;
                Uri.TryCreate(_client._origin + target, UriKind.Absolute, out var address);
                // Uri writes %41 in a path as A: what is sent would not be what was signed.
                Check(address?.PathAndQuery == target, "path has an escape that .NET would change, or the address is too long");
                var request = new HttpRequestMessage(new HttpMethod(Method), address);
                if (Method != "GET" && Method != "HEAD")
                {
                    // Also an empty one: without a content, .NET itself repeats a request whose idle connection was closed.
                    request.Content = Call.Upload != null ? new UploadContent(Call.Upload, _start, _length)
                        : (HttpContent)new ByteArrayContent(_bytes ?? Encoding.ASCII.GetBytes(_isForm ? text : ""));
                }
                if (_type != null)
                {
                    request.Content.Headers.TryAddWithoutValidation("Content-Type", _type);
                }
                AddHeaders(request);
                if (IsInHeaders)
                {
                    var algorithm = _client._rules.IsHeaderHmac ? "hmac-sha256" : "md5";
                    var nonce = Guid.NewGuid().ToString("N");
                    request.Headers.TryAddWithoutValidation(_client.Prefix + "-X-Time", now);
                    request.Headers.TryAddWithoutValidation(_client.Prefix + "-X-Nonce", nonce);
                    var sign = SignpostSignature.Head(Method, target, now, nonce, _hash, _client._key, algorithm);
                    request.Headers.TryAddWithoutValidation(_client.Prefix + "-X-Sign", sign);
                    signed = SignpostSignature.HeadText(Method, target, now, nonce, _hash, algorithm);
                }
                return request;
            }

            private void AddHeaders(HttpRequestMessage request)
            {
                var credential = Call.Credential ?? (_client._store == null ? _client._credential : _client._store.Load());
                var values = new[] { _client.App, Version, Call.Language ?? _client.Language, credential };
                var names = ConventionHeaders.Select(_client.HeaderName).ToArray();
                var taken = ReservedHeaders.Concat(names).Concat(new[] { "Time", "Sign", "Nonce" }.Select(name => $"{_client.Prefix}-X-{name}"));
                request.Headers.TryAddWithoutValidation("Accept", "application/json");
                request.Headers.TryAddWithoutValidation("User-Agent", "signpost-csharp/" + ProductVersion);
                foreach (var header in Call.Headers ?? new Dictionary<string, string>())
                {
                    Check(!taken.Contains(header.Key, StringComparer.OrdinalIgnoreCase), $"Headers: {Printable(header.Key)} is a header of the client's own");
                    CheckHeader("Headers: " + Printable(header.Key), header.Value ?? "\n");
                    var isOfRequest = new HttpRequestMessage().Headers.TryAddWithoutValidation(header.Key, "");
                    if (isOfRequest)
                    {
                        request.Headers.Remove(header.Key); // the default one
                    }
                    Check(isOfRequest ? request.Headers.TryAddWithoutValidation(header.Key, header.Value) : request.Content?.Headers.TryAddWithoutValidation(header.Key, header.Value) == true,
                        $"Headers: {Printable(header.Key)} cannot be sent");
                }
                for (var index = 0; index < values.Length; index++)
                {
                    if (!string.IsNullOrEmpty(values[index]))
                    {
                        request.Headers.TryAddWithoutValidation(names[index], CheckHeader(ConventionHeaders[index], values[index]));
                    }
                }
                if (Call.IdempotencyKey != null)
                {
                    request.Headers.TryAddWithoutValidation("Idempotency-Key", CheckHeader("IdempotencyKey", Call.IdempotencyKey));
                }
            }

            /// <summary>The query as Uri writes it, so that this is signed: Mono's writes %28 as (, if another escape is not ASCII.</summary>
            private string AsWritten(string query)
            {
                Check(Uri.TryCreate(_client._origin + Path + "?" + query, UriKind.Absolute, out var address), "the address is too long");
                var written = address.Query.Substring(1);
                var pairs = written.Split('&')
                    .Select(pair => string.Join("=", pair.Split('=').Select(part => SignpostSignature.Encode(SignpostSignature.Decode(part)))));
                Check(string.Join("&", pairs) == query, "a pair has a character that .NET removes from addresses, for example U+200E: send it by POST");
                return written;
            }
        }

        private const string ProductVersion = "0.9.0";
    }
}
