//! The backend and all contestants of a run, started and proven.

use std::{collections::BTreeMap, net::SocketAddr};

use crate::{
    case::Case,
    contestant::{Backend, Contestant, Environment, Running, Setup},
    keys::Keys,
    process::{Process, RunMode},
    proof::prove,
};

/// The running backend and contestants.
#[derive(Debug)]
pub struct Fleet {
    /// The keys that sign the requests.
    pub keys: Keys,
    /// The backend of all contestants.
    pub backend: Backend,
    running: BTreeMap<(Contestant, Setup), Running>,
}

/// The target of a load.
#[derive(Clone, Copy, Debug)]
pub struct Target<'f> {
    /// The address it listens on.
    pub address: SocketAddr,
    /// The process whose processor time counts.
    pub process: &'f Process,
}

impl Fleet {
    /// Starts the backend, without contestants.
    ///
    /// # Errors
    ///
    /// When it does not start.
    pub fn new(environment: &Environment) -> anyhow::Result<Self> {
        Ok(Self {
            keys: Keys::generate()?,
            backend: Backend::start(environment)?,
            running: BTreeMap::new(),
        })
    }

    /// Starts and proves the contestants, in each set-up that these cases need.
    ///
    /// # Errors
    ///
    /// When one does not start, or does not do the work.
    pub fn start_all(
        &mut self,
        environment: &Environment,
        contestants: &[Contestant],
        cases: &[Case],
    ) -> anyhow::Result<()> {
        for &contestant in contestants {
            for &case in cases {
                let setup = contestant.setup(case.setup());
                let is_running = self.running.contains_key(&(contestant, setup));
                if is_running || !contestant.is_proxy() || !contestant.takes_part_in(case) {
                    continue;
                }
                let running = self.start(environment, contestant, setup, environment.run_mode())?;
                self.running.insert((contestant, setup), running);
            }
        }
        Ok(())
    }

    /// Starts and proves one contestant, which is not part of the fleet.
    ///
    /// # Errors
    ///
    /// When it does not start, or does not do the work.
    pub fn start(
        &self,
        environment: &Environment,
        contestant: Contestant,
        setup: Setup,
        run_mode: RunMode,
    ) -> anyhow::Result<Running> {
        let (keys, backend) = (&self.keys, &self.backend);
        let running = Running::start(contestant, setup, environment, keys, backend, run_mode)?;
        prove(&running, keys)?;
        Ok(running)
    }

    /// The target of a contestant's load in a case.
    ///
    /// # Panics
    ///
    /// When it was not started for the case.
    pub fn target(&self, contestant: Contestant, case: Case) -> Target<'_> {
        if !contestant.is_proxy() {
            return Target {
                address: self.backend.v1,
                process: &self.backend.process,
            };
        }
        let running = &self.running[&(contestant, contestant.setup(case.setup()))];
        Target {
            address: running.address,
            process: &running.process,
        }
    }

    /// Stops all contestants, as an operator would.
    ///
    /// # Errors
    ///
    /// When one does not exit.
    pub fn stop_all(self) -> anyhow::Result<()> {
        for running in self.running.into_values() {
            running.process.end()?;
        }
        Ok(())
    }
}
