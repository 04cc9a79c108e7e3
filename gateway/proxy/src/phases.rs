//! The phases of a request: each with its rules and tests in one file. They are plain functions, but [`limit`] and
//! [`verify`]: their types remember counts and signatures from one request to the next.
//!
//! | module | input | result |
//! | --- | --- | --- |
//! | [`error_format`] | method, path and headers | the language of errors, and whether they are pages |
//! | [`redirect`] | a head | where a plain request is redirected to |
//! | [`cors`] | method and headers | whether it is a preflight; the headers that let other origins read a response |
//! | [`own_page`] | a head | whether the gateway has the page itself, and the page |
//! | [`limit`] | method and path; the client's address, once verified the application | what the limits leave, or which one is exceeded |
//! | [`admit`] | method and headers | [`Admitted`](admit::Admitted) |
//! | [`origin`] | proxy headers | [`Origin`](origin::Origin): the client's address |
//! | [`callback`] | method and target | whether it is the callback, which is unsigned |
//! | [`identify_app`] | the application header | the [`App`](crate::directory::apps::App) |
//! | [`read_params`] | target and body | the parameters |
//! | [`verify`] | application and parameters | a [`VerifiedRequest`](verify::VerifiedRequest) |
//! | [`route`] | a verified request | the [`RoutedRequest`](route::RoutedRequest) |
//! | [`identify_account`] | a routed request, and its credential | the [`RequestAccount`](identify_account::RequestAccount) |
//! | [`bridge`] | a routed request of a version with a bridge | the request as the other version gets it, and the response back |
//! | [`backend_headers`] | a routed request | the head that the backend receives |
//! | [`response`] | the backend's response | the headers that the client receives |
//! | [`error_response`] | a [`Rejection`](crate::request::rejection::Rejection) | the problem or page for the client |

pub(crate) mod admit;
pub(crate) mod backend_headers;
pub(crate) mod bridge;
pub(crate) mod callback;
pub(crate) mod cors;
pub(crate) mod error_format;
pub(crate) mod error_response;
pub(crate) mod identify_account;
pub(crate) mod identify_app;
pub(crate) mod limit;
pub(crate) mod origin;
pub(crate) mod own_page;
pub(crate) mod read_params;
pub(crate) mod redirect;
pub(crate) mod response;
pub(crate) mod route;
pub(crate) mod verify;
