// Conformance of Signpost.cs: run-vectors sign FILE, run-vectors text FILE, run-vectors drive.
// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Net.Http;
using System.Text;
using Members = System.Collections.Generic.IReadOnlyDictionary<string, object>;

internal static class RunVectors
{
    private static readonly List<object> Warnings = new List<object>();
    private static Signpost client;

    private static int Main(string[] arguments)
    {
        switch (string.Join(" ", arguments.Take(1)) + arguments.Length)
        {
            case "sign2":
                RunSign(arguments[1]);
                return 0;
            case "text2":
                RunText(arguments[1]);
                return 0;
            case "drive1":
                Drive();
                return 0;
            default:
                Console.Error.WriteLine("usage: run-vectors sign FILE | text FILE | drive");
                return 1;
        }
    }

    private static void RunSign(string file)
    {
        foreach (var one in Cases(file))
        {
            var members = (Members)one["profile"];
            var profile = Profile(members.Where(member => member.Key != "head" && member.Key != "cover"));
            var head = (Text(members, "head") ?? "\n").Split('\n');
            profile.Cover = members.ContainsKey("head") ? "request" : null;
            var canonical = Signpost.Canonical(Text(one, "query"), Text(one, "body"), profile, head[0], head[1]);
            var sign = Signpost.Signature(Text(one, "query"), Text(one, "body"), Text(one, "app_key"), profile, head[0], head[1]);
            Write(new Dictionary<string, object> { { "canonical", canonical }, { "sign", sign } });
        }
    }

    private static void RunText(string file)
    {
        foreach (var one in Cases(file))
        {
            var time = long.Parse(Text(one, "time"), CultureInfo.InvariantCulture);
            var profile = Profile((Members)one["profile"]);
            var text = Signpost.Sign(Pairs(one["pairs"]), Text(one, "app_key"), profile, Text(one, "method"), Text(one, "path"), time);
            Write(new Dictionary<string, object> { { "text", text } });
        }
    }

    private static void Drive()
    {
        var lines = new StreamReader(Console.OpenStandardInput(), new UTF8Encoding(false));
        for (var line = lines.ReadLine(); line != null; line = lines.ReadLine())
        {
            var command = ((Members)new Signpost.Json(line).Document()).Single();
            var answer = new Dictionary<string, object>();
            try
            {
                Run(command.Key, (Members)command.Value, answer);
            }
            catch (SignpostProblem problem)
            {
                answer["problem"] = new Dictionary<string, object>
                {
                    { "status", problem.Status }, { "code", problem.Code }, { "title", problem.Title }, { "hint", problem.Hint },
                    { "canonical", problem.Canonical }, { "request_id", problem.RequestId }, { "message", problem.Message },
                };
            }
            catch (HttpRequestException error)
            {
                answer["transport"] = error.Message;
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

    private static void Run(string command, Members arguments, Dictionary<string, object> answer)
    {
        switch (command)
        {
            case "new":
                Connect(arguments);
                answer["ok"] = true;
                break;
            case "call":
                var repeatable = arguments.TryGetValue("repeatable", out var isRepeatable) ? (bool?)isRepeatable : null;
                var response = client.Call(Text(arguments, "method"), Text(arguments, "path"), Pairs(arguments["pairs"]), repeatable);
                answer["status"] = response.Status;
                answer["body"] = response.Body;
                break;
            case "login":
                var login = client.Login(Show, Text(arguments, "provider"));
                answer["login"] = new Dictionary<string, object>
                {
                    { "authorization", login.Authorization }, { "expires_in", login.ExpiresIn }, { "created", login.Created },
                    { "account", login.Account },
                };
                break;
            case "user":
                answer["user"] = client.User();
                break;
            case "send_event":
                answer["event"] = client.SendEvent(Text(arguments, "event"), Text(arguments, "data"), Text(arguments, "idempotency_key"));
                break;
            case "logout":
                client.Logout();
                answer["ok"] = true;
                break;
            default:
                throw new NotSupportedException("no such command: " + command);
        }
    }

    private static void Show(string authorizeUrl, string userCode) =>
        Write(new Dictionary<string, object> { { "open", authorizeUrl }, { "user_code", userCode } });

    private static void Connect(Members settings)
    {
        var offset = (long)Member(settings, "clock_offset_ms", 0L);
        client = new Signpost(Text(settings, "url"), Text(settings, "key"))
        {
            App = Text(settings, "app"),
            Prefix = Text(settings, "prefix") ?? "Acme",
            Version = Text(settings, "version"),
            Language = Text(settings, "language"),
            Authorization = Text(settings, "authorization"),
            Profile = Profile((Members)Member(settings, "profile", new Dictionary<string, object>())),
            Retries = (int)(long)Member(settings, "retries", 3L),
            MaxWait = TimeSpan.FromSeconds(Convert.ToDouble(Member(settings, "max_wait", 30L), CultureInfo.InvariantCulture)),
            Clock = () => DateTimeOffset.UtcNow.ToUnixTimeMilliseconds() + offset,
        };
        if (Text(settings, "warnings") != "default")
        {
            client.OnWarning = Text(settings, "warnings") == "off" ? (Action<string, string>)null : (name, value) => Warnings.Add(new List<object> { name, value });
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
                ?? throw new ArgumentException($"profile can have preset, values, layout, empty, leave_out, cover, algorithm, not {member.Key}");
            property.SetValue(profile, member.Value);
        }
        return profile;
    }

    private static IEnumerable<Members> Cases(string file)
    {
        var document = (Members)new Signpost.Json(File.ReadAllText(file)).Document();
        return ((List<object>)document["cases"]).Cast<Members>();
    }

    private static object Member(Members members, string name, object otherwise) => members.TryGetValue(name, out var value) ? value : otherwise;

    private static string Text(Members members, string name) => (string)Member(members, name, null);

    private static List<KeyValuePair<string, string>> Pairs(object list) =>
        ((List<object>)list).Cast<List<object>>().Select(pair => Signpost.Pair((string)pair[0], (string)pair[1])).ToList();

    private static void Write(object answer)
    {
        var json = new StringBuilder();
        Write(answer, json);
        Console.WriteLine(json);
    }

    private static void Write(object value, StringBuilder json)
    {
        if (value is string text)
        {
            json.Append('"');
            foreach (var one in text)
            {
                var isPlain = one >= ' ' && one <= '~' && one != '"' && one != '\\';
                json.Append(isPlain ? one.ToString() : "\\u" + ((int)one).ToString("x4", CultureInfo.InvariantCulture));
            }
            json.Append('"');
        }
        else if (value is Members members)
        {
            WriteAll("{", members, "}", json, member =>
            {
                Write(member.Key, json);
                json.Append(':');
                Write(member.Value, json);
            });
        }
        else if (value is List<object> list)
        {
            WriteAll("[", list, "]", json, one => Write(one, json));
        }
        else
        {
            json.Append(value is bool ? value.ToString().ToLowerInvariant() : Convert.ToString(value ?? "null", CultureInfo.InvariantCulture));
        }
    }

    private static void WriteAll<T>(string open, IEnumerable<T> all, string close, StringBuilder json, Action<T> write)
    {
        var separator = open;
        foreach (var one in all)
        {
            json.Append(separator);
            write(one);
            separator = ",";
        }
        json.Append(all.Any() ? "" : open).Append(close);
    }
}
