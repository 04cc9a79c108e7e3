//! Each form in which people have a request, and what is read of it.

use super::*;

const FORM: &str = "application/x-www-form-urlencoded";

const SHOP: &str = "Acme-X-App: shop\r\n";

/// What is read: the request without its `Host`, the origin, and what was noticed.
fn read(text: &str) -> (String, String, Vec<Noticed>) {
    let pasted: Pasted = text
        .parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    let origin = pasted.origin.as_ref().map(Origin::to_string);
    (pasted.text, origin.unwrap_or_default(), pasted.noticed)
}

fn form(target: &str, host: &str, headers: &str, body: &str) -> String {
    let (length, host) = (body.len(), format!("Host: {host}\r\n"));
    format!(
        "POST {target} HTTP/1.1\r\n{host}{headers}Content-Type: {FORM}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

fn get(target: &str, host: &str, headers: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n")
}

const API: &str = "https://api.example";

#[test]
fn a_request_as_it_is_sent_keeps_its_bytes() {
    for sent in [
        "GET /user?time=1&sign=a HTTP/1.1\r\nHost: api.example\r\nAcme-X-App: shop\r\n\r\n",
        "POST /e HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na=1\r\nleft",
        "GET http://other.example/x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /a b HTTP/1.1\r\n\r\n",
        "get /user HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n",
        "POST /e HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n",
        "GET /user\r\nHost: a\r\n\r\n",
    ] {
        assert_eq!(
            read(sent),
            (sent.to_owned(), String::new(), vec![]),
            "{sent}"
        );
    }
}

#[test]
fn what_an_editor_took_away_is_completed_and_said() {
    for (sent, expected) in [
        (
            "  GET /user HTTP/1.1\nAcme-X-App: shop",
            format!("GET /user HTTP/1.1\r\n{SHOP}\r\n"),
        ),
        (
            "POST /events HTTP/1.1\nContent-Type: text/plain\n\na=1&b=2\n\n",
            "POST /events HTTP/1.1\r\nContent-Type: text/plain\r\nContent-Length: 7\r\n\r\na=1&b=2"
                .to_owned(),
        ),
        (
            "POST /e HTTP/1.1\nTransfer-Encoding: chunked\n\n3\na=1\n0\n\n",
            "POST /e HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na=1\r\n0\r\n\r\n"
                .to_owned(),
        ),
    ] {
        let noticed = vec![("doctor_completed", String::new())];
        assert_eq!(read(sent), (expected, String::new(), noticed));
    }
    let (text, _, noticed) = read("POST /e HTTP/2\r\nhost: a\r\n\r\na=1");
    assert_eq!(
        text,
        "POST /e HTTP/1.1\r\nhost: a\r\nContent-Length: 3\r\n\r\na=1"
    );
    assert_eq!(noticed, [("doctor_http2", String::new())]);
}

#[test]
fn of_an_address_the_host_is_its_own_or_assumed() {
    for (text, expected, origin) in [
        (
            "https://api.example:8443/user?a=1#top",
            get("/user?a=1", "api.example:8443", ""),
            "https://api.example:8443",
        ),
        (
            "http://api.example?a=1",
            get("/?a=1", "api.example", ""),
            "http://api.example",
        ),
        (
            "GET https://api.example/user",
            get("/user", "api.example", ""),
            API,
        ),
        ("/user", "GET /user HTTP/1.1\r\n\r\n".to_owned(), ""),
    ] {
        assert_eq!(read(text), (expected, origin.to_owned(), vec![]), "{text}");
        assert!(text.parse::<Pasted>().unwrap().is_bare, "{text}");
    }
    let mut pasted: Pasted = "/user".parse().unwrap();
    pasted.complete(&API.parse().unwrap());
    assert_eq!(pasted.text, get("/user", "api.example", ""));
    assert_eq!(pasted.noticed, [("doctor_host", String::new())]);
}

#[test]
fn commands_of_curl_are_read_behind_any_prompt() {
    let two = get("/user?a=1&b=%20", "api.example", SHOP);
    for prompt in [
        "",
        "$ ",
        "user@host:~/curl$ ",
        "# ",
        "PS C:\\> ",
        "C:\\>",
        "% ",
        "Last login: now\nuser@host ~ % ",
    ] {
        let command = format!(
            "{prompt}curl -sS 'https://api.example/user?a=1&b=%20' \\\n  -H 'Acme-X-App: shop' --compressed"
        );
        assert_eq!(
            read(&command),
            (two.clone(), API.to_owned(), vec![]),
            "{command}"
        );
    }
    let output = format!(
        "$ curl.exe -v {API}/user -H {:?}\n* Host api.example\n> GET /other HTTP/1.1\n< HTTP/1.1 400",
        SHOP.trim()
    );
    assert_eq!(read(&output).0, get("/user", "api.example", SHOP));
}

#[test]
fn the_options_of_curl_that_change_a_request_do_so() {
    let host = "api.example";
    for (command, expected) in [
        ("-d a=1 --data-raw 'b=2' -m5 -o /dev/null", form("/e", host, "", "a=1&b=2")),
        ("--data-urlencode 'q=~* &'", form("/e", host, "", "q=~%2A%20%26").replace("%20", "+").replace("Length: 12", "Length: 10")),
        ("--data-raw '@x'", form("/e", host, "", "@x")),
        ("-G --data-urlencode 'q=a b&c'", get("/e?q=a+b%26c", host, "")),
        ("--noproxy localhost -H 'Accept:' -b a=b", get("/e", host, "cookie: a=b\r\n")),
        ("-I", "HEAD /e HTTP/1.1\r\nHost: api.example\r\n\r\n".to_owned()),
        ("-H 'Host: other' -kL", get("/e", "other", "")),
        (
            "-XPUT --insecure --json '{}'",
            "PUT /e HTTP/1.1\r\nHost: api.example\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}".to_owned(),
        ),
        (
            "-H 'Transfer-Encoding: chunked' -H 'Content-Type: x' -d a=1",
            "POST /e HTTP/1.1\r\nHost: api.example\r\nTransfer-Encoding: chunked\r\nContent-Type: x\r\n\r\n3\r\na=1\r\n0\r\n\r\n".to_owned(),
        ),
    ] {
        let whole = format!("curl https://api.example/e {command}");
        assert_eq!(read(&whole), (expected, API.to_owned(), vec![]), "{whole}");
    }
    let (text, origin, _) = read("curl localhost:8080/e -d ''");
    assert!(
        text.starts_with("POST /e HTTP/1.1\r\nHost: localhost:8080\r\n"),
        "{text}"
    );
    assert_eq!(origin, "http://localhost:8080");
}

#[test]
fn quotes_are_read_as_their_shell_reads_them() {
    for (command, body) in [
        (
            r"curl https://api.example/e --data-raw $'it\'s=\u0021\u00e9\x7e\n\t\\'",
            "it's=!é~\n\t\\",
        ),
        (
            r#"curl "https://api.example/e" --data-raw "a=\"1\"'2'""#,
            "a=\"1\"'2'",
        ),
        (r"curl https://api.example/e --data-raw a=\&1'&'2", "a=&1&2"),
        (
            "curl ^\"https://api.example/e^\" ^\n  --data-raw ^\"a=^%^20^&b=it's^\\^\"^\"",
            "a=%20&b=it's\"",
        ),
        (
            "curl \"https://api.example/e\" ^\r\n  --data-raw \"a=\"\"1\"\"\"",
            "a=\"1\"",
        ),
        (
            "curl https://api.example/e \\\n --data-raw \"a=1\\\n\"'&b=\\\n'",
            "a=1&b=\\\n",
        ),
    ] {
        assert_eq!(
            read(command).0,
            form("/e", "api.example", "", body),
            "{command}"
        );
    }
}

#[test]
fn what_a_shell_decides_is_said() {
    for (command, expected, noticed) in [
        (
            "curl https://api.example/e?a=1&b=2",
            get("/e?a=1", "api.example", ""),
            "&b=2",
        ),
        (
            "curl https://api.example/e | jq .",
            get("/e", "api.example", ""),
            "| jq .",
        ),
        (
            "curl https://api.example/e other",
            get("/e", "api.example", ""),
            "other",
        ),
        (
            "curl \"$GATEWAY\"'/user?a=1'",
            "GET /user?a=1 HTTP/1.1\r\n\r\n".to_owned(),
            "$GATEWAY",
        ),
    ] {
        let (text, _, found) = read(command);
        assert_eq!(
            (text, found),
            (expected, vec![("doctor_unread", noticed.to_owned())]),
            "{command}"
        );
    }
}

#[test]
fn the_output_of_curl_shows_a_request_without_its_body() {
    let output = "* Connected to api.example\n> POST /e HTTP/2\n> Host: api.example\n> acme-x-app: shop\n> Content-Length: 3\n> \n} [3 bytes data]\n< HTTP/2 400\n< x: y\n{\"code\":1}";
    let pasted: Pasted = output.parse().unwrap();
    assert!(pasted.hides_body);
    assert_eq!(
        pasted.text,
        "POST /e HTTP/1.1\r\nHost: api.example\r\nacme-x-app: shop\r\nContent-Length: 3\r\n\r\n"
    );
}

/// With the letter case that the tests have.
fn written(
    (text, origin, noticed): (String, String, Vec<Noticed>),
) -> (String, String, Vec<Noticed>) {
    let text = text.replace("content-type: ", "Content-Type: ");
    (text, origin, noticed)
}

#[test]
fn what_browsers_copy_is_read() {
    let expected = form("/e", "api.example", SHOP, "a=it's&b=\"`$");
    let powershell = "$session = New-Object Microsoft.PowerShell.Commands.WebRequestSession\n$session.UserAgent = \"Mozilla/5.0\"\nInvoke-WebRequest -UseBasicParsing -Uri \"https://api.example/e\" `\n-Method \"POST\" `\n-WebSession $session `\n-Headers @{\n\"Acme-X-App\"=\"shop\"\n} `\n-ContentType \"application/x-www-form-urlencoded\" `\n-Body \"a=it's&b=`\"```$\"";
    let encoded = powershell.replace(
        "-Body \"a=it's&b=`\"```$\"",
        "-Body ([System.Text.Encoding]::UTF8.GetBytes(\"a=it$([char]39)s&b=`\"```$\"))",
    );
    let options = "{\n  \"headers\": {\n    \"Acme-X-App\": \"shop\",\n    \"Content-Type\": \"application/x-www-form-urlencoded\"\n  },\n  \"body\": \"a=it's&b=\\\"`$\",\n  \"method\": \"POST\",\n \"mode\": \"cors\"\n}";
    let fetch = format!("fetch(\"https://api.example/e\", {options});");
    let request = r#"{"method":"POST","url":"https://api.example/e","httpVersion":"h2","headers":[{"name":":authority","value":"api.example"},{"name":"Acme-X-App","value":"shop"},{"name":"Content-Type","value":"application/x-www-form-urlencoded"}],"postData":{"mimeType":"x","text":"a=it's&b=\"`$"}}"#;
    let har = format!("{{\"log\":{{\"entries\":[{{\"request\":{request}}}]}}}}");
    let entry = format!("{{\"request\":{request}}}");
    for copied in [
        powershell,
        &encoded,
        &fetch,
        &format!("await {fetch}"),
        &har,
        &entry,
        request,
    ] {
        assert_eq!(
            written(read(copied)),
            (expected.clone(), API.to_owned(), vec![]),
            "{copied}"
        );
    }
    let text = read("fetch(\"https://api.example/e\", {\"method\":\"POST\",\"body\":\"a=1\"})").0;
    assert!(
        text.contains("content-type: text/plain;charset=UTF-8\r\n"),
        "{text}"
    );
    assert_eq!(
        read("fetch(\"https://api.example/e\")").0,
        get("/e", "api.example", "")
    );
    let two = har.replace("]}}", &format!(",{entry}]}}}}"));
    assert_eq!(
        read(&two).2,
        [("doctor_unread", "log.entries[1]…".to_owned())]
    );
}

#[test]
fn what_cannot_be_read_is_named() {
    for (text, part) in [
        ("curl 'https://api.example/", "' without its end"),
        ("curl https://api.example/ -d @file", "--data @file"),
        (
            "curl https://api.example/ --data-urlencode name@file",
            "--data-urlencode name@file",
        ),
        ("curl https://api.example/ --next -d x", "--next"),
        ("curl https://api.example/ -K file", "--K"),
        ("curl https://api.example/ -H", "-H"),
        ("curl ftp://api.example/", "ftp://api.example/"),
        (r"curl https://api.example/ -d $'\ud83d'", r"\ud83d"),
        (r"curl https://api.example/ -d $'\q'", r"\q"),
        ("fetch(url, {})", "JSON"),
        (
            "fetch(\"https://a.example\", {method: \"POST\"})",
            "line 1 column",
        ),
        ("fetch(\"https://a.example\", {\"body\": {}})", "body"),
        ("{\"log\":{\"entries\":[]}}", "method"),
        (
            "{\"method\":\"POST\",\"url\":\"https://a.example\",\"postData\":{\"params\":[]}}",
            "postData.text",
        ),
        ("{", "line 1 column"),
        ("Invoke-WebRequest https://a.example -InFile x", "-InFile"),
        ("Invoke-WebRequest \"https://a.example/$(1)\"", "(1)"),
    ] {
        let error = text.parse::<Pasted>().unwrap_err();
        let ParsePastedError::Unread(found) = &error else {
            panic!("{text}: {error}");
        };
        assert!(found.contains(part), "{text}: {found}");
    }
    for text in [
        "",
        "  \n",
        "hello",
        "hello world",
        "ftp://api.example/",
        "curl",
        "GET api.example",
    ] {
        assert_eq!(
            text.parse::<Pasted>(),
            Err(ParsePastedError::Unknown),
            "{text}"
        );
    }
}
