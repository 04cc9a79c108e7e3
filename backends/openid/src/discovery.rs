//! The issuer and its discovery document. Source: OIDC Discovery sections 3 and 4.

#[cfg(test)]
mod tests;

use serde::de::DeserializeOwned;
use url::Url;

use crate::{
    MAX_DOCUMENT,
    fault::Shown,
    json::Object,
    keys::Algorithm,
    web_url::{self, UrlFault},
};

/// What is wrong with an issuer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IssuerFault {
    /// A placeholder in braces, as in Microsoft's documents.
    #[error("has a placeholder in braces: write the tenant's ID in its place")]
    Templated,
    /// It is no URL of a provider.
    #[error(transparent)]
    Url(#[from] UrlFault),
}

/// Where the discovery document of an issuer is (section 4.1).
///
/// # Errors
///
/// The issuer has no `https` (or `http` on loopback), or has a query, a fragment, user info or a placeholder.
pub fn discovery_url(issuer: &str) -> Result<Url, IssuerFault> {
    if issuer.contains('{') {
        return Err(IssuerFault::Templated);
    }
    let url = web_url::read(issuer)?;
    if url.query().is_some() {
        return Err(UrlFault::Query.into());
    }
    // "any terminating / MUST be removed": the issuer itself keeps it, and is compared with it.
    let base = issuer.strip_suffix('/').unwrap_or(issuer);
    let document = format!("{base}/.well-known/openid-configuration");
    // Checked once more: with its path the URL can be too long.
    Ok(web_url::read(&document)?)
}

/// What a provider publishes about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovery {
    /// Where browsers are redirected to. It may have a query (RFC 6749 section 3.1).
    pub authorization_endpoint: Url,
    /// Where the code is exchanged.
    pub token_endpoint: Url,
    /// The user's claims, which the ID token has as well.
    pub userinfo_endpoint: Option<Url>,
    /// Where the provider publishes its [keys](crate::Keys).
    pub jwks_uri: Url,
    /// Whether a callback has `iss`, and must have it (RFC 9207 sections 2.4 and 3).
    pub sends_iss: bool,
    /// Whether the token endpoint takes the client's secret in `Authorization` (`client_secret_basic`); otherwise it does in the
    /// body (`client_secret_post`).
    pub takes_basic: bool,
    /// The algorithms of ID tokens that the provider has and this crate supports; all if the document does not say.
    pub algorithms: Vec<Algorithm>,
}

/// Why a discovery document is rejected, for a log line. Of the document, it has only the issuer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiscoveryFault {
    /// More than 64 KiB.
    #[error("the discovery document is larger than 64 KiB")]
    TooLarge,
    /// Not UTF-8, not JSON, or no object; often a page that was sent instead.
    #[error("the discovery document is not a JSON object")]
    NotObject,
    /// A name appears twice.
    #[error("a name appears twice in the discovery document")]
    Ambiguous,
    /// A required member is missing, or a member has another type.
    #[error("the discovery document's {name} is missing or malformed")]
    Member {
        /// Name of the member.
        name: &'static str,
    },
    /// A placeholder: the document describes many issuers, such as Microsoft's `common`.
    #[error(
        "the discovery document is for many tenants, its issuer is \"{found}\": \
         write the tenant's ID in `issuer`, in place of common or organizations"
    )]
    TemplatedIssuer {
        /// The issuer in the document.
        found: Shown,
    },
    /// Another issuer than the configured one: compared byte for byte (section 4.3), a final slash counts.
    #[error("the discovery document is of another issuer, \"{found}\"")]
    OtherIssuer {
        /// The issuer in the document.
        found: Shown,
    },
    /// An endpoint is no URL of a provider.
    #[error("the discovery document's {name} {fault}")]
    Endpoint {
        /// Name of the endpoint's member.
        name: &'static str,
        /// What is wrong with it.
        fault: UrlFault,
    },
    /// `response_types_supported` lacks `code`.
    #[error("the provider does not support the authorization code flow (response type code)")]
    NoCode,
    /// `token_endpoint_auth_methods_supported` has neither.
    #[error("the provider supports neither client_secret_basic nor client_secret_post")]
    NoClientAuth,
    /// `id_token_signing_alg_values_supported` has none of [`Algorithm`].
    #[error("the provider signs ID tokens by none of RS256, ES256 and EdDSA")]
    NoAlgorithm,
}

