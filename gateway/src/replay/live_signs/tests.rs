//! The table against a plain map, over calls at random.

use std::collections::BTreeMap;

use super::*;

const NOW: u64 = 1_732_104_000_000;
const MOST: usize = 300;

/// What the contract asks for, and nothing else.
#[derive(Default)]
struct Plain {
    ends: BTreeMap<Vec<u8>, u64>,
    latest: u64,
}

impl Plain {
    fn remember(&mut self, sign: &[u8], last_live: u64, now: u64) -> Result<(), NotRemembered> {
        self.latest = self.latest.max(now);
        self.ends.retain(|_, end| *end >= now);
        if last_live < self.latest || self.ends.contains_key(sign) {
            return Err(NotRemembered::Replayed);
        }
        if self.ends.len() >= MOST {
            let first = self.ends.values().min().copied().unwrap_or(now);
            let until_room = Duration::from_millis(first - now + 1);
            return Err(NotRemembered::Full { until_room });
        }
        self.ends.insert(sign.to_vec(), last_live);
        Ok(())
    }
}

fn random(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// One of 1,000 signs, of one algorithm or the other; some have a half in common.
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
fn calls_at_random_are_answered_as_a_plain_map_would() {
    for seed in 0..20 {
        let hash = PlaceHash::new();
        let (mut signs, mut plain) = (LiveSigns::default(), Plain::default());
        let mut now = NOW;
        for step in 0..5_000 {
            let drawn = random(seed << 32 | step);
            // A clock that mostly goes on, at times jumps ahead, and now and then goes back.
            now = match drawn % 256 {
                0 => now + 2_000,
                1..4 => now - 3,
                _ => now + drawn % 3,
            };
            let sign = sign(drawn >> 8);
            let last_live = now + (drawn >> 40) % 1_200;
            let remembered = signs.remember(Halves::from(&sign), last_live, now, MOST, hash);
            let expected = plain.remember(sign.as_bytes(), last_live, now);
            assert_eq!(remembered, expected, "seed {seed}, step {step}");
            assert_eq!(signs.ends.len(), plain.ends.len());
            assert!(signs.entries.len() <= MOST);
        }
        assert!(signs.is_empty_at(now + 1_201, hash));
    }
}

#[test]
fn signs_of_one_place_are_told_apart() {
    // With such a key every sign whose first half has zeros in it hashes alike.
    let hash = PlaceHash([0, 0]);
    let mut signs = LiveSigns::default();
    let one = |number: u8| {
        Halves(
            [&[0; 15][..], &[number]].concat().try_into().unwrap(),
            [0; 16],
        )
    };
    for number in 0..100 {
        let last_live = NOW + u64::from(number % 7);
        let first = signs.remember(one(number), last_live, NOW, MOST, hash);
        let again = signs.remember(one(number), last_live, NOW, MOST, hash);
        assert_eq!((first, again), (Ok(()), Err(NotRemembered::Replayed)));
    }
    for millis in 0..7 {
        let now = NOW + millis;
        let is_live = |number: &u8| u64::from(number % 7) >= millis;
        for number in (0..100).filter(is_live) {
            let again = signs.remember(one(number), now + 9, now, MOST, hash);
            assert_eq!(again, Err(NotRemembered::Replayed), "{number}");
        }
    }
    assert!(signs.is_empty_at(NOW + 7, hash));
}

#[test]
fn places_are_used_again() {
    let hash = PlaceHash::new();
    let mut signs = LiveSigns::default();
    for round in 0..50 {
        let now = NOW + round * 10;
        for number in 0..MOST as u64 {
            let sign = Halves::from(&sign(number));
            assert_eq!(signs.remember(sign, now + 9, now, MOST, hash), Ok(()));
        }
    }
    assert_eq!(signs.entries.len(), MOST);
    assert_eq!(signs.table.len(), MOST.next_power_of_two());
}
