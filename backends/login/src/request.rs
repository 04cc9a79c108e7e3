//! Extractors: the application, the logged-in user, and the parameters of a request.

mod authenticated_user;
mod caller;
mod info;
mod parameters;

pub(crate) use self::{
    authenticated_user::AuthenticatedUser,
    caller::{CallingApplication, NamedApplication, required_application},
    info::RequestInfo,
    parameters::{MAX_PARAMETERS, Parameters},
};
