//! The rules, tested over a real store.

use std::{sync::Arc, time::Duration};

use signpost_kit::secret::SecretSource;
use signpost_store::{
    Store,
    tables::{
        applications::{self, ApplicationRow},
        audit::{self, AuditRow},
    },
    testing::TestStore,
};

use signpost_protocol::{
    language::Language,
    sign::{AppKey, ReplayPolicy, SignAlgorithm},
};
use signpost_proxy::{AppState, MasterKey, Sealer, new_app_ident, new_app_key};

use super::*;
use crate::{
    administration::{
        rules::{AppName, Origin},
        tokens::Role,
    },
    operations::{
        Caller, Context, Operation,
        apps::{self, Update},
        input::{Change, Decision},
    },
};

/// The longest overlap of a rotation.
pub(crate) const MAX_OVERLAP: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The operations on these applications.
impl Administration {
    async fn run<I, O>(
        &self,
        operation: &Operation<AppIdent, I, O>,
        ident: AppIdent,
        request: &ChangeRequest,
        input: I,
    ) -> Result<O, AdministrationError> {
        let caller = Caller {
            actor: request.author.actor.clone(),
            origin: request.author.origin.clone(),
            role: Role::Admin,
            at: request.at,
            language: Language::En,
            token: None,
        };
        let context = Context {
            caller,
            store: self.store.database().clone(),
            apps: Some(Self::new(self.store.clone(), self.rules.clone())),
            running: None,
        };
        let done = (operation.run)(&context, ident, input).await;
        done.map_err(|error| error.cause.downcast().unwrap())
    }

    pub(crate) async fn update(
        &self,
        ident: AppIdent,
        update: &Update,
        request: ChangeRequest,
    ) -> Result<AppSummary, AdministrationError> {
        let update = Update {
            revision: request.revision,
            ..update.clone()
        };
        self.run(&apps::UPDATE, ident, &request, update).await
    }

    pub(crate) async fn rotate(
        &self,
        ident: AppIdent,
        overlap: Duration,
        request: ChangeRequest,
    ) -> Result<(AppSummary, AppKey), AdministrationError> {
        let rotation = apps::Rotation {
            overlap_hours: overlap.as_secs() / 3600,
            revision: request.revision,
            reason: None,
        };
        let rotated = self.run(&apps::ROTATE, ident, &request, rotation).await?;
        Ok((rotated.app, rotated.key.parse().unwrap()))
    }

    pub(crate) async fn end_overlap(
        &self,
        ident: AppIdent,
        request: ChangeRequest,
    ) -> Result<AppSummary, AdministrationError> {
        let decision = decision(&request);
        self.run(&apps::END_OVERLAP, ident, &request, decision)
            .await
    }

    pub(crate) async fn set_state(
        &self,
        ident: AppIdent,
        state: AppState,
        request: ChangeRequest,
    ) -> Result<AppSummary, AdministrationError> {
        let operation = match state {
            AppState::Active => &apps::ENABLE,
            AppState::Disabled => &apps::DISABLE,
        };
        let decision = decision(&request);
        self.run(operation, ident, &request, decision).await
    }
}

fn decision(request: &ChangeRequest) -> Decision {
    Decision {
        revision: request.revision,
        reason: None,
    }
}

/// The administration of a gateway with v1 and v2 that rejects replays.
pub(crate) fn administration(store: StoredApps) -> Administration {
    let rules = Rules {
        versions: ["v1", "v2"].map(|name| name.parse().unwrap()).to_vec(),
        configured: ["v0", "v1", "v2"]
            .map(|name| name.parse().unwrap())
            .to_vec(),
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
    administration(sealed_apps(test_store.open().await))
}

/// The applications of a store, under a master key.
pub(crate) fn sealed_apps(store: Store) -> StoredApps {
    apps_under(store, "ab", None)
}

/// Under master keys that repeat these digits.
pub(crate) fn apps_under(store: Store, digits: &str, previous: Option<&str>) -> StoredApps {
    let key = |digits: &str| SecretSource::from(&*digits.repeat(32)).read().unwrap();
    let sealer = Sealer::from_config(&MasterKey::Given(key(digits)), false).unwrap();
    let previous = previous.map(key);
    StoredApps::new(store, sealer.with_previous(previous.as_ref()).unwrap())
}

pub(crate) fn author() -> Author {
    Author {
        actor: "ada".to_owned(),
        origin: "test".to_owned(),
        reason: None,
    }
}

/// A change at this time, of any revision.
pub(crate) fn request(millis: i64) -> ChangeRequest {
    ChangeRequest {
        author: author(),
        at: Timestamp::from_millis(millis),
        revision: None,
    }
}

/// Adds all, or none, and returns the idents that exist.
pub(crate) async fn import(apps: &StoredApps, new: Vec<NewApp>) -> Vec<AppIdent> {
    let apps = administration(apps.clone());
    let rows = new.into_iter().map(|app| apps.new_row(app).unwrap());
    let rows = rows.collect();
    let at = Timestamp::from_millis(1);
    apps.insert(rows, Action::ImportApp, author(), at)
        .await
        .unwrap()
}

/// Which applications there are, by their names.
pub(crate) async fn names(apps: &Administration) -> Vec<String> {
    let listing = Listing {
        limit: MAX_PAGE,
        ..Listing::default()
    };
    let page = apps.list(&listing).await.unwrap();
    page.apps.into_iter().map(|app| app.name).collect()
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
        extensions: Vec::new(),
        state: AppState::Active,
        created_at: Timestamp::from_millis(1_700_000_000_000),
    }
}

