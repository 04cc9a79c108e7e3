//! The phases of a request, in order: plain functions of few values, each with its rules tested here.
//!
//! | module | from | to |
//! | --- | --- | --- |
//! | [`address`] | path and headers | in which language and form errors are told |
//! | [`limit`] | method, target and the client's address | whether too many unsigned requests came from there |
//! | [`admit`] | method and headers | [`Admitted`](admit::Admitted) |
//! | [`origin`] | proxy headers | [`Origin`](origin::Origin): who the client is |
//! | [`way_in`] | the target | whether it is the provider's redirect, which is unsigned |
//! | [`identify_app`] | the application header | the [`App`](crate::apps::App) |
//! | [`read_params`] | target and body | the parameters |
//! | [`verify`] | all of it | a [`VerifiedRequest`](verify::VerifiedRequest) |
//! | [`route`] | a verified request | the [`Route`](route::Route) |
//! | [`forward`] | the route | the headers that the backend trusts |
//! | [`answer`] | the backend's answer | the headers that the client sees |
//! | [`reject`] | a [`Rejection`](crate::rejection::Rejection) | the problem, or page, that is answered |
//! | [`record`] | all of it | the access line |

pub mod address;
pub mod admit;
pub mod answer;
pub mod forward;
pub mod identify_app;
pub mod limit;
pub mod origin;
pub mod read_params;
pub mod record;
pub mod reject;
pub mod route;
pub mod verify;
pub mod way_in;
