//! Tokens, on the chosen database.

use signpost_store::{
    tables::audit::{self, Filter},
    testing::TestStore,
};

use super::*;
use crate::administration::apps::both_stores::author;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn new(name: &str, role: Role) -> NewToken {
    NewToken {
        name: name.to_owned(),
        role,
        expires_at: NOW.plus(DAY),
    }
}

async fn create(tokens: &Tokens, name: &str) -> (Token, TokenSecret) {
    let new = new(name, Role::Operator);
    tokens.create(new, author(), NOW).await.unwrap()
}

/// What the audit says, oldest first.
async fn audited(store: &Store) -> Vec<(String, String, i64, String)> {
    let rows = audit::page(store, Filter::default(), 10).await.unwrap();
    let row = |row: audit::AuditRow| {
        assert_eq!((&*row.author.actor, &*row.author.origin), ("ada", "test"));
        let entry = row.entry;
        (row.action, entry.subject, entry.revision, entry.changes)
    };
    rows.into_iter().rev().map(row).collect()
}

#[tokio::test]
async fn a_token_is_valid_until_its_end_or_until_it_is_revoked() {
    let test = TestStore::chosen();
    let store = test.open().await;
    let tokens = Tokens::new(store.clone());
    let (token, secret) = create(&tokens, "  c\\i ☃ ").await;
    assert_eq!((&*token.name, token.role), ("c\\i ☃", Role::Operator));
    let text = secret.expose();
    assert!(text.starts_with("sp_") && text.len() == 46, "{text}");
    assert_eq!(format!("{secret:?}"), "TokenSecret(…)");
    let id_at = async |text: &str, now| {
        let found = tokens.authenticate(text, now).await.unwrap();
        found.map(|token| token.id)
    };
    let end = NOW.plus(DAY);
    let just_before = end.minus(Duration::from_millis(1));
    assert_eq!(id_at(text, just_before).await, Some(token.id));
    assert_eq!(id_at(text, end).await, None);
    let bare = &text[3..];
    let changed = format!(
        "sp_{}{}",
        if bare.starts_with('A') { "B" } else { "A" },
        &bare[1..]
    );
    let further = [
        "",
        "sp_",
        bare,
        &format!("sp_Bearer {bare}"),
        &format!("SP_{bare}"),
        &format!("{text}="),
        &changed,
    ];
    for wrong in further {
        assert_eq!(id_at(wrong, NOW).await, None, "{wrong}");
    }

    let revoked = tokens.revoke(token.id, author(), NOW).await.unwrap();
    assert_eq!(revoked.revoked_at, Some(NOW));
    assert_eq!(id_at(text, NOW).await, None);
    // Once more, nothing changes.
    let again = tokens.revoke(token.id, author(), end).await.unwrap();
    assert_eq!(again.revoked_at, Some(NOW));
    let unknown = tokens.revoke(token.id + 1, author(), NOW).await;
    assert!(matches!(unknown, Err(TokenError::Unknown)));

    let [created, revoked] = audited(&store).await.try_into().unwrap();
    assert_eq!(
        (&*created.0, &*created.1, created.2),
        ("token.create", "c\\i ☃", 1)
    );
    assert_eq!(
        created.3,
        r#"{"expires_at":[null,"2023-11-15T22:13:20Z"],"role":[null,"operator"]}"#
    );
    assert_eq!(
        (&*revoked.0, &*revoked.1, revoked.2),
        ("token.revoke", "c\\i ☃", 2)
    );
    assert_eq!(revoked.3, r#"{"revoked_at":[null,"2023-11-14T22:13:20Z"]}"#);
    let stored: Option<(Vec<u8>,)> = store
        .row("SELECT hash FROM tokens", Vec::new())
        .await
        .unwrap();
    assert_eq!(
        stored.unwrap().0,
        text[3..].parse::<Credential>().unwrap().hash().as_bytes()
    );
}

#[tokio::test]
async fn the_last_use_is_written_once_a_minute() {
    let test = TestStore::chosen();
    let tokens = Tokens::new(test.open().await);
    let (_, secret) = create(&tokens, "ci").await;
    for (seconds, written) in [(1, 1), (60, 1), (61, 61), (30, 61), (121, 121)] {
        let now = NOW.plus(Duration::from_secs(seconds));
        let used = tokens.authenticate(secret.expose(), now).await.unwrap();
        let stored = tokens.list(None, 1).await.unwrap().0.pop();
        let written = Some(NOW.plus(Duration::from_secs(written)));
        assert_eq!(used.unwrap().last_used_at, written);
        assert_eq!(stored.unwrap().last_used_at, written);
    }
}

#[tokio::test]
async fn a_name_belongs_to_one_live_token_and_names_and_ends_are_checked() {
    let test = TestStore::chosen();
    let store = test.open().await;
    let tokens = Tokens::new(store.clone());
    let (first, _) = create(&tokens, "ci").await;
    let taken = tokens.create(new("ci", Role::Viewer), author(), NOW).await;
    assert!(matches!(taken, Err(TokenError::Taken)));
    tokens.revoke(first.id, author(), NOW).await.unwrap();
    let (second, _) = create(&tokens, "ci").await;
    let after = NewToken {
        expires_at: NOW.plus(2 * DAY),
        ..new("ci", Role::Viewer)
    };
    let at = NOW.plus(DAY);
    let (third, _) = tokens.create(after, author(), at).await.unwrap();
    assert!(first.id < second.id && second.id < third.id);
    for name in ["", " ", "a\u{202e}b", "a\nb", &"x".repeat(65)] {
        let refused = tokens.create(new(name, Role::Viewer), author(), NOW).await;
        assert!(matches!(refused, Err(TokenError::Name)), "{name:?}");
    }
    let just_later = Duration::from_millis(1);
    for expires_at in [NOW, NOW.minus(DAY), NOW.plus(366 * DAY + just_later)] {
        let new = NewToken {
            expires_at,
            ..new("b", Role::Viewer)
        };
        let refused = tokens.create(new, author(), NOW).await;
        assert!(matches!(refused, Err(TokenError::End)), "{expires_at:?}");
    }
    // What was refused has no row of the audit.
    let rows = audited(&store).await;
    let actions: Vec<_> = rows.iter().map(|(action, ..)| &**action).collect();
    // The second one had expired, but had the name.
    let (create, revoke) = ("token.create", "token.revoke");
    assert_eq!(actions, [create, revoke, create, revoke, create]);

    let ids = async |after, limit| {
        let (page, has_more) = tokens.list(after, limit).await.unwrap();
        let ids: Vec<_> = page.iter().map(|token| token.id).collect();
        (ids, has_more)
    };
    let both = vec![first.id, second.id];
    assert_eq!(ids(None, 2).await, (both, true));
    assert_eq!(ids(Some(second.id), 5).await, (vec![third.id], false));
    let year_later = at.plus(RETENTION);
    assert_eq!(tokens.delete_old(year_later).await.unwrap(), 1);
    let later = year_later.plus(just_later);
    assert_eq!(tokens.delete_old(later).await.unwrap(), 1);
    assert_eq!(ids(None, 5).await, (vec![third.id], false));
}