impl Discovery {
    /// Reads the discovery document of an issuer.
    ///
    /// # Errors
    ///
    /// The document is malformed, of another issuer, names endpoints that are not safe to use, or describes a provider
    /// that cannot be used.
    pub fn parse(document: &[u8], issuer: &str) -> Result<Self, DiscoveryFault> {
        if document.len() > MAX_DOCUMENT {
            return Err(DiscoveryFault::TooLarge);
        }
        let document = Document {
            object: Object::read(
                document,
                DiscoveryFault::NotObject,
                DiscoveryFault::Ambiguous,
            )?,
            allows_http: web_url::read(issuer).is_ok_and(|url| url.scheme() == "http"),
        };
        // First: in a document of another issuer, nothing else matters.
        document.check_issuer(issuer)?;
        let discovery = Self {
            authorization_endpoint: document.required("authorization_endpoint")?,
            token_endpoint: document.required("token_endpoint")?,
            userinfo_endpoint: document.endpoint("userinfo_endpoint")?,
            jwks_uri: document.required("jwks_uri")?,
            sends_iss: document.sends_iss()?,
            takes_basic: document.takes("client_secret_basic", true)?,
            algorithms: document.algorithms()?,
        };
        if document.lists("response_types_supported", "code")? == Some(false) {
            return Err(DiscoveryFault::NoCode);
        }
        if !discovery.takes_basic && !document.takes("client_secret_post", false)? {
            return Err(DiscoveryFault::NoClientAuth);
        }
        if discovery.algorithms.is_empty() {
            return Err(DiscoveryFault::NoAlgorithm);
        }
        Ok(discovery)
    }
}

/// A discovery document, not yet checked.
struct Document<'d> {
    object: Object<'d>,
    /// Only an issuer on this host may have endpoints on this host without TLS: any other issuer could direct the client
    /// secret to a local program.
    allows_http: bool,
}

impl Document<'_> {
    fn check_issuer(&self, issuer: &str) -> Result<(), DiscoveryFault> {
        let named: Option<String> = self.member("issuer")?;
        let named = named.ok_or(DiscoveryFault::Member { name: "issuer" })?;
        let found = Shown::new(&named);
        match named {
            _ if named.contains('{') => Err(DiscoveryFault::TemplatedIssuer { found }),
            _ if named != issuer => Err(DiscoveryFault::OtherIssuer { found }),
            _ => Ok(()),
        }
    }

    fn required(&self, name: &'static str) -> Result<Url, DiscoveryFault> {
        let url = self.endpoint(name)?;
        url.ok_or(DiscoveryFault::Member { name })
    }

    fn endpoint(&self, name: &'static str) -> Result<Option<Url>, DiscoveryFault> {
        let Some(text) = self.member::<String>(name)? else {
            return Ok(None);
        };
        let url = web_url::read(&text).and_then(|url| {
            let is_allowed = self.allows_http || url.scheme() == "https";
            is_allowed.then_some(url).ok_or(UrlFault::NotHttps)
        });
        url.map(Some)
            .map_err(|fault| DiscoveryFault::Endpoint { name, fault })
    }

    fn sends_iss(&self) -> Result<bool, DiscoveryFault> {
        let sends = self.member("authorization_response_iss_parameter_supported")?;
        Ok(sends.unwrap_or(false))
    }

    /// Whether the client may authenticate in this way; `default` if the document does not say.
    fn takes(&self, method: &str, default: bool) -> Result<bool, DiscoveryFault> {
        let listed = self.lists("token_endpoint_auth_methods_supported", method)?;
        Ok(listed.unwrap_or(default))
    }

    fn algorithms(&self) -> Result<Vec<Algorithm>, DiscoveryFault> {
        let names: Option<Vec<String>> = self.member("id_token_signing_alg_values_supported")?;
        let mut algorithms = Algorithm::ALL.to_vec();
        if let Some(names) = names {
            algorithms.retain(|algorithm| names.iter().any(|name| name == algorithm.name()));
        }
        Ok(algorithms)
    }

    /// Whether a list has this item. `None` if there is no list.
    fn lists(&self, name: &'static str, item: &str) -> Result<Option<bool>, DiscoveryFault> {
        let list: Option<Vec<String>> = self.member(name)?;
        Ok(list.map(|list| list.iter().any(|listed| listed == item)))
    }

    fn member<T: DeserializeOwned>(&self, name: &'static str) -> Result<Option<T>, DiscoveryFault> {
        self.object.get(name, DiscoveryFault::Member { name })
    }
}
