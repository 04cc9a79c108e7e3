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

pub(crate) mod admit;
pub(crate) mod backend_headers;
pub(crate) mod error_format;
pub(crate) mod error_response;
pub(crate) mod identify_app;
pub(crate) mod limit;
pub(crate) mod origin;
pub(crate) mod read_params;
pub(crate) mod response;
pub(crate) mod route;
pub(crate) mod verify;
pub(crate) mod way_in;
