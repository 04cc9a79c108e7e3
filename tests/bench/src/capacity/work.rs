//! What is measured, a step each: a login, a check, an event, a look-up.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::Context;
use clap::ValueEnum;
use serde::Serialize;

use super::{
    caller::Caller,
    login::{self, Visitor},
    people::{People, person},
};
use crate::load::{client::Client, workers::Worker};

/// Neighbours in turn are no neighbours in a table: prime to every number of rows here.
const STRIDE: usize = 7919;

/// Logins that wait for their person, in all: each checks in turn.
const PENDING: usize = 1000;

/// What an event carries beside its name.
const EVENT: &str =
    "event=order.placed&data=%7B%22order%22%3A%222026-000017%22%2C%22amount%22%3A1999%7D";

/// Something that clients do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// A whole polling login of somebody who has an account.
    Login,
    /// `/check` of a pending login.
    Check,
    /// `/event/send` by somebody who is logged in.
    Event,
}

impl Operation {
    /// All of them. Logins come before the checks: those leave logins behind that are pending, and are counted.
    pub const ALL: [Self; 3] = [Self::Login, Self::Check, Self::Event];

    /// What tables call it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Login => "logins",
            Self::Check => "`/check`",
            Self::Event => "`/event/send`",
        }
    }
}

/// What all workers of a kind share.
#[derive(Clone)]
pub struct Place {
    /// Where the gateway is.
    pub gateway: SocketAddr,
    /// Where the provider is.
    pub provider: SocketAddr,
    /// The application.
    pub caller: Caller,
    /// Who there is.
    pub people: Arc<People>,
}

/// So many workers of an operation, ready to begin.
///
/// # Errors
///
/// The logins that are to be checked do not begin.
pub fn workers(
    operation: Operation,
    count: usize,
    place: &Place,
) -> anyhow::Result<Vec<Box<dyn Worker>>> {
    let turn = Arc::new(AtomicUsize::new(0));
    let worker = |_| -> anyhow::Result<Box<dyn Worker>> {
        let (place, turn) = (place.clone(), Arc::clone(&turn));
        Ok(match operation {
            Operation::Login => Box::new(LogIn {
                visitor: Visitor::new(place.gateway, place.provider),
                place,
                turn,
            }),
            Operation::Check => Box::new(Check::begin(place, PENDING.div_ceil(count))?),
            Operation::Event => Box::new(SendEvent {
                client: Client::new(place.gateway),
                place,
                turn,
            }),
        })
    };
    (0..count).map(worker).collect()
}

struct LogIn {
    visitor: Visitor,
    place: Place,
    turn: Arc<AtomicUsize>,
}

impl Worker for LogIn {
    fn step(&mut self) -> anyhow::Result<bool> {
        let turn = self.turn.fetch_add(STRIDE, Ordering::Relaxed);
        let number = turn % self.place.people.accounts;
        self.visitor.log_in(&self.place.caller, &person(number))?;
        Ok(true)
    }
}

struct Check {
    client: Client,
    caller: Caller,
    tokens: Vec<String>,
    next: usize,
}

impl Check {
    fn begin(place: Place, count: usize) -> anyhow::Result<Self> {
        let mut client = Client::new(place.gateway);
        let begin = |_| Ok(login::begin(&mut client, &place.caller)?.token);
        let tokens = (0..count).map(begin).collect::<anyhow::Result<_>>()?;
        Ok(Self {
            client,
            caller: place.caller,
            tokens,
            next: 0,
        })
    }
}

impl Worker for Check {
    fn step(&mut self) -> anyhow::Result<bool> {
        let token = &self.tokens[self.next % self.tokens.len()];
        self.next += 1;
        login::check_pending(&mut self.client, &self.caller, token)?;
        Ok(true)
    }
}

struct SendEvent {
    client: Client,
    place: Place,
    turn: Arc<AtomicUsize>,
}

impl Worker for SendEvent {
    fn step(&mut self) -> anyhow::Result<bool> {
        let credentials = &self.place.people.credentials;
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let credential = &credentials[turn % credentials.len()];
        let headers = format!("Acme-X-Authorization: {credential}\r\n");
        let request = self.place.caller.post("/event/send", EVENT, &headers);
        let answer = self.client.exchange(&request)?;
        answer.expect(200).context("/event/send")?;
        Ok(true)
    }
}

/// Sends so many signed requests, each application's in turn, which the gateway has to look up.
pub struct LookUp {
    client: Client,
    callers: Arc<Vec<Caller>>,
    turn: Arc<AtomicUsize>,
    count: usize,
}

impl LookUp {
    /// So many workers that share so many requests.
    pub fn workers(
        workers: usize,
        gateway: SocketAddr,
        callers: Vec<Caller>,
        count: usize,
    ) -> Vec<Box<dyn Worker>> {
        let (callers, turn) = (Arc::new(callers), Arc::new(AtomicUsize::new(0)));
        let worker = |_| -> Box<dyn Worker> {
            Box::new(Self {
                client: Client::new(gateway),
                callers: Arc::clone(&callers),
                turn: Arc::clone(&turn),
                count,
            })
        };
        (0..workers).map(worker).collect()
    }
}

impl Worker for LookUp {
    fn step(&mut self) -> anyhow::Result<bool> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        if turn >= self.count {
            return Ok(false);
        }
        let caller = &self.callers[turn % self.callers.len()];
        // Nobody is logged in: that it says so shows that the gateway has verified and forwarded it.
        let request = caller.post("/event/send", EVENT, "");
        self.client.exchange(&request)?.expect(401)?;
        Ok(true)
    }
}
