//! The values of labels, from fixed lists, and their indices in the cells.

pub(crate) use signpost_kit::metrics::cells::{STATUS_CLASSES, status_class};
use signpost_protocol::{
    problem::ProblemCode,
    sign::{SIGN, TIME, TimeSlip, explain::Slip},
    version::VersionSource,
};

use crate::request::rejection::Rejection;

/// The sources of a version, in the order of their numbers.
pub(super) static SOURCES: [&str; VersionSource::ALL.len()] = {
    let mut sources = [""; VersionSource::ALL.len()];
    let mut index = 0;
    while index < sources.len() {
        sources[index] = VersionSource::ALL[index].as_str();
        index += 1;
    }
    sources
};

/// The source of requests without a version.
pub(super) static NO_SOURCE: [&str; 1] = [""];

/// Requests without an application of the store: malformed ones, preflights, redirects to https, callbacks; and
/// requests of the application of single-application mode.
pub(crate) const UNNAMED: [&str; 2] = ["none", "default"];

/// Requests by class.
pub(crate) type ClassCounts = [u64; STATUS_CLASSES.len()];

/// The codes of problems: none, the contract's, and all others, which only a backend can send.
pub(crate) const PROBLEMS: [&str; ProblemCode::ALL.len() + 2] = {
    let mut problems = [""; ProblemCode::ALL.len() + 2];
    let mut index = 0;
    while index < ProblemCode::ALL.len() {
        problems[FIRST_CODE + index] = ProblemCode::ALL[index].as_str();
        index += 1;
    }
    problems[OTHER_PROBLEM] = "other";
    problems
};

const NO_PROBLEM: usize = 0;
const FIRST_CODE: usize = 1;
const OTHER_PROBLEM: usize = ProblemCode::ALL.len() + 1;

/// The index of a response's problem code: the gateway's, or the backend's.
pub(super) fn problem(rejection: Option<&Rejection>, of_backend: Option<&str>) -> usize {
    match (rejection.and_then(Rejection::code), of_backend) {
        (Some(code), _) => FIRST_CODE + code as usize,
        (None, None) => NO_PROBLEM,
        (None, Some(sent)) => {
            // A backend can send any word: a label has one of the contract's codes, or `other`.
            let code = ProblemCode::of_word(sent);
            code.map_or(OTHER_PROBLEM, |code| FIRST_CODE + code as usize)
        }
    }
}

/// Causes of a failed verification that have no hint, the most frequent one first.
const UNEXPLAINED: [&str; 6] = [
    ProblemCode::SignMissing.as_str(),
    ProblemCode::TimeOutOfWindow.as_str(),
    ProblemCode::RequestReplayed.as_str(),
    ProblemCode::TimeMissing.as_str(),
    ProblemCode::TimeInvalid.as_str(),
    ProblemCode::ParamDuplicated.as_str(),
];

/// The causes of a failed verification: the problem code, or the response's hint if the gateway found the mistake.
pub(crate) const CAUSES: [&str; FIRST_SLIP + Slip::ALL.len()] = {
    let mut causes = [""; FIRST_SLIP + Slip::ALL.len()];
    let mut index = 0;
    while index < causes.len() {
        causes[index] = if index < UNEXPLAINED.len() {
            UNEXPLAINED[index]
        } else if index < FIRST_SLIP {
            TimeSlip::ALL[index - UNEXPLAINED.len()].as_str()
        } else {
            Slip::ALL[index - FIRST_SLIP].as_str()
        };
        index += 1;
    }
    causes
};

const FIRST_SLIP: usize = UNEXPLAINED.len() + TimeSlip::ALL.len();

/// The index of the cause, if the request was rejected because its verification failed. A full replay memory is not
/// such a failure, but a limit.
pub(super) fn verification_failure(rejection: &Rejection) -> Option<usize> {
    let cause = match rejection {
        Rejection::ParamDuplicated { name } if *name != TIME && *name != SIGN => return None,
        Rejection::ParamDuplicated { .. }
        | Rejection::SignMismatch(..)
        | Rejection::SignMissing(_)
        | Rejection::TimeOutOfWindow { .. }
        | Rejection::TimeMissing(_)
        | Rejection::TimeInvalid { .. }
        | Rejection::RequestReplayed => match rejection.hint() {
            Some(hint) => hint.key(),
            None => rejection.code()?.as_str(),
        },
        _ => return None,
    };
    CAUSES.iter().position(|known| *known == cause)
}
