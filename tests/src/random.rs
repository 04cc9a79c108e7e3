//! Pseudorandom numbers (xorshift64), the same in every run.

/// A generator. Its seed must not be 0.
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    /// A number below `limit`.
    ///
    /// # Panics
    ///
    /// When `limit` is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let limit = u64::try_from(limit).expect("a usize fits");
        usize::try_from(self.0 % limit).expect("it is below a usize")
    }

    /// True in this percentage of calls.
    pub fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of these.
    ///
    /// # Panics
    ///
    /// When there are none.
    pub fn choose<'a, T: ?Sized>(&mut self, values: &[&'a T]) -> &'a T {
        values[self.below(values.len())]
    }
}
