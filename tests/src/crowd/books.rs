//! Whether a store holds what a crowd was told that it holds: accounts exact, nothing acknowledged and lost.

use std::collections::BTreeSet;

use super::Record;
use sandbox_provider::user::User;

use crate::store::Store;

impl Record {
    /// Looks the crowd's people and events up; besides them there are the accounts of these users.
    ///
    /// # Panics
    ///
    /// When somebody has two accounts, or was told so, or lacks the one that was told of, or an acknowledged event is missing, or
    /// there is something that nobody asked for.
    pub fn agrees_with(&self, store: &dyn Store, besides: &[&str]) {
        self.accounts_agree(store, besides);
        let new = self.new_accounts();
        assert!(new.values().all(|count| *count <= 1), "{new:?}");
        let events = store.query("SELECT count(*) FROM events").number();
        let events = usize::try_from(events).expect("a count is not negative");
        // One whose answer was lost may be there, or not.
        let sent = self.sent.iter().filter(|sent| sent.what == "event");
        let range = self.done("event")..=sent.count();
        assert!(range.contains(&events), "{events} events of {range:?}");
    }

    fn accounts_agree(&self, store: &dyn Store, besides: &[&str]) {
        let accounts = store.query("SELECT username FROM accounts");
        let there: BTreeSet<&str> = accounts.values().collect();
        assert_eq!(there.len(), accounts.0.len(), "two of one: {accounts:?}");
        for user in self.users() {
            assert!(there.contains(&*uuid(user)), "{user} has no account");
        }
        let tried = self.users_who_tried().into_iter();
        let tried: BTreeSet<String> = tried.chain(besides.iter().copied()).map(uuid).collect();
        for username in there {
            assert!(tried.contains(username), "{username} did not log in");
        }
    }

    /// Looks whether everybody was told once that their account is new; only an answer that was cut may have been lost.
    ///
    /// # Panics
    ///
    /// When somebody was not.
    pub fn tells_of_every_new_account(&self) {
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
    User::named(user).expect("anybody exists").uuid()
}
