//! HTTP: routes, layers, handlers, and what a version's own endpoints are made of.

pub(crate) mod endpoints;
mod handlers;
mod middleware;
pub(crate) mod pages;
pub mod request;
pub(crate) mod router;
pub(crate) mod routes;
pub(crate) mod views;
