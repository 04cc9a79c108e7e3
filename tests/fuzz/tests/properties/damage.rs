//! Changes to valid inputs.

use proptest::{
    collection::vec,
    prelude::*,
    sample::{Index, select},
};

use super::Inputs;

/// A change to an input, at any offset.
#[derive(Clone, Debug)]
enum Damage {
    Insert(Vec<u8>),
    Remove(usize),
    Replace(u8),
    Repeat(usize),
    Truncate,
}

impl Damage {
    fn apply(self, index: Index, input: &mut Vec<u8>) {
        let offset = index.index(input.len() + 1);
        let to = |length: usize| offset..input.len().min(offset + length);
        match self {
            Self::Insert(bytes) => drop(input.splice(offset..offset, bytes)),
            Self::Remove(length) => drop(input.drain(to(length))),
            Self::Replace(byte) => drop(input.splice(to(1), [byte])),
            Self::Repeat(length) => {
                let repeated = input[to(length)].to_vec();
                input.splice(offset..offset, repeated);
            }
            Self::Truncate => input.truncate(offset),
        }
    }
}

/// Leaves half of the inputs unchanged, and makes one to three changes to each of the others. `tokens` are inserted.
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
            for (damage, index) in changes {
                damage.apply(index, &mut input);
            }
            input
        })
        .boxed()
}
