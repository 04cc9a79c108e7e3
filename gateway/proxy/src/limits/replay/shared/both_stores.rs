use std::net::Ipv4Addr;

use futures_util::FutureExt;
use signpost_store::{Timestamp, testing::TestStore};

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A signature that was made at `NOW` and so many milliseconds, and is valid for a minute.
fn sign(number: u16, offset: i64) -> UsedSign {
    sign_within(60, number, offset)
}

/// The same, valid for so many seconds.
fn sign_within(seconds: u64, number: u16, offset: i64) -> UsedSign {
    let text = format!("{number:032x}");
    let time = NOW.as_millis() + offset;
    let (sign, time) = (
        Sign::from_hex(text.as_bytes()).unwrap(),
        SignTime::try_from(time.to_string().as_bytes()).unwrap(),
    );
    let window = Window::from_seconds(seconds).unwrap();
    UsedSign::new(AppId::new(7), &sign, time, window)
}

/// What a crash of Postgres leaves.
async fn lose_signatures(store: &Store) {
    let lose = "DELETE FROM replay_signatures";
    store.execute(lose, Vec::new()).await.unwrap();
}

#[tokio::test]
async fn a_signature_is_accepted_by_one_gateway() {
    let test = TestStore::chosen();
    let (store, other_store) = (test.open().await, test.open().await);
    let (mut one, mut other) = (Rows::new(store), Rows::new(other_store));
    let all: Vec<_> = (0..100).map(|number| sign(number, 0)).collect();
    let reversed: Vec<_> = all.iter().rev().copied().collect();
    let (of_one, of_other) = tokio::join!(one.insert(&all, NOW), other.insert(&reversed, NOW));
    let of_other = of_other.unwrap();
    for (one, other) in of_one.unwrap().into_iter().zip(of_other.into_iter().rev()) {
        let replayed = Err(ShareError::Replayed);
        assert!([(Ok(()), replayed), (replayed, Ok(()))].contains(&(one, other)));
    }
    // With new ones, and twice in one statement.
    let mixed = [all[3], sign(100, 0), sign(100, 0)];
    let (accepted, replayed) = (Ok(()), Err(ShareError::Replayed));
    let verdicts = one.insert(&mixed, NOW).await.unwrap();
    assert_eq!(verdicts, [replayed, accepted, replayed]);
}

#[test]
fn applications_have_signatures_of_their_own() {
    let other = Sign::from_hex(format!("{:032x}", 1).as_bytes()).unwrap();
    let time = SignTime::try_from(&b"1700000000000"[..]).unwrap();
    let other = UsedSign::new(
        AppId::new(8),
        &other,
        time,
        Window::from_seconds(60).unwrap(),
    );
    assert_ne!(sign(1, 0).hash, other.hash);
    // With another time it is the same signature: some layouts allow that.
    assert_eq!(sign(1, 0).hash, sign(1, 5).hash);
}

#[tokio::test]
async fn lost_rows_allow_no_replay_of_what_was_accepted() {
    let test = TestStore::chosen();
    let store = test.open().await;
    let (mut one, mut other) = (Rows::new(store.clone()), Rows::new(store.clone()));
    // A client whose clock is ahead.
    let used = sign(1, 50_000);
    assert_eq!(one.insert(&[used], NOW).await.unwrap(), [Ok(())]);
    let before = [sign(2, 0), used];
    lose_signatures(&store).await;
    let lost = Err(ShareError::Lost);
    assert_eq!(other.insert(&before, NOW).await.unwrap(), [lost, lost]);
    // A gateway that has known the mark before, and one that has begun since.
    assert_eq!(one.insert(&[used], NOW).await.unwrap(), [lost]);
    let mut new = Rows::new(store.clone());
    assert_eq!(new.insert(&[used], NOW).await.unwrap(), [lost]);
    // The mark was two seconds ahead.
    let after = [sign(3, 52_000), sign(4, 52_001)];
    assert_eq!(one.insert(&after, NOW).await.unwrap(), [lost, Ok(())]);
    // A second loss rejects what was accepted after the first.
    lose_signatures(&store).await;
    assert_eq!(other.insert(&after, NOW).await.unwrap(), [lost, lost]);
    // An old mark, as of a replica that was behind: at least what was signed before now is rejected.
    lose_signatures(&store).await;
    let old = "UPDATE replay_mark SET until = 5";
    store.execute(old, Vec::new()).await.unwrap();
    let verdicts = one.insert(&[sign(5, 0), sign(6, 1)], NOW).await.unwrap();
    assert_eq!(verdicts, [lost, Ok(())]);
}

