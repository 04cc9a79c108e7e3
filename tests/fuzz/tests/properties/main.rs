//! Runs the targets on generated inputs, one module for each kind: mostly valid, some damaged, since a parser rejects
//! random bytes early.
//!
//! Every run uses the same inputs. `PROPTEST_RNG_SEED` and `PROPTEST_CASES` select others, and more. `scripts/fuzz`
//! starts from the corpus, guided by coverage. A failure shows the smallest input found: add it to the corpus.

mod bridge;
mod chunked;
mod damage;
mod forms;
mod heads;
mod openid;
mod pasted;
mod seeds;

use std::{cell::Cell, env, fmt, ops::RangeInclusive};

use fuzz::Target;
use proptest::{
    prelude::*,
    test_runner::{Config, RngSeed, TestRunner},
};

/// A generator of inputs. Boxed, so that backtraces have short type names.
type Inputs = BoxedStrategy<Vec<u8>>;

/// Runs the target on this number of inputs. The percentage of valid inputs must be in `percent`: a generator of almost
/// only valid or only invalid inputs compares little.
fn check(target: Target, inputs: Inputs, cases: u32, percent: RangeInclusive<u32>) {
    let defaults = Config::default();
    let config = Config {
        cases: if env::var_os("PROPTEST_CASES").is_some() {
            defaults.cases
        } else {
            cases
        },
        rng_seed: match defaults.rng_seed {
            RngSeed::Random => RngSeed::Fixed(1),
            fixed => fixed,
        },
        failure_persistence: None,
        ..defaults
    };
    let cases = config.cases;
    let valid = Cell::new(0);
    let run = TestRunner::new(config).run(&inputs.prop_map(Input), |input| {
        valid.set(valid.get() + u32::from(target(&input.0)));
        Ok(())
    });
    if let Err(error) = run {
        panic!("{error}");
    }
    let valid = valid.get() * 100 / cases;
    assert!(
        percent.contains(&valid),
        "{valid} % of the inputs are valid"
    );
}

/// An input that a failure shows as text.
struct Input(Vec<u8>);

impl fmt::Debug for Input {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{}\"", self.0.escape_ascii())
    }
}

/// Generates bytes that match this regular expression.
fn text(expression: &str) -> Inputs {
    let strategy = proptest::string::bytes_regex(expression);
    strategy.expect("the expression is valid").boxed()
}
