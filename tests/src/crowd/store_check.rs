//! Compares a store with a crowd's record: exactly the right accounts, and no acknowledged event lost.

use std::collections::BTreeSet;

use super::Record;
use sandbox_provider::user::User;

use crate::store::Store;

impl Record {
    /// Checks the store's accounts and events against this record. `others` are further users with an account.
    ///
    /// # Panics
    ///
    /// When a user has two accounts, or two answers called the account new; when an account or an acknowledged event is
    /// missing; or when the store has one that no request created.
    pub fn assert_matches_store(&self, store: &dyn Store, others: &[&str]) {
        self.assert_accounts_match(store, others);
        let new = self.new_accounts();
        assert!(new.values().all(|count| *count <= 1), "{new:?}");
        let events = store.query("SELECT count(*) FROM events").number();
        let events = usize::try_from(events).expect("a count is not negative");
        // An event whose answer was lost may be stored or not.
        let sent = self.sent.iter().filter(|sent| sent.what == "event");
        let range = self.done("event")..=sent.count();
        assert!(range.contains(&events), "{events} events of {range:?}");
    }

    fn assert_accounts_match(&self, store: &dyn Store, others: &[&str]) {
        let accounts = store.query("SELECT username FROM accounts");
        let stored: BTreeSet<&str> = accounts.values().collect();
        assert_eq!(
            stored.len(),
            accounts.0.len(),
            "two accounts of one user: {accounts:?}"
        );
        for user in self.users() {
            assert!(stored.contains(&*uuid(user)), "{user} has no account");
        }
        let tried = self.users_who_tried().into_iter();
        let tried: BTreeSet<String> = tried.chain(others.iter().copied()).map(uuid).collect();
        for username in stored {
            assert!(tried.contains(username), "{username} did not log in");
        }
    }

    /// Checks that exactly one response to each user called the account new. It may be missing after an interrupted login.
    ///
    /// # Panics
    ///
    /// When it is missing otherwise, or there are two.
    pub fn assert_new_accounts_reported(&self) {
        let interrupted = self.interrupted.iter().map(|login| login.user.as_str());
        let interrupted: BTreeSet<&str> = interrupted.collect();
        for (user, count) in self.new_accounts() {
            assert!(
                count == 1 || interrupted.contains(user),
                "{user} was new {count} times"
            );
        }
    }
}

fn uuid(user: &str) -> String {
    User::named(user)
        .expect("an `any:` user always exists")
        .uuid()
}
