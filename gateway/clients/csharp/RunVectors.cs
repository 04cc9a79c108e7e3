// Conformance of the library: obeys a command of JSON in each line.
// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Net.Http;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using Signpost;
using Members = System.Collections.Generic.IReadOnlyDictionary<string, object>;

internal static class RunVectors
{
    private static readonly List<object> Warnings = new List<object>();
    private static SignpostClient client;

    private static void Sign(Members one, Dictionary<string, object> answer)
    {
        var members = (Members)one["profile"];
        var profile = Profile(members.Where(member => member.Key != "head" && member.Key != "cover"));
        var head = (Text(members, "head") ?? "\n").Split('\n');
        profile.Cover = members.ContainsKey("head") ? "request" : null;
        answer["canonical"] = SignpostSignature.Canonical(Text(one, "query"), Text(one, "body"), profile, head[0], head[1]);
        answer["sign"] = SignpostSignature.Signature(Text(one, "query"), Text(one, "body"), Text(one, "app_key"), profile, head[0], head[1]);
    }

    private static void Head(Members one, Dictionary<string, object> answer)
    {
        var hash = Sha256(new MemoryStream(Encoding.UTF8.GetBytes(Text(one, "body"))));
        var head = new[] { "method", "target", "time", "nonce" }.Select(name => Text(one, name)).ToArray();
        answer["text"] = SignpostSignature.HeadText(head[0], head[1], head[2], head[3], hash, Text(one, "algorithm"));
        answer["sign"] = SignpostSignature.Head(head[0], head[1], head[2], head[3], hash, Text(one, "app_key"), Text(one, "algorithm"));
    }

    private static string Sha256(Stream stream)
    {
        using (var hash = SHA256.Create())
        {
            return string.Concat(hash.ComputeHash(stream).Select(one => one.ToString("x2", CultureInfo.InvariantCulture)));
        }
    }

    private static void Main()
    {
        var lines = new StreamReader(Console.OpenStandardInput(), new UTF8Encoding(false));
        for (var line = lines.ReadLine(); line != null; line = lines.ReadLine())
        {
            var command = ((Members)new Json(line).Document()).Single();
            var answer = new Dictionary<string, object>();
            try
            {
                RunAsync(command.Key, (Members)command.Value, answer).GetAwaiter().GetResult();
            }
            catch (SignpostProblem problem)
            {
                answer["problem"] = new Dictionary<string, object>
                {
                    { "status", problem.Status }, { "code", problem.Code }, { "title", problem.Title }, { "hint", problem.Hint },
                    { "canonical", problem.Canonical }, { "request_id", problem.RequestId }, { "message", problem.Message },
                    { "body", problem.Response.Body }, { "headers", Headers(problem.Response) },
                };
            }
            catch (HttpRequestException error)
            {
                answer["transport"] = error.Message;
            }
            catch (OperationCanceledException)
            {
                answer["cancelled"] = true;
            }
            catch (ArgumentException error)
            {
                answer["argument"] = error.Message;
            }
            answer["warnings"] = Warnings;
            Write(answer);
            Warnings.Clear();
        }
    }

