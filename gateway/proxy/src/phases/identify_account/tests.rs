//! Which credentials are accepted, which backends get them, and what the clock decides.

use std::time::Duration;

use signpost_protocol::{app::AppId, header::HeaderNames, param::Params, sign::SignTime};

use super::*;
use crate::{
    config::{
        Placed,
        tests::{sign_config, versions},
    },
    directory::{
        accounts::tests::{FakeStore, NOW, credential},
        apps::directory::AppDirectory,
    },
    phases::{
        admit::{AdmissionRules, admit},
        origin::Peer,
        route::{Wanted, route},
        verify::{HeaderSign, Verifier},
    },
    request::{BodyLength, HeadLimits, Method, Methods, Target, client::ConnectionInfo},
};

const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

const ROUTES: &str = "
[versions.v1]
backend = '127.0.0.1:1'
[[versions.v1.routes]]
path = '/none'
backend = '127.0.0.1:2'
[[versions.v1.routes]]
path = '/none/passed'
backend = '127.0.0.1:2'
pass_authorization = true
[[versions.v1.routes]]
path = '/optional'
backend = '127.0.0.1:2'
account = 'optional'
[[versions.v1.routes]]
path = '/required'
backend = '127.0.0.1:2'
account = 'required'
[[versions.v1.routes]]
path = '/required/passed'
backend = '127.0.0.1:2'
account = 'required'
pass_authorization = true
";

/// A route's answer to these headers: the account's id, and whether the backend gets the credential.
struct Fixture {
    store: Arc<FakeStore>,
    accounts: AccountDirectory,
}

impl Fixture {
    /// Credential 1 is valid for this application, for a second.
    fn new(application: AppId) -> Self {
        let expires_at = NOW.plus(Duration::from_secs(1));
        let store = Arc::new(FakeStore::with(&credential(1), application, expires_at));
        let accounts = store.directory();
        Self { store, accounts }
    }

    fn single() -> Self {
        Self::new(AppId::SINGLE)
    }

