//! Changes to valid inputs.

use proptest::{
    collection::vec,
    prelude::*,
    sample::{Index, select},
};

use super::Inputs;

/// A change to an input, at some place of it.
#[derive(Clone, Debug)]
enum Damage {
    Insert(Vec<u8>),
    Remove(usize),
    Replace(u8),
    Repeat(usize),
    Truncate,
}

impl Damage {
    fn apply(self, place: Index, input: &mut Vec<u8>) {
        let place = place.index(input.len() + 1);
        let to = |length: usize| place..input.len().min(place + length);
        match self {
            Self::Insert(bytes) => drop(input.splice(place..place, bytes)),
            Self::Remove(length) => drop(input.drain(to(length))),
            Self::Replace(byte) => drop(input.splice(to(1), [byte])),
            Self::Repeat(length) => {
                let repeated = input[to(length)].to_vec();
                input.splice(place..place, repeated);
            }
            Self::Truncate => input.truncate(place),
        }
    }
}

/// Half of the inputs as they are, the others with a few changes, for which there are `tokens`.
pub(super) fn damaged(inputs: Inputs, tokens: &'static [&'static [u8]]) -> Inputs {
    let damage = prop_oneof![
        4 => select(tokens).prop_map(|token| Damage::Insert(token.to_vec())),
        2 => (1..4_usize).prop_map(Damage::Remove),
        2 => any::<u8>().prop_map(Damage::Replace),
        1 => (1..40_usize).prop_map(Damage::Repeat),
        1 => Just(Damage::Truncate),
    ];
    let changes = prop_oneof![Just(Vec::new()), vec((damage, any::<Index>()), 1..4)];
    (inputs, changes)
        .prop_map(|(mut input, changes)| {
            for (damage, place) in changes {
                damage.apply(place, &mut input);
            }
            input
        })
        .boxed()
}
