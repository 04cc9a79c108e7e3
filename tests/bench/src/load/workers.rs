//! Many workers at once, a thread each: each goes on as soon as it is answered.

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

/// One of many that do the same at the same time.
pub trait Worker: Send {
    /// Does it once; `false` when there is nothing left to do.
    ///
    /// # Errors
    ///
    /// An answer is not as it should be.
    fn step(&mut self) -> anyhow::Result<bool>;
}

/// What is done does not count yet.
const WARMING_UP: u8 = 0;
/// What comes to its end now counts.
const MEASURING: u8 = 1;
/// Everybody stops after the step that is under way.
const OVER: u8 = 2;

/// How long a load lasts.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// For a time, and nothing counts before that.
    Time {
        /// Before anything counts.
        warm_up: Duration,
        /// What counts.
        measured: Duration,
    },
    /// Until there is nothing left to do; everything counts.
    Done,
}

/// What a load did.
#[derive(Clone, Debug, Serialize)]
pub struct Served {
    /// Steps that came to their end, as they should.
    pub steps: u64,
    /// How long that took.
    pub seconds: f64,
    /// Half of the steps took at most so long.
    pub p50_ms: f64,
    /// 99 in 100 of them took at most so long.
    pub p99_ms: f64,
    /// Processor time by process.
    pub cpu: Vec<Usage>,
}

impl Served {
    /// Steps a second.
    pub fn a_second(&self) -> f64 {
        self.steps as f64 / self.seconds
    }

    /// How many processors all that is watched kept busy.
    pub fn processors(&self) -> f64 {
        let seconds: f64 = self.cpu.iter().map(|usage| usage.seconds).sum();
        seconds / self.seconds
    }
}

/// Lets all workers work at the same time.
///
/// # Errors
///
/// A step failed: figures with errors among them would mean nothing.
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
        // No early return before the threads are told to stop: the scope would wait for them.
        let closed = if let Until::Time { warm_up, measured } = until {
            thread::sleep(warm_up);
            let window = Window::open(watched);
            phase.store(MEASURING, Ordering::Release);
            thread::sleep(measured);
            phase.store(OVER, Ordering::Release);
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

/// Gives the latencies, in microseconds, of what counts.
fn work(mut worker: Box<dyn Worker>, phase: &AtomicU8) -> anyhow::Result<Histogram<u64>> {
    let mut latencies = latencies()?;
    while phase.load(Ordering::Acquire) != OVER {
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

/// A stretch of time, and what the processes had used before.
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

    /// Its length in seconds, and what was used in it.
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
    fn all_that_there_is_to_do_counts() {
        let served = run(sleepers(5, false), Until::Done, &Watched::default()).unwrap();
        assert_eq!(served.steps, 20);
        assert!((2.0..1000.0).contains(&served.p50_ms) && served.p99_ms >= served.p50_ms);
    }

    #[test]
    fn what_a_warm_up_does_does_not_count() {
        let until = Until::Time {
            warm_up: Duration::from_millis(60),
            measured: Duration::from_millis(60),
        };
        let served = run(sleepers(100_000, false), until, &Watched::default()).unwrap();
        // 4 workers, 2 ms each at least, and one step each that began before.
        assert!((1..=124).contains(&served.steps), "{}", served.steps);
        assert!(served.seconds >= 0.06);
    }

    #[test]
    fn one_that_fails_fails_all() {
        let failed = run(sleepers(1, true), Until::Done, &Watched::default());
        assert!(failed.unwrap_err().to_string().contains("on purpose"));
    }
}
