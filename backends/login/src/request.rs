//! What handlers take out of a request: who calls for which application, who is logged in, the parameters.

mod caller;
mod info;
mod parameters;
mod person;

pub(crate) use self::{
    caller::{Caller, NamedApplication, application_of},
    info::RequestInfo,
    parameters::{MAX_PARAMETERS, Parameters},
    person::Person,
};
