//! Concurrent workers, a thread each. Each continues as soon as it has its response.

use std::{
    sync::atomic::{AtomicU8, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::anyhow;
use hdrhistogram::Histogram;
use serde::Serialize;

use super::latencies;
use crate::usage::{Usage, Watched};

/// One of several concurrent workers.
pub trait Worker: Send {
    /// Does one step; returns `false` when nothing is left to do.
    ///
    /// # Errors
    ///
    /// When a response is not as expected.
    fn step(&mut self) -> anyhow::Result<bool>;
}

/// Phase: steps do not count yet.
const WARMING_UP: u8 = 0;
/// Phase: steps that end now count.
const MEASURING: u8 = 1;
/// Phase: every worker stops after its current step.
const STOPPING: u8 = 2;

/// The end of a load.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After a time; the warm-up before it does not count.
    Time {
        /// Duration of the warm-up.
        warm_up: Duration,
        /// Duration of the measurement.
        measured: Duration,
    },
    /// When nothing is left to do; every step counts.
    Done,
}

/// The result of a load.
#[derive(Clone, Debug, Serialize)]
pub struct Served {
    /// Completed steps.
    pub steps: u64,
    /// Duration in seconds.
    pub seconds: f64,
    /// Median latency of a step.
    pub p50_ms: f64,
    /// 99th percentile of the latency of a step.
    pub p99_ms: f64,
    /// Processor time by process.
    pub cpu: Vec<Usage>,
}

impl Served {
    /// Steps a second.
    pub fn a_second(&self) -> f64 {
        self.steps as f64 / self.seconds
    }

    /// Number of processors that all watched processes kept busy.
    pub fn processors(&self) -> f64 {
        let seconds: f64 = self.cpu.iter().map(|usage| usage.seconds).sum();
        seconds / self.seconds
    }
}

/// Runs all workers concurrently.
///
/// # Errors
///
/// When a step fails: figures that include errors mean nothing.
pub fn run(
    workers: Vec<Box<dyn Worker>>,
    until: Until,
    watched: &Watched,
) -> anyhow::Result<Served> {
    let phase = AtomicU8::new(match until {
        Until::Time { .. } => WARMING_UP,
        Until::Done => MEASURING,
    });
    thread::scope(|scope| {
        let phase = &phase;
        let window = Window::open(watched);
        let threads: Vec<_> = workers
            .into_iter()
            .map(|worker| scope.spawn(move || work(worker, phase)))
            .collect();
        // No early return before the phase is STOPPING: the scope would wait for the threads forever.
        let closed = if let Until::Time { warm_up, measured } = until {
            thread::sleep(warm_up);
            let window = Window::open(watched);
            phase.store(MEASURING, Ordering::Release);
            thread::sleep(measured);
            phase.store(STOPPING, Ordering::Release);
            Some(window.close(watched))
        } else {
            None
        };
        let mut all = latencies()?;
        for thread in threads {
            let of_one = thread.join().map_err(|_| anyhow!("a worker panicked"))??;
            all.add(&of_one)?;
        }
        let (seconds, cpu) = closed.unwrap_or_else(|| window.close(watched))?;
        let milliseconds = |quantile| all.value_at_quantile(quantile) as f64 / 1000.0;
        Ok(Served {
            steps: all.len(),
            seconds,
            p50_ms: milliseconds(0.5),
            p99_ms: milliseconds(0.99),
            cpu,
        })
    })
}

/// Runs a worker, and returns the latencies of the steps that count, in microseconds.
fn work(mut worker: Box<dyn Worker>, phase: &AtomicU8) -> anyhow::Result<Histogram<u64>> {
    let mut latencies = latencies()?;
    while phase.load(Ordering::Acquire) != STOPPING {
        let since = Instant::now();
        if !worker.step()? {
            break;
        }
        if phase.load(Ordering::Acquire) == MEASURING {
            latencies.record(u64::try_from(since.elapsed().as_micros())?)?;
        }
    }
    Ok(latencies)
}

/// A time window, and the processor time used before it.
struct Window {
    started: Instant,
    before: anyhow::Result<Vec<Usage>>,
}

impl Window {
    fn open(watched: &Watched) -> Self {
        let before = watched.look();
        Self {
            started: Instant::now(),
            before,
        }
    }

    /// Returns its length in seconds, and the processor time used in it.
    fn close(self, watched: &Watched) -> anyhow::Result<(f64, Vec<Usage>)> {
        let seconds = self.started.elapsed().as_secs_f64();
        let mut used = watched.look()?;
        for (used, before) in used.iter_mut().zip(self.before?) {
            used.seconds = (used.seconds - before.seconds).max(0.0);
        }
        Ok((seconds, used))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sleeper {
        left: usize,
        fails: bool,
    }

    impl Worker for Sleeper {
        fn step(&mut self) -> anyhow::Result<bool> {
            if self.left == 0 {
                anyhow::ensure!(!self.fails, "on purpose");
                return Ok(false);
            }
            self.left -= 1;
            thread::sleep(Duration::from_millis(2));
            Ok(true)
        }
    }

    fn sleepers(left: usize, fails: bool) -> Vec<Box<dyn Worker>> {
        let sleeper = |_| -> Box<dyn Worker> { Box::new(Sleeper { left, fails }) };
        (0..4).map(sleeper).collect()
    }

    #[test]
    fn without_a_time_every_step_counts() {
        let served = run(sleepers(5, false), Until::Done, &Watched::default()).unwrap();
        assert_eq!(served.steps, 20);
        assert!((2.0..1000.0).contains(&served.p50_ms) && served.p99_ms >= served.p50_ms);
    }

    #[test]
    fn steps_of_the_warm_up_do_not_count() {
        let until = Until::Time {
            warm_up: Duration::from_millis(60),
            measured: Duration::from_millis(60),
        };
        let served = run(sleepers(100_000, false), until, &Watched::default()).unwrap();
        // 4 workers, at least 2 ms for each step, and one step each that was started before.
        let most = 4.0 * (served.seconds / 0.002 + 1.0);
        assert!(
            served.steps >= 1 && served.steps as f64 <= most,
            "{} of {most}",
            served.steps
        );
        assert!(served.seconds >= 0.06);
    }

    #[test]
    fn a_failed_worker_fails_the_run() {
        let failed = run(sleepers(1, true), Until::Done, &Watched::default());
        assert!(failed.unwrap_err().to_string().contains("on purpose"));
    }
}
