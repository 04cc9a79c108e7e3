//! Comparing the local clock with the server's.
//!
//! Processes on several machines write times to one database and check each other's: the end of a login, of a claim, of
//! a credential, the window of `time`. The server's clock is the common reference.

use std::time::Duration;

use crate::{StoreError, postgres::PostgresDatabase};

/// Larger differences are logged. With NTP, clocks differ by milliseconds, so 1 s means that one is not synchronized.
/// The shortest times that one process writes and another checks are much longer (ticket 60 s, claim 30 s).
const MAX_DIFFERENCE: Duration = Duration::from_secs(1);
/// UTC milliseconds, in SQL that other engines with Postgres' protocol support, too.
const SERVER_TIME: &str = "SELECT CAST(extract(epoch FROM now()) * 1000 AS BIGINT)";

/// Returns the time since the Unix epoch.
pub(crate) type Clock = std::sync::Arc<dyn Fn() -> Duration + Send + Sync>;

pub(super) async fn compare_and_log(database: PostgresDatabase, clock: Clock) {
    match compare(&database, &clock).await {
        Ok(Some(difference)) => tracing::warn!("{}", warning(difference)),
        Ok(None) => {}
        // Only debug: the change feed reports that the store does not answer.
        Err(error) => tracing::debug!(cause = %error.in_short(), "cannot compare the clocks"),
    }
}

/// Milliseconds by which the local clock is ahead of the server's (negative: behind), if that is too much.
pub(in crate::postgres) async fn compare(
    database: &PostgresDatabase,
    clock: &Clock,
) -> Result<Option<i64>, StoreError> {
    let session = database.session().await?;
    // The first query prepares the statement, so that the second one takes a single round trip.
    session.query_one(SERVER_TIME, &[]).await?;
    let sent = millis(clock());
    let server = session.query_one(SERVER_TIME, &[]).await?.try_get(0)?;
    let received = millis(clock());
    Ok(too_far_ahead(sent, server, received))
}

/// The server read its clock between `sent` and `received`, most likely in the middle. Half of the round trip is the
/// uncertainty, and does not count as a difference.
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
        "this machine's clock is {by} ms {direction} the database server's: logins and signatures may expire too early \
         or too late. Synchronize the clocks of all machines (NTP)"
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
            // Exactly 1 s is allowed.
            (101_000, 100_000, 101_000, None),
            (101_001, 100_000, 101_001, Some(1001)),
            (98_999, 100_000, 98_999, Some(-1001)),
            // Half of the round trip is uncertainty.
            (100_000, 101_000, 102_000, None),
            (100_000, 98_999, 102_000, Some(2001)),
            (100_000, 99_001, 102_000, None),
            (200_000, 100_000, 200_010, Some(100_005)),
            // The local clock was set back in between.
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
