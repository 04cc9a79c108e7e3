//! The backend and every contestant that a run needs, started and proven.

use std::{collections::BTreeMap, net::SocketAddr};

use crate::{
    case::Case,
    contestant::{Backend, Contestant, Places, Running, Setup},
    keys::Keys,
    process::{Manner, Process},
    proof::prove,
};

/// All that run.
#[derive(Debug)]
pub struct Field {
    /// The keys that requests are signed with.
    pub keys: Keys,
    /// The backend of all.
    pub backend: Backend,
    running: BTreeMap<(Contestant, Setup), Running>,
}

/// What a load is sent to.
#[derive(Clone, Copy, Debug)]
pub struct Target<'f> {
    /// Where it listens.
    pub address: SocketAddr,
    /// Whose processor time counts.
    pub process: &'f Process,
}

impl Field {
    /// Starts the backend, without any contestant.
    ///
    /// # Errors
    ///
    /// It does not start.
    pub fn new(places: &Places) -> anyhow::Result<Self> {
        Ok(Self {
            keys: Keys::generate()?,
            backend: Backend::start(places)?,
            running: BTreeMap::new(),
        })
    }

    /// Starts and proves those who take part in some cases.
    ///
    /// # Errors
    ///
    /// One does not start, or does not do the work.
    pub fn enter(
        &mut self,
        places: &Places,
        contestants: &[Contestant],
        cases: &[Case],
    ) -> anyhow::Result<()> {
        for &contestant in contestants {
            for &case in cases {
                let setup = contestant.setup(case.setup());
                let is_there = self.running.contains_key(&(contestant, setup));
                if is_there || !contestant.is_proxy() || !contestant.does(case) {
                    continue;
                }
                let running = self.start(places, contestant, setup, places.manner())?;
                self.running.insert((contestant, setup), running);
            }
        }
        Ok(())
    }

    /// Starts and proves one contestant, which is not kept.
    ///
    /// # Errors
    ///
    /// It does not start, or does not do the work.
    pub fn start(
        &self,
        places: &Places,
        contestant: Contestant,
        setup: Setup,
        manner: Manner,
    ) -> anyhow::Result<Running> {
        let (keys, backend) = (&self.keys, &self.backend);
        let running = Running::start(contestant, setup, places, keys, backend, manner)?;
        prove(&running, keys)?;
        Ok(running)
    }

    /// Where a contestant's load of a case goes.
    ///
    /// # Panics
    ///
    /// When it was not entered for the case.
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

    /// Ends all contestants, as an operator would.
    ///
    /// # Errors
    ///
    /// One does not end.
    pub fn leave(self) -> anyhow::Result<()> {
        for running in self.running.into_values() {
            running.process.end()?;
        }
        Ok(())
    }
}
