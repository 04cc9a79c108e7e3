//! The decision without a parent: a share of all requests, by the last digits of the trace id.

/// A million: all requests.
const MILLION: u128 = 1_000_000;

/// Samples a share of the requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampler {
    /// Digits below it are sampled. Hex digits in lower case are ordered as their numbers, so that none is decoded.
    below: [u8; 16],
    samples_all: bool,
}

impl Sampler {
    pub(super) fn new(per_million: u32) -> Self {
        let below = (u128::from(per_million) << 64) / MILLION;
        let mut digits = [b'0'; 16];
        let samples_all = u64::try_from(below).is_err();
        let below = u64::try_from(below).unwrap_or(u64::MAX).to_be_bytes();
        hex::encode_to_slice(below, &mut digits).expect("two digits a byte");
        Self {
            below: digits,
            samples_all,
        }
    }

    /// Whether a trace whose id ends in these hex digits is sampled.
    pub(super) fn samples(&self, digits: [u8; 16]) -> bool {
        u128::from_be_bytes(digits) < u128::from_be_bytes(self.below) || self.samples_all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::context::new_trace_id;

    fn sampled(per_million: u32, requests: usize) -> usize {
        let sampler = Sampler::new(per_million);
        let is_sampled = |_: &usize| {
            let mut digits = [0; 16];
            hex::encode_to_slice(&new_trace_id()[8..], &mut digits).unwrap();
            sampler.samples(digits)
        };
        (0..requests).filter(is_sampled).count()
    }

    #[test]
    fn the_share_is_the_one_of_the_setting() {
        assert_eq!(sampled(0, 10_000), 0);
        assert_eq!(sampled(1_000_000, 10_000), 10_000);
        let one_in_ten = sampled(100_000, 100_000);
        assert!((9_000..11_000).contains(&one_in_ten), "{one_in_ten}");
    }

    #[test]
    fn the_edges_are_exact() {
        let half = Sampler::new(500_000);
        assert!(half.samples(*b"7fffffffffffffff"));
        assert!(!half.samples(*b"8000000000000000"));
        assert!(Sampler::new(1_000_000).samples(*b"ffffffffffffffff"));
        assert!(!Sampler::new(0).samples(*b"0000000000000000"));
    }
}