#[tokio::test]
async fn the_mark_moves_before_signatures_need_it() {
    let test = TestStore::chosen();
    let store = test.open().await;
    let mut rows = Rows::new(store.clone());
    let mark = async || {
        let read = "SELECT until FROM replay_mark";
        let read = store.row::<(i64,)>(read, Vec::new()).await.unwrap();
        read.map(|(until,)| until - NOW.as_millis())
    };
    rows.insert(&[sign(1, 0), sign(2, 1_000)], NOW)
        .await
        .unwrap();
    assert_eq!(mark().await, Some(3_000));
    rows.insert(&[sign(3, 2_000)], NOW).await.unwrap();
    assert_eq!(mark().await, Some(3_000));
    // No signature needs the next one yet.
    rows.insert(&[sign(4, 2_001)], NOW).await.unwrap();
    let moved = async { while mark().await == Some(3_000) {} };
    timeout(Duration::from_secs(20), moved).await.unwrap();
    assert_eq!(mark().await, Some(4_001));
    // With clocks that are far ahead, one that has moved meanwhile is not enough.
    let ahead = [sign(5, 3_500), sign(6, 50_000)];
    rows.insert(&ahead, NOW).await.unwrap();
    assert_eq!(mark().await, Some(52_000));
}

#[tokio::test]
async fn only_expired_signatures_are_deleted() {
    let test = TestStore::chosen();
    let store = test.open().await;
    let mut rows = Rows::new(store.clone());
    let signs = [sign(1, 0), sign(2, 1)];
    rows.insert(&signs, NOW).await.unwrap();
    // A window of a minute, and ten seconds for clocks that differ.
    let expired = NOW.plus(Duration::from_millis(70_000));
    assert_eq!(delete_expired(&store, expired).await.unwrap(), 0);
    let expired = NOW.plus(Duration::from_millis(70_001));
    assert_eq!(delete_expired(&store, expired).await.unwrap(), 1);
    let (accepted, replayed) = (Ok(()), Err(ShareError::Replayed));
    let verdicts = rows.insert(&signs, NOW).await.unwrap();
    assert_eq!(verdicts, [accepted, replayed]);
}

#[tokio::test]
async fn a_larger_window_at_one_gateway_allows_no_replay_of_what_others_have_accepted() {
    let test = TestStore::chosen();
    let store = test.open().await;
    let (mut minute, mut larger) = (Rows::new(store.clone()), Rows::new(store.clone()));
    let after = |seconds| NOW.plus(Duration::from_secs(seconds));
    let [deleted, kept, used] = [(1, 0), (2, 11_000), (3, 80_000)];
    let of_minute = [deleted, kept].map(|(number, offset)| sign(number, offset));
    minute.insert(&of_minute, NOW).await.unwrap();
    assert_eq!(delete_expired(&store, after(80)).await.unwrap(), 1);
    // From now on, rows stay for the larger window, and what was too old for the smaller one counts as lost.
    let of_larger = |(number, offset)| sign_within(300, number, offset);
    let (lost, replayed) = (Err(ShareError::Lost), Err(ShareError::Replayed));
    let old = [deleted, (4, 20_000), (5, 20_001), kept].map(of_larger);
    let verdicts = larger.insert(&old, after(80)).await.unwrap();
    assert_eq!(verdicts, [lost, lost, Ok(()), replayed]);
    let used_at_minute = [sign(used.0, used.1)];
    let verdicts = minute.insert(&used_at_minute, after(80)).await.unwrap();
    assert_eq!(verdicts, [Ok(())]);
    assert_eq!(delete_expired(&store, after(321)).await.unwrap(), 0);
    let verdicts = larger.insert(&[of_larger(used)], after(321)).await.unwrap();
    assert_eq!(verdicts, [replayed]);
    // After a loss, a gateway with the smaller window begins.
    lose_signatures(&store).await;
    minute
        .insert(&[sign(6, 400_000)], after(400))
        .await
        .unwrap();
    let of_both = (7, 410_000);
    let verdicts = larger
        .insert(&[of_larger(of_both)], after(410))
        .await
        .unwrap();
    assert_eq!(verdicts, [Ok(())]);
    assert_eq!(delete_expired(&store, after(600)).await.unwrap(), 0);
}

