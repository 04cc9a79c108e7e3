//! The rules, tested over a real store.

use signpost_store::testing::TestStore;

use signpost_protocol::sign::{ReplayPolicy, SignAlgorithm};

use super::*;
use crate::{
    config::MasterKey,
    directory::apps::seal::{Sealer, new_app_ident, new_app_key},
};

/// The administration of a gateway with v1 and v2 that rejects replays.
pub(crate) fn administration(store: StoredApps) -> Administration {
    let rules = Rules {
        versions: ["v1", "v2"].map(|name| name.parse().unwrap()).to_vec(),
        gateway_profile: SignProfile {
            replay: ReplayPolicy::Reject,
            ..SignProfile::default()
        },
        allows_weak_keys: false,
    };
    Administration::new(store, rules)
}

/// The same, over a new store.
pub(crate) async fn empty(test_store: &TestStore) -> Administration {
    let key = signpost_kit::secret::SecretSource::from(&*"ab".repeat(32))
        .read()
        .unwrap();
    let sealer = Sealer::from_config(&MasterKey::Given(key), false).unwrap();
    administration(StoredApps::new(test_store.open().await, sealer))
}

pub(crate) fn new_app(name: &str) -> NewApp {
    NewApp {
        ident: new_app_ident().unwrap(),
        key: new_app_key().unwrap(),
        name: name.parse().unwrap(),
        profile: None,
        return_to: Vec::new(),
        default_version: None,
        rate_limit: None,
        created_at: Timestamp::from_millis(1_700_000_000_000),
    }
}

async fn created(apps: &Administration) -> AppIdent {
    let app = new_app("one");
    apps.create(app.clone()).await.unwrap();
    app.ident
}

#[tokio::test]
async fn a_default_version_must_be_one_of_the_gateways() {
    let test_store = TestStore::chosen();
    let apps = empty(&test_store).await;
    let unknown = NewApp {
        default_version: Some("v3".parse().unwrap()),
        ..new_app("one")
    };
    let refused = apps.create(unknown).await.unwrap_err();
    assert!(refused.to_string().contains("v1, v2"), "{refused}");
    assert!(apps.store().list().await.unwrap().is_empty());
    let ident = created(&apps).await;
    let default = |name: &str| AppChanges {
        default_version: Some(Some(name.parse().unwrap())),
        ..AppChanges::default()
    };
    let updated = apps.update(ident, default("V2")).await.unwrap();
    assert_eq!(updated.default_version.as_deref(), Some("v2"));
    let refused = apps.update(ident, default("v3")).await.unwrap_err();
    assert!(matches!(
        refused,
        AdministrationError::Rule(BrokenRule::UnknownVersion { .. })
    ));
    let unset = AppChanges {
        default_version: Some(None),
        ..AppChanges::default()
    };
    assert_eq!(
        apps.update(ident, unset).await.unwrap().default_version,
        None
    );
}

#[tokio::test]
async fn unchosen_profile_settings_keep_the_applications_values() {
    let test_store = TestStore::chosen();
    let apps = empty(&test_store).await;
    let ident = created(&apps).await;
    let update = async |choice: ProfileChoice| {
        let edit = AppChanges {
            profile: Some(Some(choice)),
            ..AppChanges::default()
        };
        apps.update(ident, edit)
            .await
            .unwrap()
            .sign_profile
            .unwrap()
    };
    let wechat = SignProfile::preset("wechat").unwrap();
    let first = update(ProfileChoice::from_preset(wechat.clone())).await;
    let expected = SignProfile {
        replay: ReplayPolicy::Reject,
        ..wechat
    };
    assert_eq!(first, expected, "the gateway's strength stays");
    let second = update(ProfileChoice {
        algorithm: Some(SignAlgorithm::HmacSha256),
        ..ProfileChoice::default()
    })
    .await;
    let expected = SignProfile {
        algorithm: SignAlgorithm::HmacSha256,
        ..expected
    };
    assert_eq!(second, expected);
}

#[tokio::test]
async fn an_update_needs_a_change_and_a_known_application() {
    let test_store = TestStore::chosen();
    let apps = empty(&test_store).await;
    let ident = created(&apps).await;
    let nothing = apps.update(ident, AppChanges::default()).await.unwrap_err();
    assert!(matches!(nothing, AdministrationError::NothingToChange));
    let renaming = AppChanges {
        name: Some("two".parse().unwrap()),
        ..AppChanges::default()
    };
    let unknown_ident = "nobody".parse().unwrap();
    let unknown = apps.update(unknown_ident, renaming).await.unwrap_err();
    assert!(matches!(
        unknown,
        AdministrationError::Store(AppStoreError::Unknown(ident)) if ident == unknown_ident
    ));
}

#[test]
fn names_and_origins_are_validated() {
    let longest = "é".repeat(64);
    for good in [" a ", &longest] {
        assert_eq!(String::from(good.parse::<AppName>().unwrap()), good.trim());
    }
    for good in ["店舗 2・ギャラリー", "한국어 가게", "Łódź (1) 😀", "שלום"] {
        good.parse::<AppName>().unwrap();
    }
    for bad in [
        "",
        "  ",
        "a\nb",
        "a\0b",
        "a\u{85}b",
        "a\u{202e}b",
        "a\u{2066}b",
        "a\u{200b}b",
        "a\u{200d}b",
        "a\u{ad}b",
        "\u{feff}a",
        "a\u{2028}b",
        "a\u{2029}b",
        "a\u{e0041}b",
        &"x".repeat(65),
    ] {
        assert!(bad.parse::<AppName>().is_err(), "{bad:?}");
    }
    let origin = |text: &str| text.parse::<Origin>().map(|origin| origin.to_string());
    assert_eq!(
        origin("HTTPS://App.Example:443/").unwrap(),
        "https://app.example"
    );
    for bad in [
        "",
        "app.example",
        "https://a/b",
        "https://u@a",
        "ftp://a",
        "https://a?x",
    ] {
        assert!(origin(bad).is_err(), "{bad}");
    }
}
