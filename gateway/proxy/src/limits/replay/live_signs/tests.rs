//! Compares the table with a plain map, over random calls.

use std::collections::BTreeMap;

use super::*;

const NOW: u64 = 1_732_104_000_000;
const MAX: usize = 300;

/// The reference: the contract's rules over a plain map.
#[derive(Default)]
struct Plain {
    expiries: BTreeMap<Vec<u8>, u64>,
    latest: u64,
}

impl Plain {
    fn insert(&mut self, sign: &[u8], last_live: u64, now: u64) -> Result<(), ReplayInsertError> {
        self.latest = self.latest.max(now);
        self.expiries.retain(|_, end| *end >= now);
        if last_live < self.latest || self.expiries.contains_key(sign) {
            return Err(ReplayInsertError::Replayed);
        }
        if self.expiries.len() >= MAX {
            let first = self.expiries.values().min().copied().unwrap_or(now);
            let until_room = Duration::from_millis(first - now + 1);
            return Err(ReplayInsertError::Full { until_room });
        }
        self.expiries.insert(sign.to_vec(), last_live);
        Ok(())
    }
}

fn random(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// One of 1,000 signatures of either algorithm; some share a half.
fn sign(number: u64) -> Sign {
    let number = number % 1_000;
    let long = number.is_multiple_of(3);
    let halves = if long {
        [number / 10, number % 10, 7, number]
    } else {
        [number / 10, number % 10, 0, 0]
    };
    let bytes: Vec<u8> = halves.iter().flat_map(|part| part.to_be_bytes()).collect();
    let length = if long { 32 } else { 16 };
    Sign::from_hex(hex::encode(&bytes[..length]).as_bytes()).unwrap()
}

#[test]
fn random_calls_have_the_same_results_as_with_a_plain_map() {
    for seed in 0..20 {
        let hash = SlotHash::new();
        let (mut signs, mut plain) = (LiveSigns::default(), Plain::default());
        let mut now = NOW;
        for step in 0..5_000 {
            let drawn = random(seed << 32 | step);
            // A clock that mostly advances, sometimes jumps ahead, and sometimes goes back.
            now = match drawn % 256 {
                0 => now + 2_000,
                1..4 => now - 3,
                _ => now + drawn % 3,
            };
            let sign = sign(drawn >> 8);
            let last_live = now + (drawn >> 40) % 1_200;
            let inserted = signs.insert(Halves::from(&sign), last_live, now, MAX, hash);
            let expected = plain.insert(sign.as_bytes(), last_live, now);
            assert_eq!(inserted, expected, "seed {seed}, step {step}");
            assert_eq!(signs.expiries.len(), plain.expiries.len());
            assert!(signs.entries.len() <= MAX);
        }
        assert!(signs.is_empty_at(now + 1_201, hash));
    }
}

#[test]
fn signs_in_one_slot_are_distinguished() {
    // With this key, all signatures of this test have the same hash.
    let hash = SlotHash([0, 0]);
    let mut signs = LiveSigns::default();
    let one = |number: u8| {
        Halves(
            [&[0; 15][..], &[number]].concat().try_into().unwrap(),
            [0; 16],
        )
    };
    for number in 0..100 {
        let last_live = NOW + u64::from(number % 7);
        let first = signs.insert(one(number), last_live, NOW, MAX, hash);
        let again = signs.insert(one(number), last_live, NOW, MAX, hash);
        assert_eq!((first, again), (Ok(()), Err(ReplayInsertError::Replayed)));
    }
    for millis in 0..7 {
        let now = NOW + millis;
        let is_live = |number: &u8| u64::from(number % 7) >= millis;
        for number in (0..100).filter(is_live) {
            let again = signs.insert(one(number), now + 9, now, MAX, hash);
            assert_eq!(again, Err(ReplayInsertError::Replayed), "{number}");
        }
    }
    assert!(signs.is_empty_at(NOW + 7, hash));
}

#[test]
fn entries_are_reused() {
    let hash = SlotHash::new();
    let mut signs = LiveSigns::default();
    for round in 0..50 {
        let now = NOW + round * 10;
        for number in 0..MAX as u64 {
            let sign = Halves::from(&sign(number));
            assert_eq!(signs.insert(sign, now + 9, now, MAX, hash), Ok(()));
        }
    }
    assert_eq!(signs.entries.len(), MAX);
    assert_eq!(signs.table.len(), MAX.next_power_of_two());
}