    private static async Task RunAsync(string command, Members arguments, Dictionary<string, object> answer)
    {
        var cancel = new CancellationTokenSource();
        if (arguments.TryGetValue("cancel_after_ms", out object delay))
        {
            cancel.CancelAfter((int)(long)delay);
        }
        switch (command)
        {
            case "sign":
                Sign(arguments, answer);
                break;
            case "text":
                var time = long.Parse(Text(arguments, "time"), CultureInfo.InvariantCulture);
                var profile = Profile((Members)arguments["profile"]);
                answer["text"] = SignpostSignature.Sign(
                    Pairs(arguments["pairs"]), Text(arguments, "app_key"), profile, Text(arguments, "method"), Text(arguments, "path"), time);
                break;
            case "head":
                Head(arguments, answer);
                break;
            case "new":
                Connect(arguments);
                answer["ok"] = true;
                break;
            case "call":
                Responded(answer, await client.CallAsync(Text(arguments, "method"), Text(arguments, "path"), Call(arguments), cancel.Token));
                break;
            case "mixed":
                Mixed(arguments, answer);
                break;
            case "upload":
                using (var file = File.OpenRead(Text(arguments, "file")))
                {
                    var upload = new SignpostCall { Upload = file, ContentType = Text(arguments, "content_type") };
                    Responded(answer, await client.CallAsync(Text(arguments, "method"), Text(arguments, "path"), upload));
                }
                break;
            case "download":
                var download = new SignpostCall { AsStream = true, Limit = (long)arguments["limit"] };
                using (var response = await client.CallAsync("GET", Text(arguments, "path"), download))
                {
                    answer["sha256"] = Sha256(response.Stream);
                    answer["status"] = response.Status;
                    answer["bytes"] = response.Stream.Position;
                }
                break;
            case "events_stream":
                var received = client.ServerSentEvents(Text(arguments, "path")).Select(one => new Dictionary<string, object>
                {
                    { "event", one.Event }, { "data", one.Data }, { "id", one.Id },
                });
                answer["events"] = received.Cast<object>().ToList();
                break;
            case "login":
                LoggedIn(answer, await client.LoginAsync(Show, Text(arguments, "provider"), Duration(arguments, "timeout"), cancel.Token));
                break;
            case "login_url":
                var begun = client.LoginUrl(Text(arguments, "return_to"), Text(arguments, "provider"));
                answer["url"] = begun.Url;
                answer["code_verifier"] = begun.CodeVerifier;
                break;
            case "exchange":
                LoggedIn(answer, await client.ExchangeAsync(Text(arguments, "ticket"), Text(arguments, "code_verifier")));
                break;
            case "renew":
                LoggedIn(answer, await client.RenewAsync());
                break;
            case "user":
                answer["user"] = (await client.UserAsync()).Members;
                break;
            case "send_event":
                answer["event"] = await client.SendEventAsync(Text(arguments, "event"), Text(arguments, "data"), Text(arguments, "idempotency_key"));
                break;
            case "events":
                answer["events"] = (await client.EventsAsync((int)(long)Member(arguments, "limit", 20L))).Events.Cast<object>().ToList();
                break;
            case "logout":
                await client.LogoutAsync();
                client = client.WithCredential(null);
                answer["ok"] = true;
                break;
            default:
                throw new NotSupportedException("no such command: " + command);
        }
    }

    private static void Responded(Dictionary<string, object> answer, SignpostResponse response)
    {
        answer["status"] = response.Status;
        answer["body"] = response.Body;
        answer["headers"] = Headers(response);
    }

    private static Members Headers(SignpostResponse response) =>
        response.Headers.ToDictionary(header => header.Key.ToLowerInvariant(), header => (object)header.Value);

    private static void LoggedIn(Dictionary<string, object> answer, SignpostLogin login)
    {
        client = client.WithCredential(login.Credential);
        answer["login"] = new Dictionary<string, object>
        {
            { "authorization", login.Credential }, { "expires_in", login.ExpiresIn }, { "created", login.Created }, { "account", login.Account?.Members },
        };
    }

    private static SignpostCall Call(Members arguments)
    {
        var body = Text(arguments, "body");
        var headers = (Members)Member(arguments, "headers", null);
        var call = new SignpostCall
        {
            Pairs = Pairs(Member(arguments, "pairs", new List<object>())),
            Body = body == null ? null : Encoding.UTF8.GetBytes(body),
            ContentType = Text(arguments, "content_type"),
            Headers = headers?.ToDictionary(header => header.Key, header => (string)header.Value),
            Credential = Text(arguments, "credential"),
            Version = Text(arguments, "version"),
            Language = Text(arguments, "language"),
            Timeout = Duration(arguments, "timeout"),
            IdempotencyKey = Text(arguments, "idempotency_key"),
            Repeatable = (bool?)Member(arguments, "repeatable", null),
        };
        if (arguments.TryGetValue("json", out var json))
        {
            call.Json = json;
        }
        return call;
    }

    private static void Mixed(Members arguments, Dictionary<string, object> answer)
    {
        var credentials = ((List<object>)arguments["credentials"]).Cast<string>().ToArray();
        var count = (int)((long)arguments["calls"] / (long)arguments["threads"]);
        var mixed = 0;
        var path = Text(arguments, "path");
        var threads = Enumerable.Range(0, (int)(long)arguments["threads"]).Select(number => new Thread(() =>
        {
            for (var one = 0; one < count; one++)
            {
                var credential = credentials[(number + one) % credentials.Length];
                try
                {
                    var body = client.Call("GET", path, new SignpostCall { Credential = credential }).Body;
                    Interlocked.Add(ref mixed, body.Contains(credential) ? 0 : 1);
                }
                catch (Exception error)
                {
                    Console.Error.WriteLine(error);
                    Interlocked.Increment(ref mixed);
                }
            }
        })).ToList();
        threads.ForEach(thread => thread.Start());
        threads.ForEach(thread => thread.Join());
        answer["mixed"] = mixed;
        answer["calls"] = count * threads.Count;
    }

