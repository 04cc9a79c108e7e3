//! The kinds of providers: what is known of each, so that an operator need not look it up.

use signpost_protocol::label_enum;

label_enum! {
    /// How a client proves that it is the registered one. RFC 6749 section 2.3.1.
    pub enum ClientAuth {
        /// HTTP Basic.
        Basic = "basic",
        /// `client_id` and `client_secret` in the form.
        Post = "post",
    }
}

/// What is known of a kind of provider.
#[derive(Debug)]
pub(super) struct Preset {
    /// The value of `kind`.
    pub(super) kind: &'static str,
    /// The default of `label`; `None`: the provider's name.
    pub(super) label: Option<&'static str>,
    /// The default of `scopes`.
    pub(super) scopes: &'static [&'static str],
    /// How it identifies users.
    pub(super) protocol: Protocol,
}

/// How a kind identifies users.
#[derive(Debug)]
pub(super) enum Protocol {
    /// OAuth 2.0 and a record of the user.
    OAuth(OAuth),
    /// OpenID Connect; the default of `issuer`, if it has one.
    OpenId(Option<&'static str>),
}

/// The endpoints of a kind that speaks OAuth 2.0, and what its record of a user has.
#[derive(Debug)]
pub(super) struct OAuth {
    /// Defaults of `url`, and of the API's address beside it.
    pub(super) servers: Option<[&'static str; 2]>,
    /// The API's path below a `url` that the file has.
    pub(super) api_path: &'static str,
    /// Paths of the authorization endpoint, of the token endpoint, and of the user's record below the API's address.
    pub(super) paths: Option<[&'static str; 3]>,
    /// The path of the issuer of its callbacks (RFC 9207), behind the origin of its authorization endpoint.
    pub(super) issuer_path: &'static str,
    /// The field that identifies the user for ever.
    pub(super) id_field: Option<&'static str>,
    /// Fields with a name to show; the first one that has a text is shown.
    pub(super) display_name_fields: &'static [&'static str],
    /// The default of `client_auth`.
    pub(super) client_auth: ClientAuth,
}

/// Every kind.
pub(super) static PRESETS: [Preset; 9] = [
    // <https://developer.atlassian.com/cloud/bitbucket/oauth-2/>. It ignores PKCE.
    Preset {
        kind: "bitbucket",
        label: Some("Bitbucket"),
        scopes: &[],
        protocol: Protocol::OAuth(OAuth {
            servers: Some(["https://bitbucket.org", "https://api.bitbucket.org"]),
            api_path: "",
            paths: Some([
                "/site/oauth2/authorize",
                "/site/oauth2/access_token",
                "/2.0/user",
            ]),
            issuer_path: "",
            id_field: Some("uuid"),
            display_name_fields: &["display_name"],
            client_auth: ClientAuth::Basic,
        }),
    },
    // <https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps>. The number stays when a
    // user renames the login name; another user can then take the old one.
    Preset {
        kind: "github",
        label: Some("GitHub"),
        scopes: &[],
        protocol: Protocol::OAuth(OAuth {
            servers: Some(["https://github.com", "https://api.github.com"]),
            api_path: "/api/v3",
            paths: Some([
                "/login/oauth/authorize",
                "/login/oauth/access_token",
                "/user",
            ]),
            issuer_path: "/login/oauth",
            id_field: Some("id"),
            display_name_fields: &["name", "login"],
            client_auth: ClientAuth::Post,
        }),
    },
    // <https://docs.gitlab.com/api/oauth2/>
    Preset {
        kind: "gitlab",
        label: Some("GitLab"),
        scopes: &["read_user"],
        protocol: Protocol::OAuth(OAuth {
            servers: Some(["https://gitlab.com", "https://gitlab.com"]),
            api_path: "",
            paths: Some(["/oauth/authorize", "/oauth/token", "/api/v4/user"]),
            issuer_path: "",
            id_field: Some("id"),
            display_name_fields: &["name", "username"],
            client_auth: ClientAuth::Post,
        }),
    },
    // <https://docs.gitea.com/development/oauth2-provider>
    Preset {
        kind: "gitea",
        label: Some("Gitea"),
        scopes: &["read:user"],
        protocol: Protocol::OAuth(OAuth {
            servers: None,
            api_path: "",
            paths: Some([
                "/login/oauth/authorize",
                "/login/oauth/access_token",
                "/api/v1/user",
            ]),
            issuer_path: "",
            id_field: Some("id"),
            display_name_fields: &["full_name", "login"],
            client_auth: ClientAuth::Post,
        }),
    },
    // <https://gitee.com/api/v5/oauth_doc>
    Preset {
        kind: "gitee",
        label: Some("Gitee"),
        scopes: &["user_info"],
        protocol: Protocol::OAuth(OAuth {
            servers: Some(["https://gitee.com", "https://gitee.com"]),
            api_path: "",
            paths: Some(["/oauth/authorize", "/oauth/token", "/api/v5/user"]),
            issuer_path: "",
            id_field: Some("id"),
            display_name_fields: &["name", "login"],
            client_auth: ClientAuth::Post,
        }),
    },
    // <https://developers.google.com/identity/openid-connect/openid-connect>
    Preset {
        kind: "google",
        label: Some("Google"),
        scopes: &["openid", "profile"],
        protocol: Protocol::OpenId(Some("https://accounts.google.com")),
    },
    // <https://learn.microsoft.com/en-us/entra/identity-platform/v2-protocols-oidc>
    Preset {
        kind: "microsoft",
        label: Some("Microsoft"),
        scopes: &["openid", "profile"],
        protocol: Protocol::OpenId(None),
    },
    Preset {
        kind: "oidc",
        label: None,
        scopes: &["openid", "profile"],
        protocol: Protocol::OpenId(None),
    },
    Preset {
        kind: "oauth2",
        label: None,
        scopes: &[],
        protocol: Protocol::OAuth(OAuth {
            servers: None,
            api_path: "",
            paths: None,
            issuer_path: "",
            id_field: None,
            display_name_fields: &[],
            client_auth: ClientAuth::Basic,
        }),
    },
];

impl Preset {
    /// The kind of this name.
    pub(super) fn named(kind: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.kind == kind)
    }
}
