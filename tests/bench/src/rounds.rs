//! The interleaved rounds: processor time, throughput and latency.

use std::time::Duration;

use anyhow::Context;
use hdrhistogram::Histogram;
use serde::{Serialize, Serializer};

use crate::{
    case::Case,
    contestant::Contestant,
    fleet::{Fleet, Target},
    load::{Load, Until},
    progress::print_line,
    requests::Requests,
};

/// How much is measured.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Effort {
    /// Number of rounds.
    pub rounds: usize,
    /// Approximate duration of a closed loop.
    #[serde(serialize_with = "seconds")]
    pub closed: Duration,
    /// Duration of the requests at a fixed rate.
    #[serde(serialize_with = "seconds")]
    pub open: Duration,
    /// Duration of the trial that finds how many requests a closed loop serves.
    #[serde(serialize_with = "seconds")]
    pub calibration: Duration,
    /// Requests counted by callgrind.
    pub counted: u64,
    /// Numbers of idle connections at which memory is measured.
    pub idle: [usize; 2],
    /// Distance between the rates of the ramp, in per cent of the load.
    pub ramp_step: u64,
}

fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

impl Effort {
    /// For figures to publish.
    pub const fn full(rounds: usize) -> Self {
        Self {
            rounds,
            closed: Duration::from_millis(2000),
            open: Duration::from_millis(1000),
            calibration: Duration::from_millis(500),
            counted: 2000,
            idle: [1000, 10_000],
            ramp_step: 10,
        }
    }

    /// Just enough to check that everything works.
    pub const fn quick(rounds: usize) -> Self {
        Self {
            rounds,
            closed: Duration::from_millis(200),
            open: Duration::from_millis(200),
            calibration: Duration::from_millis(100),
            counted: 500,
            idle: [100, 1000],
            ramp_step: 50,
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
    /// Requests in each closed loop.
    pub requests: u64,
    /// Requests a second at the fixed rate.
    pub rate: u64,
    /// The results, round by round.
    pub samples: Vec<Sample>,
}

/// The results of one round.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sample {
    /// Microseconds of processor time per request, in a closed loop.
    pub cpu_us: f64,
    /// Requests a second in a closed loop.
    pub a_second: f64,
    /// Median latency at the fixed rate, in microseconds.
    pub p50_us: f64,
    /// 99th percentile of the latency at the fixed rate, in microseconds.
    pub p99_us: f64,
}

impl Series {
    /// The median of a figure over the rounds.
    pub fn median(&self, figure: impl Fn(&Sample) -> f64) -> f64 {
        median(self.samples.iter().map(figure).collect())
    }
}

/// The median; of an even number of figures, the mean of the two in the middle.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => figures[middle],
        _ => f64::midpoint(figures[middle - 1], figures[middle]),
    }
}

/// Measures all rounds. Each runs all cases, and in each case all contestants; each round starts with another
/// contestant.
///
/// # Errors
///
/// When a response is not as expected.
pub fn measure(
    fleet: &Fleet,
    contestants: &[Contestant],
    cases: &[Case],
    effort: &Effort,
) -> anyhow::Result<Vec<Series>> {
    let mut all = Vec::new();
    for &case in cases {
        print_line(&format!("calibrating {case}: {}", case.title()))?;
        all.extend(calibrate(fleet, contestants, case, effort)?);
    }
    for round in 0..effort.rounds {
        print_line(&format!("round {} of {}", round + 1, effort.rounds))?;
        for &case in cases {
            let mut series: Vec<_> = all
                .iter_mut()
                .filter(|series| series.case == case)
                .collect();
            let first = round % series.len().max(1);
            series.rotate_left(first);
            for series in series {
                let target = fleet.target(series.contestant, case);
                let sample = sample(fleet, target, series, effort).with_context(|| {
                    format!("{} in {case} ({})", series.contestant.title(), case.title())
                })?;
                series.samples.push(sample);
            }
        }
    }
    Ok(all)
}

/// Finds how many requests each closed loop needs, and the fixed rate that every contestant can serve: half of the
/// slowest one's throughput.
///
/// # Errors
///
/// When a response is not as expected.
pub(crate) fn calibrate(
    fleet: &Fleet,
    contestants: &[Contestant],
    case: Case,
    effort: &Effort,
) -> anyhow::Result<Vec<Series>> {
    let mut all = Vec::new();
    let mut slowest = f64::INFINITY;
    for &contestant in contestants
        .iter()
        .filter(|contestant| contestant.takes_part_in(case))
    {
        let target = fleet.target(contestant, case);
        // More than any contestant serves in that time.
        let max_requests = (effort.calibration.as_secs_f64() * 200_000.0) as u64;
        let requests = Requests::new(case, case.warm_up() + max_requests, &fleet.keys)?;
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

/// Rounds down to two significant digits.
fn round_down(rate: f64) -> u64 {
    let unit = 10_f64.powf((rate.max(10.0).log10() - 1.0).floor());
    ((rate / unit).floor() * unit) as u64
}

fn sample(
    fleet: &Fleet,
    target: Target<'_>,
    series: &Series,
    effort: &Effort,
) -> anyhow::Result<Sample> {
    let case = series.case;
    let at_rate = (series.rate as f64 * effort.open.as_secs_f64()) as u64;
    // Signed now, so that their time is current.
    let all = case.warm_up() + series.requests + at_rate;
    let requests = Requests::new(case, all, &fleet.keys)?;
    let mut load = Load::new(target.address, case.connections(), &requests)?;
    load.closed(Until::Requests(case.warm_up()))?;
    let before = target.process.cpu_time()?;
    let served = load.closed(Until::Requests(series.requests))?;
    let used = target.process.cpu_time()?.saturating_sub(before);
    let latencies = load.open(at_rate, series.rate)?;
    Ok(Sample {
        cpu_us: used.as_secs_f64() * 1e6 / served.requests as f64,
        a_second: served.requests as f64 / served.elapsed.as_secs_f64(),
        p50_us: quantile(&latencies, 0.5),
        p99_us: quantile(&latencies, 0.99),
    })
}

/// A quantile of latencies in nanoseconds, in microseconds.
pub(crate) fn quantile(latencies: &Histogram<u64>, quantile: f64) -> f64 {
    latencies.value_at_quantile(quantile) as f64 / 1000.0
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