    private static void Show(string authorizeUrl, string userCode) =>
        Write(new Dictionary<string, object> { { "open", authorizeUrl }, { "user_code", userCode } });

    private static void Connect(Members settings)
    {
        var offset = (long)Member(settings, "clock_offset_ms", 0L);
        var certificate = Text(settings, "client_cert_file");
        client = new SignpostClient(Text(settings, "url"), Text(settings, "key"))
        {
            App = Text(settings, "app"),
            Prefix = Text(settings, "prefix") ?? "Acme",
            Version = Text(settings, "version"),
            Language = Text(settings, "language"),
            Profile = Profile((Members)Member(settings, "profile", new Dictionary<string, object>())),
            Timeout = Duration(settings, "timeout") ?? TimeSpan.FromSeconds(65),
            ConnectTimeout = Duration(settings, "connect_timeout") ?? TimeSpan.FromSeconds(5),
            Retries = (int)(long)Member(settings, "retries", 3L),
            MaxWait = Duration(settings, "max_wait") ?? TimeSpan.FromSeconds(30),
            Clock = () => DateTimeOffset.UtcNow.ToUnixTimeMilliseconds() + offset,
            Proxy = Text(settings, "proxy"),
            CaFile = Text(settings, "ca_file"),
            ClientCertificate = certificate == null ? null : ReadCertificate(certificate, Text(settings, "client_key_file")),
        };
        client = client.WithCredential(Text(settings, "credential"));
        if (Text(settings, "warnings") != "default")
        {
            client.OnWarning = Text(settings, "warnings") == "off" ? (Action<string, string>)null : (name, value) => Warnings.Add(new List<object> { name, value });
        }
    }

    /// <summary>Mono reads keys from PKCS #12 only.</summary>
    private static X509Certificate2 ReadCertificate(string certificate, string key)
    {
        var arguments = $"pkcs12 -export -passout pass: -legacy -in \"{certificate}\" -inkey \"{key}\"";
        var start = new System.Diagnostics.ProcessStartInfo("openssl", arguments) { RedirectStandardOutput = true, UseShellExecute = false };
        using (var openssl = System.Diagnostics.Process.Start(start))
        {
            var bytes = new MemoryStream();
            openssl.StandardOutput.BaseStream.CopyTo(bytes);
            return new X509Certificate2(bytes.ToArray(), "");
        }
    }

    private static SignpostProfile Profile(IEnumerable<KeyValuePair<string, object>> members)
    {
        var profile = new SignpostProfile();
        foreach (var member in members)
        {
            if (member.Key == "leave_out")
            {
                profile.LeaveOut = ((List<object>)member.Value).Cast<string>();
                continue;
            }
            // The compiler rejects an unknown member of an initializer.
            var property = typeof(SignpostProfile).GetProperty(CultureInfo.InvariantCulture.TextInfo.ToTitleCase(member.Key))
                ?? throw new ArgumentException($"profile can have preset, values, layout, empty, leave_out, cover, algorithm, carrier, not {member.Key}");
            property.SetValue(profile, member.Value);
        }
        return profile;
    }

    private static object Member(Members members, string name, object otherwise) => members.TryGetValue(name, out var value) ? value : otherwise;

    private static string Text(Members members, string name) => (string)Member(members, name, null);

    private static TimeSpan? Duration(Members members, string name) => members.TryGetValue(name, out var seconds)
        ? TimeSpan.FromSeconds(Convert.ToDouble(seconds, CultureInfo.InvariantCulture)) : (TimeSpan?)null;

    private static List<KeyValuePair<string, object>> Pairs(object list) =>
        ((List<object>)list).Cast<List<object>>().Select(pair => SignpostClient.Pair((string)pair[0], pair[1])).ToList();

    private static void Write(object answer) => Console.WriteLine(Json.Write(answer));
}
