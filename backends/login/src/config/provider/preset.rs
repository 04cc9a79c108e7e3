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

/// The defaults of a kind that speaks OAuth 2.0, as a file would have them.
#[derive(Debug)]
pub(super) struct OAuth {
    /// Default of `url`.
    pub(super) url: Option<&'static str>,
    /// Default of `authorize_url`.
    pub(super) authorize_url: Option<&'static str>,
    /// Default of `token_url`.
    pub(super) token_url: Option<&'static str>,
    /// Default of `user_url`.
    pub(super) user_url: Option<&'static str>,
    /// Default of `user_url` if the file has a `url`: a server of one's own.
    pub(super) own_user_url: Option<&'static str>,
    /// The path of the issuer of its callbacks (RFC 9207), behind the origin of its authorization endpoint.
    pub(super) issuer_path: &'static str,
    /// Default of `id_field`: it identifies the user permanently.
    pub(super) id_field: Option<&'static str>,
    /// Fields with a name to show; the first one that has a text is shown.
    pub(super) display_name_fields: &'static [&'static str],
    /// Default of `client_auth`.
    pub(super) client_auth: ClientAuth,
}

/// Nothing is known of it.
const ANY: OAuth = OAuth {
    url: None,
    authorize_url: None,
    token_url: None,
    user_url: None,
    own_user_url: None,
    issuer_path: "",
    id_field: None,
    display_name_fields: &[],
    client_auth: ClientAuth::Basic,
};

/// Every kind.
pub(super) static PRESETS: [Preset; 9] = [
    // <https://developer.atlassian.com/cloud/bitbucket/oauth-2/>. It ignores PKCE.
    Preset {
        kind: "bitbucket",
        label: Some("Bitbucket"),
        scopes: &[],
        protocol: Protocol::OAuth(OAuth {
            url: Some("https://bitbucket.org"),
            authorize_url: Some("/site/oauth2/authorize"),
            token_url: Some("/site/oauth2/access_token"),
            user_url: Some("https://api.bitbucket.org/2.0/user"),
            own_user_url: Some("/2.0/user"),
            id_field: Some("uuid"),
            display_name_fields: &["display_name"],
            ..ANY
        }),
    },
    // <https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps>. The number stays when a
    // user renames the login name; another user can then take the old one.
    Preset {
        kind: "github",
        label: Some("GitHub"),
        scopes: &[],
        protocol: Protocol::OAuth(OAuth {
            url: Some("https://github.com"),
            authorize_url: Some("/login/oauth/authorize"),
            token_url: Some("/login/oauth/access_token"),
            user_url: Some("https://api.github.com/user"),
            own_user_url: Some("/api/v3/user"),
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
            url: Some("https://gitlab.com"),
            authorize_url: Some("/oauth/authorize"),
            token_url: Some("/oauth/token"),
            user_url: Some("/api/v4/user"),
            id_field: Some("id"),
            display_name_fields: &["name", "username"],
            client_auth: ClientAuth::Post,
            ..ANY
        }),
    },
    // <https://docs.gitea.com/development/oauth2-provider>
    Preset {
        kind: "gitea",
        label: Some("Gitea"),
        scopes: &["read:user"],
        protocol: Protocol::OAuth(OAuth {
            authorize_url: Some("/login/oauth/authorize"),
            token_url: Some("/login/oauth/access_token"),
            user_url: Some("/api/v1/user"),
            id_field: Some("id"),
            display_name_fields: &["full_name", "login"],
            client_auth: ClientAuth::Post,
            ..ANY
        }),
    },
    // <https://gitee.com/api/v5/oauth_doc>
    Preset {
        kind: "gitee",
        label: Some("Gitee"),
        scopes: &["user_info"],
        protocol: Protocol::OAuth(OAuth {
            url: Some("https://gitee.com"),
            authorize_url: Some("/oauth/authorize"),
            token_url: Some("/oauth/token"),
            user_url: Some("/api/v5/user"),
            id_field: Some("id"),
            display_name_fields: &["name", "login"],
            client_auth: ClientAuth::Post,
            ..ANY
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
        protocol: Protocol::OAuth(ANY),
    },
];

impl Preset {
    /// The kind of this name.
    pub(super) fn named(kind: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.kind == kind)
    }

    /// The default of `client_auth`; `None`: as an OpenID provider's discovery document says.
    pub(super) const fn client_auth(&self) -> Option<ClientAuth> {
        match &self.protocol {
            Protocol::OAuth(oauth) => Some(oauth.client_auth),
            Protocol::OpenId(_) => None,
        }
    }
}
