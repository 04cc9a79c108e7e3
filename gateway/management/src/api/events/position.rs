//! Which rows of the audit a reader has seen.

use std::{fmt, str::FromStr};

/// Limit of a position's text in bytes.
const MAX_LENGTH: usize = 4096;

/// The ids that were seen: all up to the highest one, but for gaps. On Postgres a row gets its id when it is written and is
/// visible when it is committed, so a row can appear below one that was seen.
///
/// `Display` is the highest id and the gaps: `17`, or `17,12,14-15`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// The gaps, first and last id of each, in order.
    gaps: Vec<(i64, i64)>,
    last: i64,
}

impl Position {
    /// All ids up to this one were seen.
    pub(super) const fn up_to(last: i64) -> Self {
        let gaps = Vec::new();
        Self { gaps, last }
    }

    /// The highest id that was seen.
    pub(super) const fn last(&self) -> i64 {
        self.last
    }

    /// The ids below it that were not seen: first and last id of each range.
    pub(super) fn gaps(&self) -> &[(i64, i64)] {
        &self.gaps
    }

    /// Whether an id was seen.
    pub(super) fn has(&self, id: i64) -> bool {
        let mut gaps = self.gaps.iter();
        id <= self.last && !gaps.any(|(first, last)| (*first..=*last).contains(&id))
    }

    /// Adds the ids from `first` to `last`.
    pub(super) fn add(&mut self, first: i64, last: i64) {
        let mut gaps = Vec::with_capacity(self.gaps.len() + 1);
        for (from, to) in self.unseen() {
            let (before, after) = ((from, to.min(first - 1)), (from.max(last + 1), to));
            gaps.extend([before, after].into_iter().filter(|(from, to)| from <= to));
        }
        self.set_unseen(gaps);
    }

    /// Adds the ids that `other` has.
    pub(super) fn add_all(&mut self, other: &Self) {
        let mut gaps = Vec::new();
        for (first, last) in self.unseen() {
            let common = other
                .unseen()
                .map(|(from, to)| (from.max(first), to.min(last)));
            gaps.extend(common.filter(|(from, to)| from <= to));
        }
        self.set_unseen(gaps);
    }

    /// The first range of ids that `other` has and this one has not.
    pub(super) fn first_missing(&self, other: &Self) -> Option<(i64, i64)> {
        for (mut first, last) in self.unseen() {
            for (from, to) in other.unseen() {
                if first < from && first <= last {
                    return Some((first, last.min(from - 1)));
                }
                first = first.max(to.saturating_add(1));
            }
        }
        None
    }

    /// The gaps, and what follows the highest id.
    fn unseen(&self) -> impl Iterator<Item = (i64, i64)> {
        let gaps = self.gaps.iter().copied();
        gaps.chain([(self.last + 1, i64::MAX)])
    }

    /// Sets the gaps; the last one is what follows the highest id.
    fn set_unseen(&mut self, mut gaps: Vec<(i64, i64)>) {
        if let Some((first, _)) = gaps.pop() {
            self.last = first - 1;
        }
        self.gaps = gaps;
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.last)?;
        for (first, last) in &self.gaps {
            write!(formatter, ",{first}")?;
            if first < last {
                write!(formatter, "-{last}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for Position {
    type Err = ParsePositionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > MAX_LENGTH {
            return Err(ParsePositionError);
        }
        let mut parts = text.split(',');
        let last = parts.next().and_then(number).ok_or(ParsePositionError)?;
        let mut position = Self::up_to(last);
        let mut after = 0;
        for part in parts {
            let (first, end) = part.split_once('-').unwrap_or((part, part));
            let (first, end) = (number(first), number(end));
            let (first, end) = first.zip(end).ok_or(ParsePositionError)?;
            if first <= after || end < first || end >= last {
                return Err(ParsePositionError);
            }
            position.gaps.push((first, end));
            after = end;
        }
        Ok(position)
    }
}

/// An id: far below the largest number, so that one can be added.
fn number(digits: &str) -> Option<i64> {
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse().ok().filter(|_| is_number);
    number.filter(|number| *number < i64::MAX / 2)
}

/// The text is not a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the id of an event")]
pub(super) struct ParsePositionError;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn position(text: &str) -> Position {
        text.parse().unwrap()
    }

    #[test]
    fn a_position_is_read_as_it_is_written() {
        for text in ["0", "17", "17,12", "17,12,14-15", "17,1-16"] {
            assert_eq!(position(text).to_string(), text);
        }
        for text in [
            "",
            "-1",
            "+1",
            "1.5",
            "17,",
            "17,18",
            "17,17",
            "17,14-12",
            "17,14,12",
            "17,12-13,13",
            "17,0",
            "17,1-2-3",
            "9223372036854775807",
            &"1,".repeat(MAX_LENGTH),
        ] {
            assert_eq!(text.parse::<Position>(), Err(ParsePositionError), "{text}");
        }
    }

    #[test]
    fn ids_leave_gaps_and_fill_them() {
        let mut position = position("3");
        for (id, expected) in [
            (7, "7,4-6"),
            (5, "7,4,6"),
            (7, "7,4,6"),
            (4, "7,6"),
            (8, "8,6"),
            (6, "8"),
        ] {
            position.add(id, id);
            assert_eq!(position.to_string(), expected);
        }
        position.add(2, 10);
        assert_eq!(position.to_string(), "10");
    }

    /// The ids up to 8 that a position has.
    fn ids(position: &Position) -> BTreeSet<i64> {
        (1..=8).filter(|id| position.has(*id)).collect()
    }

    #[test]
    fn positions_are_sets_of_ids() {
        let all: Vec<_> = (0..64_i64)
            .map(|bits| {
                let mut position = Position::up_to(0);
                let ids = (0..6).filter(|bit| bits & (1 << bit) != 0);
                ids.for_each(|bit| position.add(bit + 1, bit + 1));
                position
            })
            .collect();
        for one in &all {
            assert_eq!(&position(&one.to_string()), one);
            for other in &all {
                let mut both = one.clone();
                both.add_all(other);
                let expected: BTreeSet<_> = ids(one).union(&ids(other)).copied().collect();
                assert_eq!(ids(&both), expected, "{one} {other}");
                let mut next = one.clone();
                while let Some((first, last)) = next.first_missing(other) {
                    assert!((first..=last).all(|id| other.has(id) && !next.has(id)));
                    next.add(first, last);
                }
                assert_eq!(next, both, "{one} {other}");
            }
        }
    }
}
