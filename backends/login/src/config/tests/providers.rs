//! The providers.

use signpost_protocol::language::Language;

use super::*;

#[test]
fn a_provider_is_required() {
    let (keys, _) = problems("prefix = \"Acme\"");
    assert_eq!(keys, ["providers"]);
    let (keys, _) = problems(&format!("default_provider = \"other\"\n{}", good()));
    assert_eq!(keys, ["default_provider"]);
}

#[test]
fn problems_of_providers_hide_no_others_and_cause_none() {
    for (text, expected) in [
        (
            "default_provider = \"x\"\nproviders = 5\nprefix = \"A\"",
            &["providers"][..],
        ),
        (
            &good()
                .replace("\"id\"", "\"\"")
                .replace("\"bitbucket\"", "\"x\""),
            &["providers.sandbox.client_id", "providers.sandbox.kind"],
        ),
        (
            &good().replace("[providers.sandbox]", "[providers.Sandbox]"),
            &["providers"],
        ),
    ] {
        let (mut keys, message) = problems(text);
        keys.sort();
        assert_eq!(keys, expected, "{message}");
    }
}

#[test]
fn client_and_secret_are_enough_for_a_kind_without_servers_of_ones_own() {
    for (kind, urls, field, auth) in [
        (
            "bitbucket",
            [
                "https://bitbucket.org/site/oauth2/authorize",
                "https://bitbucket.org/site/oauth2/access_token",
                "https://api.bitbucket.org/2.0/user",
            ],
            "uuid",
            ClientAuth::Basic,
        ),
        (
            "github",
            [
                "https://github.com/login/oauth/authorize",
                "https://github.com/login/oauth/access_token",
                "https://api.github.com/user",
            ],
            "id",
            ClientAuth::Post,
        ),
        (
            "gitlab",
            [
                "https://gitlab.com/oauth/authorize",
                "https://gitlab.com/oauth/token",
                "https://gitlab.com/api/v4/user",
            ],
            "id",
            ClientAuth::Post,
        ),
        (
            "gitee",
            [
                "https://gitee.com/oauth/authorize",
                "https://gitee.com/oauth/token",
                "https://gitee.com/api/v5/user",
            ],
            "id",
            ClientAuth::Post,
        ),
    ] {
        let provider = one(kind, "").unwrap();
        let settings = oauth(&provider);
        let found = [
            &settings.authorize_url,
            &settings.token_url,
            &settings.user_url,
        ];
        assert_eq!(found.map(Url::as_str), urls, "{kind}");
        assert_eq!(settings.id_field.to_string(), field);
        assert_eq!(provider.client_auth, Some(auth));
        assert!(provider.pkce, "{kind}");
    }
    let google = one("google", "").unwrap();
    assert!(
        matches!(&google.protocol, Protocol::OpenId { issuer } if issuer == "https://accounts.google.com")
    );
    assert_eq!(google.scopes, ["openid", "profile"]);
    assert_eq!(google.client_auth, None);
}

#[test]
fn a_server_of_ones_own_is_one_address() {
    let own = |kind, url: &str| oauth(&one(kind, &format!("url = {url:?}")).unwrap()).clone();
    let gitea = own("gitea", "https://git.example/gitea/");
    assert_eq!(
        gitea.user_url.as_str(),
        "https://git.example/gitea/api/v1/user"
    );
    let github = own("github", "https://github.example");
    assert_eq!(
        github.user_url.as_str(),
        "https://github.example/api/v3/user"
    );
    assert_eq!(github.issuer, "https://github.example/login/oauth");
    let more =
        "url = \"https://a.example\"\ntoken_url = \"https://b.example/t\"\nuser_url = \"/me\"";
    let mixed = oauth(&one("gitlab", more).unwrap()).clone();
    let found = [&mixed.authorize_url, &mixed.token_url, &mixed.user_url];
    assert_eq!(
        found.map(Url::as_str),
        [
            "https://a.example/oauth/authorize",
            "https://b.example/t",
            "https://a.example/me"
        ]
    );
    for (kind, key) in [
        ("gitea", "url"),
        ("oidc", "issuer"),
        ("microsoft", "issuer"),
    ] {
        let error = one(kind, "").unwrap_err();
        assert_eq!(error.0, [format!("providers.one.{key}")], "{}", error.1);
    }
}

#[test]
fn a_kind_without_defaults_has_its_addresses_and_fields() {
    let more = "authorize_url = \"https://a.example/auth\"\ntoken_url = \"https://b.example/token\"\n\
                user_url = \"https://c.example/me?v=2\"\nid_field = \"data.open_id\"\n\
                display_name_field = \"data.name\"\nclient_auth = \"post\"\nscopes = [\"user\"]";
    let provider = one("oauth2", more).unwrap();
    let settings = oauth(&provider);
    assert_eq!(settings.user_url.as_str(), "https://c.example/me?v=2");
    assert_eq!(settings.id_field.to_string(), "data.open_id");
    assert_eq!(settings.issuer, "https://a.example");
    let (keys, message) = one("oauth2", "").unwrap_err();
    let expected = ["authorize_url", "token_url", "user_url", "id_field"];
    assert_eq!(
        keys,
        expected.map(|key| format!("providers.one.{key}")),
        "{message}"
    );
}

