//! Comparing our clock with the server's.
//!
//! Processes on several machines write times into one database and judge each other's: a login's end, a claim, a
//! credential, the window of `time`. The server's clock stands between them: each compares its own with that.

use std::time::Duration;

use tokio::time::Instant;

use crate::{StoreError, postgres::PostgresDatabase};

/// How often the clocks are compared: a clock drifts slowly, and one that is set wrong is noticed soon.
const INTERVAL: Duration = Duration::from_secs(60);
/// Machines that keep their clocks by NTP differ by milliseconds, so a second means that one of them does not. The
/// shortest times that one process writes and another judges have more room than that (a ticket's 60 s, a claim's 30 s).
const MAX_DIFFERENCE: Duration = Duration::from_secs(1);
/// UTC milliseconds, in SQL that engines which only speak Postgres' protocol know, too.
const SERVER_TIME: &str = "SELECT CAST(extract(epoch FROM now()) * 1000 AS BIGINT)";

/// Tells the time since the Unix epoch.
pub(crate) type Clock = std::sync::Arc<dyn Fn() -> Duration + Send + Sync>;

/// When the clocks are compared next.
pub(super) struct ClockCheck {
    clock: Clock,
    due: Instant,
}

impl ClockCheck {
    /// Due at once.
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            due: Instant::now(),
        }
    }

    /// Compares in the background, if it is time to.
    pub(super) fn begin_if_due(&mut self, database: &PostgresDatabase) {
        if Instant::now() < self.due {
            return;
        }
        self.due = Instant::now() + INTERVAL;
        let (database, clock) = (database.clone(), self.clock.clone());
        tokio::spawn(async move {
            match compare(&database, &clock).await {
                Ok(Some(difference)) => tracing::warn!("{}", warning(difference)),
                Ok(None) => {}
                // That the store does not answer is told elsewhere.
                Err(error) => {
                    tracing::debug!(cause = %error.in_short(), "the clocks were not compared");
                }
            }
        });
    }
}

/// How far our clock is ahead of the server's, in milliseconds (behind: below zero), if that is too much.
pub(in crate::postgres) async fn compare(
    database: &PostgresDatabase,
    clock: &Clock,
) -> Result<Option<i64>, StoreError> {
    let session = database.session().await?;
    // Prepares the statement, so that the second one takes one round trip.
    session.query_one(SERVER_TIME, &[]).await?;
    let sent = millis(clock());
    let server = session.query_one(SERVER_TIME, &[]).await?.try_get(0)?;
    let received = millis(clock());
    Ok(too_far_ahead(sent, server, received))
}

/// The server read its clock somewhere between `sent` and `received`, most likely in the middle. What the round trip
/// leaves in doubt does not count as a difference.
fn too_far_ahead(sent: i64, server: i64, received: i64) -> Option<i64> {
    let half_trip = (received - sent).max(0) / 2;
    let ahead = sent + half_trip - server;
    let is_too_far = ahead.abs() > millis(MAX_DIFFERENCE) + half_trip;
    is_too_far.then_some(ahead)
}

fn warning(ahead: i64) -> String {
    let (direction, by) = if ahead > 0 {
        ("ahead of", ahead)
    } else {
        ("behind", -ahead)
    };
    format!(
        "this machine's clock is {by} ms {direction} the database server's: logins and signs may be taken for expired, \
         or serve too long. Keep the clocks of all machines synchronised (NTP)"
    )
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_of_more_than_a_second_is_too_much_either_way() {
        for (sent, server, received, expected) in [
            (100_000, 100_000, 100_000, None),
            // The edge is inside.
            (101_000, 100_000, 101_000, None),
            (101_001, 100_000, 101_001, Some(1001)),
            (98_999, 100_000, 98_999, Some(-1001)),
            // Half of the round trip is ours to travel, and in doubt.
            (100_000, 101_000, 102_000, None),
            (100_000, 98_999, 102_000, Some(2001)),
            (100_000, 99_001, 102_000, None),
            (200_000, 100_000, 200_010, Some(100_005)),
            // Our clock was set back in between.
            (103_000, 100_000, 101_000, Some(3000)),
        ] {
            let found = too_far_ahead(sent, server, received);
            assert_eq!(found, expected, "{sent} {server} {received}");
        }
    }

    #[test]
    fn the_warning_names_the_difference() {
        assert!(warning(1500).contains("is 1500 ms ahead of"));
        assert!(warning(-90_000).contains("is 90000 ms behind"));
    }
}
