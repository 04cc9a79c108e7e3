//! The interleaved rounds: processor time, throughput and latency.

use std::time::Duration;

use anyhow::Context;
use serde::{Serialize, Serializer};

use crate::{
    case::Case,
    contestant::Contestant,
    field::{Field, Target},
    load::{Load, Until},
    progress::say,
    requests::Requests,
};

/// How much is measured.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Effort {
    /// Rounds.
    pub rounds: usize,
    /// About how long a closed loop takes.
    #[serde(serialize_with = "seconds")]
    pub closed: Duration,
    /// How long requests are sent at a fixed rate.
    #[serde(serialize_with = "seconds")]
    pub open: Duration,
    /// How long is tried how many requests a closed loop serves.
    #[serde(serialize_with = "seconds")]
    pub calibration: Duration,
    /// Requests that callgrind counts.
    pub counted: u64,
    /// Idle connections for which memory is looked at.
    pub idle: [usize; 2],
}

fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

impl Effort {
    /// What figures to publish are made of.
    pub const fn full(rounds: usize) -> Self {
        Self {
            rounds,
            closed: Duration::from_millis(2000),
            open: Duration::from_millis(1000),
            calibration: Duration::from_millis(500),
            counted: 2000,
            idle: [1000, 10_000],
        }
    }

    /// Enough to see that everything works.
    pub const fn quick(rounds: usize) -> Self {
        Self {
            rounds,
            closed: Duration::from_millis(200),
            open: Duration::from_millis(200),
            calibration: Duration::from_millis(100),
            counted: 500,
            idle: [100, 1000],
        }
    }
}

/// One contestant's rounds of one case.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// The case.
    pub case: Case,
    /// The contestant.
    pub contestant: Contestant,
    /// Requests of each closed loop.
    pub requests: u64,
    /// Requests a second at the fixed rate.
    pub rate: u64,
    /// What came out, round by round.
    pub samples: Vec<Sample>,
}

/// What one round gave.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sample {
    /// Microseconds on a processor for each request, in a closed loop.
    pub cpu_us: f64,
    /// Requests a second in a closed loop.
    pub a_second: f64,
    /// Half of the requests at the fixed rate took at most so long, in microseconds.
    pub p50_us: f64,
    /// 99 in 100 of them took at most so long.
    pub p99_us: f64,
}

impl Series {
    /// The median of a figure over the rounds.
    pub fn median(&self, figure: impl Fn(&Sample) -> f64) -> f64 {
        median(self.samples.iter().map(figure).collect())
    }
}

/// The middle one; of an even number, the mean of the two in the middle.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => figures[middle],
        _ => f64::midpoint(figures[middle - 1], figures[middle]),
    }
}

/// Measures all rounds: each goes through the cases, and in each case through the contestants, every round
/// beginning with another one.
///
/// # Errors
///
/// An answer is not as it should be.
pub fn measure(
    field: &Field,
    contestants: &[Contestant],
    cases: &[Case],
    effort: &Effort,
) -> anyhow::Result<Vec<Series>> {
    let mut all = Vec::new();
    for &case in cases {
        say(&format!("calibrating {case}: {}", case.title()))?;
        all.extend(calibrate(field, contestants, case, effort)?);
    }
    for round in 0..effort.rounds {
        say(&format!("round {} of {}", round + 1, effort.rounds))?;
        for &case in cases {
            let mut series: Vec<_> = all
                .iter_mut()
                .filter(|series| series.case == case)
                .collect();
            let first = round % series.len().max(1);
            series.rotate_left(first);
            for series in series {
                let target = field.target(series.contestant, case);
                let sample = sample(field, target, series, effort).with_context(|| {
                    format!("{} in {case} ({})", series.contestant.title(), case.title())
                })?;
                series.samples.push(sample);
            }
        }
    }
    Ok(all)
}

/// Finds out how many requests take about as long as wanted, and the rate that everybody can serve: half of what
/// the slowest does.
fn calibrate(
    field: &Field,
    contestants: &[Contestant],
    case: Case,
    effort: &Effort,
) -> anyhow::Result<Vec<Series>> {
    let mut all = Vec::new();
    let mut slowest = f64::INFINITY;
    for &contestant in contestants
        .iter()
        .filter(|contestant| contestant.does(case))
    {
        let target = field.target(contestant, case);
        // More than any serves in that time.
        let most = (effort.calibration.as_secs_f64() * 200_000.0) as u64;
        let requests = Requests::new(case, case.warm_up() + most, &field.keys);
        let mut load = Load::new(target.address, case.connections(), &requests)?;
        let trial = load
            .closed(Until::Requests(case.warm_up()))
            .and_then(|_| load.closed(Until::Time(effort.calibration)));
        let served = trial.with_context(|| format!("{} in {case}", contestant.title()))?;
        let a_second = served.requests as f64 / served.elapsed.as_secs_f64();
        if contestant.is_proxy() {
            slowest = slowest.min(a_second);
        }
        all.push(Series {
            case,
            contestant,
            requests: (a_second * effort.closed.as_secs_f64()) as u64,
            rate: 0,
            samples: Vec::new(),
        });
    }
    for series in &mut all {
        let alone = series.requests as f64 / effort.closed.as_secs_f64();
        let half = slowest.min(alone) / 2.0;
        series.rate = round_down(half).max(1);
    }
    Ok(all)
}

/// To two digits.
fn round_down(rate: f64) -> u64 {
    let unit = 10_f64.powf((rate.max(10.0).log10() - 1.0).floor());
    ((rate / unit).floor() * unit) as u64
}

fn sample(
    field: &Field,
    target: Target<'_>,
    series: &Series,
    effort: &Effort,
) -> anyhow::Result<Sample> {
    let case = series.case;
    let at_rate = (series.rate as f64 * effort.open.as_secs_f64()) as u64;
    // Signed now, so that their time is current.
    let all = case.warm_up() + series.requests + at_rate;
    let requests = Requests::new(case, all, &field.keys);
    let mut load = Load::new(target.address, case.connections(), &requests)?;
    load.closed(Until::Requests(case.warm_up()))?;
    let before = target.process.cpu_time()?;
    let served = load.closed(Until::Requests(series.requests))?;
    let used = target.process.cpu_time()?.saturating_sub(before);
    let latencies = load.open(at_rate, series.rate)?;
    let quantile = |quantile| latencies.value_at_quantile(quantile) as f64 / 1000.0;
    Ok(Sample {
        cpu_us: used.as_secs_f64() * 1e6 / served.requests as f64,
        a_second: served.requests as f64 / served.elapsed.as_secs_f64(),
        p50_us: quantile(0.5),
        p99_us: quantile(0.99),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn a_rate_is_rounded_down_to_two_digits() {
        for (rate, rounded) in [(12_987.0, 12_000), (999.0, 990), (10.0, 10), (7.9, 7)] {
            assert_eq!(round_down(rate), rounded);
        }
    }
}
