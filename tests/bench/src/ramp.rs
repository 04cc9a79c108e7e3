//! The ramp: each contestant at 10 to 100 % of what the best of them serves, request by request when it is due.

use std::time::Instant;

use anyhow::Context;
use serde::Serialize;

use crate::{
    case::Case,
    contestant::Contestant,
    fleet::Fleet,
    load::{Load, Until},
    progress::print_line,
    requests::Requests,
    rounds::{Effort, Sample, Series, calibrate, quantile},
};

/// One contestant at one rate.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// The rate, in per cent of the highest throughput of any contestant in a closed loop.
    pub percent: u64,
    /// The rounds. Of each sample, `a_second` is the served rate.
    #[serde(flatten)]
    pub series: Series,
}

/// The contestants of the ramp.
pub const CONTESTANTS: [Contestant; 3] = [
    Contestant::NginxMap,
    Contestant::HaproxyMap,
    Contestant::Signpost,
];

/// The cases of the ramp, if none is named.
pub const CASES: [Case; 2] = [Case::W1, Case::W2];

/// Measures all steps. Each round runs all rates, from the lowest to the highest, and at each rate all contestants.
///
/// # Errors
///
/// When a response is not as expected.
pub fn measure(
    fleet: &Fleet,
    contestants: &[Contestant],
    cases: &[Case],
    effort: &Effort,
) -> anyhow::Result<Vec<Step>> {
    let mut steps = Vec::new();
    for &case in cases {
        let all = calibrate(fleet, contestants, case, effort)?;
        let best = all.iter().map(|series| series.requests).max().unwrap_or(0);
        for percent in (1..=100 / effort.ramp_step).map(|step| step * effort.ramp_step) {
            let rate = best as f64 / effort.closed.as_secs_f64() * percent as f64 / 100.0;
            let rate = (rate as u64).max(1);
            let requests = (rate as f64 * effort.open.as_secs_f64()) as u64;
            steps.extend(all.iter().map(|series| Step {
                percent,
                series: Series {
                    rate,
                    requests,
                    ..series.clone()
                },
            }));
        }
    }
    for round in 0..effort.rounds {
        print_line(&format!("ramp, round {} of {}", round + 1, effort.rounds))?;
        for Step { percent, series } in &mut steps {
            let sampled = sample(fleet, series);
            let sample = sampled.with_context(|| {
                format!(
                    "{} in {} at {percent} %",
                    series.contestant.title(),
                    series.case
                )
            })?;
            series.samples.push(sample);
        }
    }
    Ok(steps)
}

fn sample(fleet: &Fleet, series: &Series) -> anyhow::Result<Sample> {
    let (case, target) = (series.case, fleet.target(series.contestant, series.case));
    let requests = Requests::new(case, case.warm_up() + series.requests, &fleet.keys)?;
    let mut load = Load::new(target.address, case.connections(), &requests)?;
    load.closed(Until::Requests(case.warm_up()))?;
    let (started, before) = (Instant::now(), target.process.cpu_time()?);
    let latencies = load.open(series.requests, series.rate)?;
    let (elapsed, after) = (started.elapsed(), target.process.cpu_time()?);
    let served = series.requests as f64;
    Ok(Sample {
        cpu_us: after.saturating_sub(before).as_secs_f64() * 1e6 / served,
        a_second: served / elapsed.as_secs_f64(),
        p50_us: quantile(&latencies, 0.5),
        p99_us: quantile(&latencies, 0.99),
    })
}