    async fn identify(
        &self,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Result<(Option<String>, bool), Rejection> {
        self.identify_at(path, headers, NOW).await
    }

    async fn identify_at(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        now: Timestamp,
    ) -> Result<(Option<String>, bool), Rejection> {
        let key = "4283fefc63f0cd0e873a0000c6d07ef7".parse().unwrap();
        let AppDirectory::Single(app) = AppDirectory::single(key) else {
            unreachable!()
        };
        let target = Target::parse(path.as_bytes()).unwrap();
        let verifier = Verifier::new(sign_config(""));
        let at = SignTime::from_millis(0);
        let params = Params::default();
        let in_headers = (headers, HeaderSign::NONE);
        let verified = verifier.verify(app, Method::Get, target, &params, in_headers, at);
        let wanted = Wanted {
            method: Method::Get,
            version: b"",
            placed: Placed::default(),
            target,
            headers: None,
            client: CLIENT,
        };
        let routed = route(
            verified.unwrap(),
            wanted,
            &versions(ROUTES),
            || now,
            |_| true,
        )
        .unwrap();
        let rules = rules();
        let peer = Peer::new(&ConnectionInfo::plain(CLIENT), &[]);
        let admitted = admit(b"GET", headers, BodyLength::None, &peer, &rules).unwrap();
        let found =
            identify_account(&routed, &admitted, headers, Some(&self.accounts), || now).await?;
        let is_credential = |index: &u16| {
            let (name, _) = headers[usize::from(*index)];
            name.eq_ignore_ascii_case("Acme-X-Authorization")
        };
        let withheld = admitted.withheld_from(routed.route().backend().account);
        let mut passed = admitted.passed_fields.iter();
        let is_passed = passed.any(|index| Some(*index) != withheld && is_credential(index));
        let id = found.account().map(|account| account.id.to_string());
        Ok((id, is_passed))
    }
}

fn rules() -> AdmissionRules {
    let names = HeaderNames::new(&"Acme".parse().unwrap(), &Default::default());
    AdmissionRules {
        names: Arc::new(names.unwrap()),
        trusted_proxies: Vec::new(),
        scheme: "http",
        max_form: 100,
        methods: Methods::USUAL,
        varies: false,
        limits: HeadLimits {
            bytes: 32768,
            headers: 100,
            query: 8192,
        },
    }
}

#[tokio::test]
async fn a_route_decides_whether_there_is_an_account_and_who_gets_the_credential() {
    let fixture = Fixture::single();
    let valid = credential(1).encode();
    let with = [
        ("Accept", "*/*"),
        ("ACME-X-authorization", &valid),
        ("Cookie", "a=b"),
    ];
    let account = Some("7".to_owned());
    for (path, expected) in [
        ("/", (None, true)),
        ("/none", (None, false)),
        ("/none/passed", (None, true)),
        ("/optional", (account.clone(), false)),
        ("/required", (account.clone(), false)),
        ("/required/passed", (account, true)),
    ] {
        assert_eq!(
            fixture.identify(path, &with).await.unwrap(),
            expected,
            "{path}"
        );
    }
    for path in ["/", "/none", "/none/passed", "/optional"] {
        let found = fixture.identify(path, &with[..1]).await.unwrap();
        assert_eq!(found, (None, false), "{path}");
    }
    let missing = fixture.identify("/required", &with[..1]).await;
    assert!(matches!(missing, Err(Rejection::AuthorizationMissing)));
    assert_eq!(fixture.store.calls(), 1);
}

#[tokio::test]
async fn a_credential_that_is_not_valid_is_rejected_even_if_none_is_needed() {
    let fixture = Fixture::single();
    let (valid, unknown) = (credential(1).encode(), credential(2).encode());
    let basic = format!("Basic {}", *valid);
    for path in ["/optional", "/required"] {
        for bad in ["", "x", &valid[1..], &basic, &unknown] {
            let found = fixture
                .identify(path, &[("Acme-X-Authorization", bad)])
                .await;
            let is_right = match found {
                Err(Rejection::AuthorizationInvalid) => bad == &**unknown,
                Err(Rejection::AuthorizationMalformed) => bad != &**unknown,
                _ => false,
            };
            assert!(is_right, "{path} {bad}");
        }
        let bearer = format!("bearer {}", *valid);
        let with = [("Acme-X-Authorization", &*bearer)];
        let found = fixture.identify(path, &with).await.unwrap();
        assert_eq!(found.0.as_deref(), Some("7"));
    }
    // Only an unknown one was looked up.
    assert_eq!(fixture.store.calls(), 3);
    let ignored = [("Acme-X-Authorization", &**unknown)];
    assert_eq!(
        fixture.identify("/none", &ignored).await.unwrap(),
        (None, false)
    );
}

#[tokio::test]
async fn a_credential_that_connection_names_counts_as_absent() {
    let fixture = Fixture::single();
    let valid = credential(1).encode();
    let headers = [
        ("Connection", "acme-x-authorization"),
        ("Acme-X-Authorization", &valid),
    ];
    let found = fixture.identify("/required", &headers).await;
    assert!(matches!(found, Err(Rejection::AuthorizationMissing)));
    assert_eq!(
        fixture.identify("/", &headers).await.unwrap(),
        (None, false)
    );
}

#[tokio::test]
async fn another_applications_credential_is_invalid() {
    let fixture = Fixture::new(AppId::new(3));
    let valid = credential(1).encode();
    for _ in 0..2 {
        let found = fixture
            .identify("/required", &[("Acme-X-Authorization", &valid)])
            .await;
        assert!(matches!(found, Err(Rejection::AuthorizationInvalid)));
    }
}

#[tokio::test]
async fn a_cached_credential_expires_by_the_clock() {
    let fixture = Fixture::single();
    let valid = credential(1).encode();
    let headers = [("Acme-X-Authorization", &**valid)];
    let last = NOW.plus(Duration::from_millis(999));
    for now in [NOW, last] {
        let found = fixture.identify_at("/required", &headers, now).await;
        assert!(found.unwrap().0.is_some());
    }
    let end = NOW.plus(Duration::from_secs(1));
    let found = fixture.identify_at("/required", &headers, end).await;
    assert!(matches!(found, Err(Rejection::AuthorizationInvalid)));
    assert_eq!(fixture.store.calls(), 1);
}

#[tokio::test]
async fn without_the_store_cached_credentials_are_valid_and_others_cannot_be_checked() {
    let fixture = Fixture::single();
    let (valid, other) = (credential(1).encode(), credential(2).encode());
    let headers = [("Acme-X-Authorization", &**valid)];
    fixture.identify("/required", &headers).await.unwrap();
    fixture.store.fail(true);
    fixture.identify("/required", &headers).await.unwrap();
    let unknown = fixture
        .identify("/required", &[("Acme-X-Authorization", &other)])
        .await;
    assert!(matches!(unknown, Err(Rejection::StoreUnavailable(_))));
    // What is malformed needs no store.
    let malformed = fixture
        .identify("/required", &[("Acme-X-Authorization", "x")])
        .await;
    assert!(matches!(malformed, Err(Rejection::AuthorizationMalformed)));
}