#[tokio::test]
async fn without_an_answer_nothing_is_accepted() {
    let test = TestStore::chosen();
    let store = test.open().await;
    let shared = SharedReplays::start(&store);
    let now = SystemClock.now().as_millis() - NOW.as_millis();
    assert_eq!(shared.insert(sign(1, now), CLIENT).await, Ok(()));
    test.make_unavailable();
    let no_answer = Err(ShareError::NoAnswer);
    assert_eq!(shared.insert(sign(2, now), CLIENT).await, no_answer);
    // This one does not wait for the store.
    assert_eq!(shared.insert(sign(3, now), CLIENT).await, no_answer);
    test.make_available();
    let replayed = Err(ShareError::Replayed);
    let mut repeated = no_answer;
    while repeated == no_answer {
        repeated = shared.insert(sign(1, now), CLIENT).await;
    }
    assert_eq!(repeated, replayed);
    assert_eq!(shared.insert(sign(4, now), CLIENT).await, Ok(()));
}

/// A memory, and the queue that its thread would read.
fn unserved(places: usize) -> (SharedReplays, UnboundedReceiver<Waiting>) {
    let (queue, waiting) = unbounded_channel();
    let places = Places::new(places);
    (SharedReplays { queue, places }, waiting)
}

#[tokio::test]
async fn of_more_than_a_statement_takes_each_is_accepted_once() {
    let test = TestStore::chosen();
    let (shared, waiting) = unserved(MAX_WAITING);
    let count = u16::try_from(MAX_BATCH * 2 + 10).unwrap();
    let networks = [1, 2].map(|last| IpAddr::from([192, 0, last, 1]));
    let inserted = networks.map(|client| {
        let inserted = (0..count).map(|number| shared.insert(sign(number, 0), client));
        futures_util::future::join_all(inserted)
    });
    let inserted = futures_util::future::join_all(inserted);
    let serve = insert_waiting(waiting, Rows::new(test.open().await));
    let verdicts = tokio::select! {
        verdicts = inserted => verdicts,
        () = serve => unreachable!("the queue is open"),
    };
    for (one, other) in verdicts[0].iter().zip(&verdicts[1]) {
        assert_eq!([one, other], [&Ok(()), &Err(ShareError::Replayed)]);
    }
    assert_eq!(shared.places.taken(), 0);
}

#[tokio::test]
async fn a_cancelled_request_leaves_nothing_behind() {
    let test = TestStore::chosen();
    let store = test.open().await;
    let (shared, waiting) = unserved(MAX_WAITING);
    let (cancelled, kept) = (sign(1, 0), sign(2, 0));
    assert_eq!(shared.insert(cancelled, CLIENT).now_or_never(), None);
    assert_eq!(shared.places.taken(), 1);
    let serve = insert_waiting(waiting, Rows::new(store.clone()));
    tokio::select! {
        inserted = shared.insert(kept, CLIENT) => assert_eq!(inserted, Ok(())),
        () = serve => unreachable!("the queue is open"),
    }
    assert_eq!(shared.places.taken(), 0);
    let mut other = Rows::new(store);
    let verdicts = other.insert(&[cancelled, kept], NOW).await.unwrap();
    assert_eq!(verdicts, [Ok(()), Err(ShareError::Replayed)]);
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_a_limited_time() {
    let (shared, _waiting) = unserved(MAX_WAITING);
    let start = tokio::time::Instant::now();
    let inserted = shared.insert(sign(1, 0), CLIENT).await;
    assert_eq!(inserted, Err(ShareError::NoAnswer));
    assert!(start.elapsed() < MAX_WAIT * 2);
}

#[tokio::test]
async fn a_network_has_a_share_of_the_waiting_requests() {
    let (shared, waiting) = unserved(8);
    let other = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    let clients = [CLIENT, CLIENT, CLIENT, other];
    let inserted = clients.map(|client| shared.insert(sign(1, 0), client));
    // Nobody answers, and then the thread ends.
    let inserted = futures_util::future::join_all(inserted);
    let (inserted, ()) = tokio::join!(inserted, async { drop(waiting) });
    let (no_answer, full) = (Err(ShareError::NoAnswer), Err(ShareError::Full));
    assert_eq!(inserted, [no_answer, no_answer, full, no_answer]);
}
