//! The workers: a login, a check, an event or a lookup in each step.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::Context;
use clap::ValueEnum;
use serde::Serialize;

use super::{
    caller::Caller,
    login::{self, Login, Step, Visitor},
    people::{People, person},
};
use crate::load::{client::Client, workers::Worker};

/// Distance of consecutive logins in the table of accounts, so that they are not neighbours. Coprime to all row counts.
const STRIDE: usize = 7919;

/// Number of pending logins, which are checked in turn.
const PENDING: usize = 1000;

/// The signed parameters of an event.
const EVENT: &str =
    "event=order.placed&data=%7B%22order%22%3A%222026-000017%22%2C%22amount%22%3A1999%7D";

/// A measured operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// A whole polling login of a person who has an account.
    Login,
    /// `/check` of a pending login.
    Check,
    /// `/event/send` of a logged-in person.
    Event,
}

impl Operation {
    /// All operations. Logins come before checks, which leave pending logins behind: those are counted.
    pub const ALL: [Self; 3] = [Self::Login, Self::Check, Self::Event];

    /// Its title in the tables.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Login => "logins",
            Self::Check => "`/check`",
            Self::Event => "`/event/send`",
        }
    }
}

/// The data that all workers share.
#[derive(Clone)]
pub struct Shared {
    /// The address of the gateway.
    pub gateway: SocketAddr,
    /// The address of the sandbox provider.
    pub provider: SocketAddr,
    /// The application.
    pub caller: Caller,
    /// The people who log in.
    pub people: Arc<People>,
}

/// Creates the workers of an operation.
///
/// # Errors
///
/// When the logins for the checks cannot be started.
pub fn workers(
    operation: Operation,
    count: usize,
    shared: &Shared,
) -> anyhow::Result<Vec<Box<dyn Worker>>> {
    let turn = Arc::new(AtomicUsize::new(0));
    let worker = |_| -> anyhow::Result<Box<dyn Worker>> {
        let (shared, turn) = (shared.clone(), Arc::clone(&turn));
        Ok(match operation {
            Operation::Login => Box::new(LogIn {
                visitor: Visitor::new(shared.gateway, shared.provider),
                shared,
                turn,
            }),
            Operation::Check => Box::new(Check::begin(shared, PENDING.div_ceil(count))?),
            Operation::Event => Box::new(SendEvent {
                client: Client::new(shared.gateway),
                shared,
                turn,
            }),
        })
    };
    (0..count).map(worker).collect()
}

struct LogIn {
    visitor: Visitor,
    shared: Shared,
    turn: Arc<AtomicUsize>,
}

impl Worker for LogIn {
    fn step(&mut self) -> anyhow::Result<bool> {
        let turn = self.turn.fetch_add(STRIDE, Ordering::Relaxed);
        let number = turn % self.shared.people.accounts;
        self.visitor.log_in(&self.shared.caller, person(number))?;
        Ok(true)
    }
}

/// Logins, each of which has taken the same steps.
#[derive(Clone, Default)]
pub struct Logins(Arc<Mutex<Vec<Login>>>);

impl Logins {
    /// So many logins that have not begun, of people who have an account.
    pub fn of(people: &People, count: usize) -> Self {
        let login = |turn| Login::of(person(turn * STRIDE % people.accounts));
        Self(Arc::new(Mutex::new((0..count).map(login).collect())))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Vec<Login>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Creates the workers that take one step of all logins, which are in `after` then.
pub fn steppers(
    step: Step,
    count: usize,
    shared: &Shared,
    (before, after): (&Logins, &Logins),
) -> Vec<Box<dyn Worker>> {
    let worker = |_| -> Box<dyn Worker> {
        Box::new(TakeStep {
            step,
            visitor: Visitor::new(shared.gateway, shared.provider),
            caller: shared.caller.clone(),
            before: before.clone(),
            after: after.clone(),
        })
    };
    (0..count).map(worker).collect()
}

struct TakeStep {
    step: Step,
    visitor: Visitor,
    caller: Caller,
    before: Logins,
    after: Logins,
}

impl Worker for TakeStep {
    fn step(&mut self) -> anyhow::Result<bool> {
        let Some(mut login) = self.before.with(Vec::pop) else {
            return Ok(false);
        };
        self.visitor.take(self.step, &self.caller, &mut login)?;
        self.after.with(|all| all.push(login));
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
    fn begin(shared: Shared, count: usize) -> anyhow::Result<Self> {
        let mut client = Client::new(shared.gateway);
        let begin = |_| Ok(login::begin(&mut client, &shared.caller)?.token);
        let tokens = (0..count).map(begin).collect::<anyhow::Result<_>>()?;
        Ok(Self {
            client,
            caller: shared.caller,
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
    shared: Shared,
    turn: Arc<AtomicUsize>,
}

impl Worker for SendEvent {
    fn step(&mut self) -> anyhow::Result<bool> {
        let credentials = &self.shared.people.credentials;
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let credential = &credentials[turn % credentials.len()];
        let headers = format!("Acme-X-Authorization: {credential}\r\n");
        let request = self.shared.caller.post("/event/send", EVENT, &headers);
        let response = self.client.exchange(&request)?;
        response.expect(200).context("/event/send")?;
        Ok(true)
    }
}

/// Sends signed requests of many applications in turn, which the gateway has to look up.
pub struct LookUp {
    client: Client,
    callers: Arc<Vec<Caller>>,
    turn: Arc<AtomicUsize>,
    count: usize,
}

impl LookUp {
    /// Creates workers that share `count` requests.
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
        // No credential is sent: the 401 of v1 shows that the gateway has verified and forwarded the request.
        let request = caller.post("/event/send", EVENT, "");
        self.client.exchange(&request)?.expect(401)?;
        Ok(true)
    }
}