async fn created(apps: &Administration) -> AppIdent {
    let app = new_app("one");
    apps.create(app.clone(), author()).await.unwrap();
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
    let refused = apps.create(unknown, author()).await.unwrap_err();
    assert!(refused.to_string().contains("v1, v2"), "{refused}");
    assert!(names(&apps).await.is_empty());
    let ident = created(&apps).await;
    let default = |name: &str| Update {
        default_version: Some(Change::This(name.parse().unwrap())),
        ..Update::default()
    };
    let updated = apps
        .update(ident, &default("V2"), request(1))
        .await
        .unwrap();
    assert_eq!(updated.default_version.as_deref(), Some("v2"));
    let refused = apps
        .update(ident, &default("v3"), request(1))
        .await
        .unwrap_err();
    assert!(matches!(
        refused,
        AdministrationError::Rule(BrokenRule::UnknownVersion { .. })
    ));
    let unset = Update {
        default_version: Some(Change::None),
        ..Update::default()
    };
    assert_eq!(
        apps.update(ident, &unset, request(1))
            .await
            .unwrap()
            .default_version,
        None
    );
}

#[tokio::test]
async fn unchosen_profile_settings_keep_the_applications_values() {
    let test_store = TestStore::chosen();
    let apps = empty(&test_store).await;
    let ident = created(&apps).await;
    let update = async |choice: ProfileChoice| {
        let edit = Update {
            profile: Some(Change::This(choice)),
            ..Update::default()
        };
        apps.update(ident, &edit, request(1))
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
    let unchosen = Update {
        profile: Some(Change::This(ProfileChoice::default())),
        ..Update::default()
    };
    for edit in [&Update::default(), &unchosen] {
        let nothing = apps.update(ident, edit, request(1)).await.unwrap_err();
        assert!(matches!(nothing, AdministrationError::NothingToChange));
    }
    let renamed = Update {
        name: Some("one".parse().unwrap()),
        ..unchosen
    };
    let renamed = apps.update(ident, &renamed, request(1)).await.unwrap();
    assert_eq!(renamed.sign_profile, None);
    let renaming = Update {
        name: Some("two".parse().unwrap()),
        ..Update::default()
    };
    let unknown_ident = "nobody".parse().unwrap();
    let unknown = apps
        .update(unknown_ident, &renaming, request(1))
        .await
        .unwrap_err();
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
    for good in [
        "店舗 2・ギャラリー",
        "한국어 가게",
        "Łódź (1) 😀",
        "שלום",
        "می\u{200c}خواهم",
    ] {
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
        "\u{200d}",
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

/// The action after this one: a new action without a place here does not compile. Those that do not concern applications
/// have tests of their own.
const fn next(action: Action) -> Option<Action> {
    match action {
        Action::CreateApp => Some(Action::ImportApp),
        Action::ImportApp => Some(Action::UpdateApp),
        Action::UpdateApp => Some(Action::RotateApp),
        Action::RotateApp => Some(Action::EndOverlap),
        Action::EndOverlap => Some(Action::DisableApp),
        Action::DisableApp => Some(Action::EnableApp),
        Action::EnableApp => Some(Action::DeleteApp),
        Action::DeleteApp
        | Action::LogoutApp
        | Action::LogoutAccount
        | Action::SignRequest
        | Action::CreateToken
        | Action::RevokeToken
        | Action::RotateMasterKey
        | Action::ReloadConfig
        | Action::DrainBackend
        | Action::UndrainBackend => None,
    }
}

fn renaming(name: &str) -> Update {
    Update {
        name: Some(name.parse().unwrap()),
        ..Update::default()
    }
}

/// Does it to `app`; whether it was done.
async fn act(apps: &Administration, action: Action, app: &NewApp, request: ChangeRequest) -> bool {
    let ident = app.ident;
    match action {
        Action::CreateApp => apps.create(app.clone(), author()).await.is_ok(),
        Action::ImportApp => {
            let key = app.key.expose();
            let file = format!("ident,key,name\nimported,{key},Imported\n");
            let now = request.at;
            apps.import(file.as_bytes(), false, author(), now)
                .await
                .is_ok()
        }
        Action::UpdateApp => apps.update(ident, &renaming("two"), request).await.is_ok(),
        Action::RotateApp => apps.rotate(ident, MAX_OVERLAP, request).await.is_ok(),
        Action::EndOverlap => apps.end_overlap(ident, request).await.is_ok(),
        Action::DisableApp => apps
            .set_state(ident, AppState::Disabled, request)
            .await
            .is_ok(),
        Action::EnableApp => apps
            .set_state(ident, AppState::Active, request)
            .await
            .is_ok(),
        Action::DeleteApp => apps.delete(ident, request).await.is_ok(),
        Action::LogoutApp
        | Action::LogoutAccount
        | Action::SignRequest
        | Action::CreateToken
        | Action::RevokeToken
        | Action::RotateMasterKey
        | Action::ReloadConfig
        | Action::DrainBackend
        | Action::UndrainBackend => {
            panic!("{action:?} does not concern an application")
        }
    }
}

async fn audited(apps: &Administration) -> Vec<AuditRow> {
    let all = audit::Filter::default();
    audit::page(apps.store.database(), all, 1000).await.unwrap()
}

/// Everything that the store has of applications.
async fn records(apps: &Administration) -> Vec<ApplicationRow> {
    applications::page(apps.store.database(), i64::MIN, 1000)
        .await
        .unwrap()
}

#[tokio::test]
async fn each_action_is_written_with_its_audit_row_or_not_at_all() {
    let test_store = TestStore::chosen();
    let apps = empty(&test_store).await;
    let app = NewApp {
        created_at: Timestamp::from_millis(0),
        ..new_app("one")
    };
    let (mut action, mut number) = (Action::CreateApp, 0);
    loop {
        let before = records(&apps).await;
        let stale = ChangeRequest {
            revision: Some(77),
            ..request(number)
        };
        // Without the audit's table, nothing can be changed.
        let database = apps.store.database();
        let rename = "ALTER TABLE audit RENAME TO elsewhere";
        database.execute(rename, Vec::new()).await.unwrap();
        assert!(
            !act(&apps, action, &app, request(number)).await,
            "{action:?}"
        );
        let restore = "ALTER TABLE elsewhere RENAME TO audit";
        database.execute(restore, Vec::new()).await.unwrap();
        if !matches!(action, Action::CreateApp | Action::ImportApp) {
            assert!(!act(&apps, action, &app, stale).await, "{action:?}");
        }
        assert!(records(&apps).await == before, "{action:?}");
        assert_eq!(audited(&apps).await.len() as i64, number, "{action:?}");

        assert!(
            act(&apps, action, &app, request(number)).await,
            "{action:?}"
        );
        number += 1;
        let rows = audited(&apps).await;
        assert_eq!(rows.len() as i64, number, "{action:?}");
        assert_eq!(
            (&*rows[0].action, &*rows[0].author.actor),
            (action.as_str(), "ada")
        );
        let entry = &rows[0].entry;
        let key = app.key.expose();
        assert!(!entry.changes.contains(key), "{action:?}");
        let after = records(&apps).await;
        assert!(after != before, "{action:?}");
        match after.iter().find(|row| row.ident == entry.subject) {
            Some(row) => assert_eq!(row.revision, entry.revision, "{action:?}"),
            None => assert_eq!(action, Action::DeleteApp),
        }

        // The same once more, if it is one that changes nothing then.
        let repeated = act(&apps, action, &app, request(number)).await;
        assert_eq!(
            repeated,
            matches!(
                action,
                Action::UpdateApp | Action::EndOverlap | Action::DisableApp | Action::EnableApp
            ),
            "{action:?}"
        );
        assert!(records(&apps).await == after, "{action:?}");
        assert_eq!(audited(&apps).await.len() as i64, number, "{action:?}");
        match next(action) {
            Some(next) => action = next,
            None => break,
        }
    }
    let changes = |index: usize, rows: &[AuditRow]| rows[index].entry.changes.clone();
    let rows = audited(&apps).await;
    assert_eq!(changes(2, &rows), r#"{"state":["active","disabled"]}"#);
    assert_eq!(changes(5, &rows), r#"{"name":["one","two"]}"#);
    assert!(
        changes(4, &rows).contains(r#""key":"changed""#),
        "{:?}",
        rows[4]
    );
}

#[tokio::test]
async fn of_concurrent_changes_of_one_revision_one_wins_and_the_others_are_told() {
    let test_store = TestStore::chosen();
    let apps = Arc::new(empty(&test_store).await);
    let ident = created(&apps).await;
    let changes: Vec<_> = (0..8)
        .map(|number| {
            let apps = Arc::clone(&apps);
            let request = ChangeRequest {
                revision: Some(1),
                ..request(1)
            };
            tokio::spawn(async move {
                let edit = renaming(&format!("name {number}"));
                apps.update(ident, &edit, request).await
            })
        })
        .collect();
    let mut done = 0;
    for change in changes {
        match change.await.unwrap() {
            Ok(app) => done += app.revision - 1,
            Err(error) => assert!(
                matches!(error, AdministrationError::Stale { present: 2 }),
                "{error}"
            ),
        }
    }
    assert_eq!((done, audited(&apps).await.len()), (1, 2));
    // Without a revision, all succeed, one after the other.
    let changes = (0..8).map(|number| {
        let apps = Arc::clone(&apps);
        tokio::spawn(async move {
            apps.update(ident, &renaming(&format!("again {number}")), request(1))
                .await
        })
    });
    for change in changes.collect::<Vec<_>>() {
        change.await.unwrap().unwrap();
    }
    assert_eq!(apps.show(ident).await.unwrap().revision, 10);
    assert_eq!(audited(&apps).await.len(), 10);
}

#[tokio::test]
async fn a_search_finds_idents_and_beginnings_of_names_by_pages() {
    let test_store = TestStore::chosen();
    let apps = empty(&test_store).await;
    let named = |ident: &str, name: &str| NewApp {
        ident: ident.parse().unwrap(),
        ..new_app(name)
    };
    let new = [
        ("b", "Ärger"),
        ("c", "shop 2"),
        ("shop", "Zoo"),
        ("d", "SHOP 1"),
        ("e", "a shop"),
    ];
    let new = new.map(|(ident, name)| named(ident, name));
    assert!(import(&apps.store, new.into()).await.is_empty());
    let find = async |text: &str, limit: usize| {
        let mut listing = Listing {
            search: Some(text.to_owned()),
            after: None,
            limit,
        };
        let mut found = Vec::new();
        loop {
            let page = apps.list(&listing).await.unwrap();
            assert!(page.apps.len() <= limit);
            found.extend(page.apps.iter().map(|app| app.ident.clone()));
            let Some(next) = page.next else {
                return found.join(" ");
            };
            listing.after = Some(next.to_string().parse().unwrap());
        }
    };
    for limit in [1, 2, 3, 10] {
        assert_eq!(find("shop", limit).await, "shop d c", "{limit}");
        assert_eq!(find("äR", limit).await, "b");
        assert_eq!(find("%", limit).await, "");
    }
}

#[tokio::test]
async fn a_page_follows_although_the_last_application_of_the_page_before_was_deleted() {
    let test_store = TestStore::chosen();
    let apps = empty(&test_store).await;
    for search in [None, Some("one".to_owned())] {
        let idents = [created(&apps).await, created(&apps).await];
        let mut listing = Listing {
            search,
            after: None,
            limit: 1,
        };
        listing.after = apps.list(&listing).await.unwrap().next;
        assert!(listing.after.is_some());
        apps.delete(idents[0], request(1)).await.unwrap();
        let page = apps.list(&listing).await.unwrap();
        assert_eq!(page.apps[0].ident, idents[1].as_str());
        assert!(page.next.is_none());
        apps.delete(idents[1], request(1)).await.unwrap();
    }
    for text in ["", "1", "x.", "1.6", ".61"] {
        assert!(text.parse::<Cursor>().is_err(), "{text}");
    }
}
