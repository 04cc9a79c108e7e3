//! The phases of a request, in order: plain functions of few values, each with its rules tested here.
//!
//! | module | from | to |
//! | --- | --- | --- |
//! | [`error_format`] | path and headers | the language and the form of errors |
//! | [`limit`] | method, target and the client's address | whether too many unsigned requests came from there |
//! | [`admit`] | method and headers | [`Admitted`](admit::Admitted) |
//! | [`origin`] | proxy headers | [`Origin`](origin::Origin): who the client is |
//! | [`way_in`] | the target | whether it is the provider's redirect, which is unsigned |
//! | [`identify_app`] | the application header | the [`App`](crate::apps::App) |
//! | [`read_params`] | target and body | the parameters |
//! | [`verify`] | all of it | a [`VerifiedRequest`](verify::VerifiedRequest) |
//! | [`route`] | a verified request | the [`RoutedRequest`](route::RoutedRequest) |
//! | [`backend_headers`] | a routed request | the headers that the backend trusts |
//! | [`response`] | the backend's answer | the headers that the client sees |
//! | [`error_response`] | a [`Rejection`](crate::rejection::Rejection) | the problem, or page, that is answered |

pub mod admit;
pub mod backend_headers;
pub mod error_format;
pub mod error_response;
pub mod identify_app;
pub mod limit;
pub mod origin;
pub mod read_params;
pub mod response;
pub mod route;
pub mod verify;
pub mod way_in;