#[test]
fn keys_that_a_kind_has_no_use_for_are_rejected() {
    for (kind, more, key, says) in [
        (
            "github",
            "id_field = \"login\"",
            "id_field",
            "the kind determines it",
        ),
        (
            "google",
            "url = \"https://a.example\"",
            "url",
            "discovery document",
        ),
        (
            "google",
            "user_url = \"/me\"",
            "user_url",
            "discovery document",
        ),
        ("google", "id_field = \"email\"", "id_field", "`sub`"),
        ("google", "scopes = [\"email\"]", "scopes", "openid"),
        (
            "google",
            "scopes = [\"openid email\"]",
            "scopes",
            "without spaces",
        ),
        (
            "google",
            "client_auth = \"jwt\"",
            "client_auth",
            "\"basic\", \"post\"",
        ),
        ("google", "prompt = \"Login\"", "prompt", "a-z"),
        ("google", "pass_on = [\"hd\"]", "pass_on", "login_hint"),
        ("google", "label = { en = \"\" }", "label.en", "1 to 60"),
        ("oidc", "issuer = \"http://id.example\"", "issuer", "https"),
        (
            "microsoft",
            "issuer = \"https://login.microsoftonline.com/common/v2.0\"",
            "issuer",
            "the id of the tenant",
        ),
    ] {
        let (keys, message) = one(kind, more).unwrap_err();
        assert_eq!(keys, [format!("providers.one.{key}")], "{message}");
        assert!(message.contains(says), "{message}");
    }
}

#[test]
fn a_label_is_chosen_by_language() {
    let label = |kind, more| one(kind, more).unwrap().label;
    assert_eq!(label("github", "").in_language(Language::Ja), "GitHub");
    let company = "issuer = \"https://id.example\"";
    assert_eq!(label("oidc", company).in_language(Language::En), "one");
    let more = format!("{company}\nlabel = {{ en = \"Company\", ja = \"会社\" }}");
    let own = label("oidc", &more);
    assert_eq!(own.in_language(Language::Ja), "会社");
    assert_eq!(own.in_language(Language::Ko), "Company");
}

#[test]
fn providers_that_look_the_same_cause_a_warning() {
    let provider = |name| {
        format!("[providers.{name}]\nkind = \"github\"\nclient_id = \"i\"\nclient_secret = \"s\"\n")
    };
    let two = format!("prefix = \"A\"\n{}{}", provider("a"), provider("b"));
    let warnings = parse(&two).unwrap().warnings();
    assert!(
        warnings
            .iter()
            .any(|line| line.starts_with("providers.a and providers.b have the same label")),
        "{warnings:?}"
    );
    for quiet in [
        format!("{two}label = {{ en = \"Other\" }}"),
        format!("default_provider = \"a\"\n{two}"),
    ] {
        let warnings = parse(&quiet).unwrap().warnings();
        assert!(
            !warnings.iter().any(|line| line.contains("label")),
            "{warnings:?}"
        );
    }
}

/// A provider of a kind with these keys, or the keys of the problems and the message.
fn one(kind: &str, more: &str) -> Result<ProviderConfig, (Vec<String>, String)> {
    let text = format!(
        "prefix = \"A\"\n[providers.one]\nkind = \"{kind}\"\nclient_id = \"i\"\nclient_secret = \"s\"\n{more}\n"
    );
    match parse(&text) {
        Ok(config) => Ok(config.providers.all[0].clone()),
        Err(_) => Err(problems(&text)),
    }
}

#[test]
fn with_several_providers_none_is_the_default_unless_configured() {
    let other =
        config_text_with_provider("https://provider.example", "").replace("sandbox", "other");
    let two = format!("{}{other}", good());
    assert!(parse(&two).unwrap().providers.default.is_none());
    let config = parse(&format!("default_provider = \"other\"\n{two}")).unwrap();
    assert_eq!(config.providers.default.unwrap().as_str(), "other");
}

fn provider_at(address: &str, secret: &str, more: &str) -> String {
    let provider = config_text_with_provider(address, more);
    let provider = provider.replace("\"secret\"", &format!("{secret:?}"));
    format!("prefix = \"Acme\"\n{provider}")
}

#[test]
fn the_sandbox_is_rejected_beyond_loopback_unless_allowed() {
    for address in [
        "http://127.0.0.1:7100",
        "http://127.1.2.3",
        "http://[::1]:7100",
        "http://localhost:7100",
        "http://provider.localhost:7100",
    ] {
        let config = parse(&provider_at(address, "sandbox-only-secret", "")).unwrap();
        let warnings = config.warnings().join("\n");
        assert!(
            warnings.contains("sandbox") && !warnings.contains("http"),
            "{warnings}"
        );
    }
    for address in [
        "http://10.0.0.1:7100",
        "https://provider.example",
        "http://[2001:db8::1]",
        "http://localhost.example",
        "http://notlocalhost",
    ] {
        let refused = provider_at(address, "sandbox-only-secret", "");
        let (keys, message) = problems(&refused);
        assert_eq!(keys, ["providers.sandbox.url"], "{message}");
        assert!(message.contains("allow_sandbox = true"), "{message}");
        assert!(!message.contains("sandbox-only-secret"), "{message}");
        let allowed = provider_at(address, "sandbox-only-secret", "allow_sandbox = true");
        parse(&allowed).unwrap();
        parse(&provider_at(address, "a secret of its own", "")).unwrap();
    }
}

#[test]
fn an_unencrypted_provider_on_another_machine_causes_a_warning() {
    let warnings = |address: &str| {
        let config = parse(&provider_at(address, "a secret of its own", ""));
        config.unwrap().warnings()
    };
    for quiet in [
        "https://provider.example",
        "http://127.0.0.1:1",
        "http://a.localhost",
    ] {
        assert_eq!(warnings(quiet), Vec::<String>::new(), "{quiet}");
    }
    let warning = warnings("http://provider.example").join("\n");
    assert!(
        warning.contains("providers.sandbox") && warning.contains("https"),
        "{warning}"
    );
}
