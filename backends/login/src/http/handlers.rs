//! The endpoints: read the parameters, call the flow, write the response.

mod health;
mod login;
mod results;
mod user;

pub(super) use self::{
    health::{healthz, hide_health, readyz},
    login::{begin_polling, login},
    results::{LoginResultView, check, user_login},
    user::{event_send, user, user_logout},
};
