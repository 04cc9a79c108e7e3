//! What a version or a route takes of requests: methods, bodies, and how it forwards a signature. CONTRACT 2 and 3.

use std::time::Duration;

use signpost_kit::config::{Read, Section};

use crate::request::{Method, Methods};

/// Default of `max_body`, in bytes.
const DEFAULT_BODY: u64 = 64 * 1024;
/// Maximum of `max_body`, in bytes.
const MAX_BODY: u64 = 1024 * 1024 * 1024;

/// What is taken of requests, and how they are forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestRules {
    /// The methods that are accepted.
    pub methods: Methods,
    /// The bodies that are accepted.
    pub bodies: Bodies,
    /// Limit of a body that is no form, in bytes.
    pub max_body: u64,
    /// Whether `time` and `sign` are taken out of the parameters.
    pub strip_sign: bool,
    /// For the head of a response; `None`: `timeouts.response_seconds`.
    pub response: Option<Duration>,
    /// For each further part of a response; `None`: the same.
    pub stream: Option<Duration>,
}

/// Kinds of bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bodies {
    /// Forms alone.
    Form,
    /// Forms and JSON.
    Json,
    /// All.
    Any,
}

impl RequestRules {
    /// Without a key.
    pub(crate) const USUAL: Self = Self {
        methods: Methods::USUAL,
        bodies: Bodies::Form,
        max_body: DEFAULT_BODY,
        strip_sign: false,
        response: None,
        stream: None,
    };

    /// Whether it takes nothing but what each version takes without a key.
    pub(super) fn takes_usual(&self) -> bool {
        (self.methods, self.bodies) == (Methods::USUAL, Bodies::Form)
    }
}

/// The keys of one table. Those that are absent are as in the table around it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OwnRules {
    methods: Option<Methods>,
    bodies: Option<Bodies>,
    max_body: Option<u64>,
    strip_sign: Option<bool>,
    response: Option<Duration>,
    stream: Option<Duration>,
}

impl OwnRules {
    pub(super) fn read(section: &mut Section<'_>, around: &RequestRules) -> Read<Self> {
        let names = Method::ALL.map(Method::as_str).join(", ");
        let usual = around.methods.to_string();
        let usual: Vec<_> = usual.split(", ").collect();
        let methods = section.list("methods", &usual, &names, |name| {
            Method::from_bytes(name.as_bytes())
        });
        let has_methods = section.has("methods");
        let choices = [
            ("form", Bodies::Form),
            ("json", Bodies::Json),
            ("any", Bodies::Any),
        ];
        let bodies = section.choice("bodies", &choices, around.bodies);
        let has = ["bodies", "max_body", "strip_sign"].map(|key| section.has(key));
        let max_body = section.number("max_body", 1..=MAX_BODY, around.max_body);
        let strip_sign = section.flag("strip_sign", around.strip_sign);
        let mut seconds = |key| {
            let seconds = section.optional_number(key, &(1..=86_400))?;
            Ok(seconds.map(Duration::from_secs))
        };
        let (response, stream) = (seconds("response_seconds"), seconds("stream_seconds"));
        let methods = methods?;
        if methods.is_empty() {
            return Err(section.problem("methods", "an empty list", &names));
        }
        if methods.contains(&Method::Head) && !methods.contains(&Method::Get) {
            return Err(section.problem("methods", "HEAD without GET", "HEAD beside GET"));
        }
        Ok(Self {
            methods: has_methods.then(|| Methods::of(&methods)),
            bodies: Some(bodies?).filter(|_| has[0]),
            max_body: Some(max_body?).filter(|_| has[1]),
            strip_sign: Some(strip_sign?).filter(|_| has[2]),
            response: response?,
            stream: stream?,
        })
    }

    /// Beside the rules of the table around it.
    pub(super) fn within(self, around: &RequestRules) -> RequestRules {
        RequestRules {
            methods: self.methods.unwrap_or(around.methods),
            bodies: self.bodies.unwrap_or(around.bodies),
            max_body: self.max_body.unwrap_or(around.max_body),
            strip_sign: self.strip_sign.unwrap_or(around.strip_sign),
            response: self.response.or(around.response),
            stream: self.stream.or(around.stream),
        }
    }
}
