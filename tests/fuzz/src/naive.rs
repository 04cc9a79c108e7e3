//! Parsers written for readability: each rule once, in the order of its grammar, without regard to speed.
//!
//! They share no code with the product, so that they do not share its mistakes.

pub mod canonical;
pub mod chunked;
pub mod head;
pub mod http2;
pub mod json;
pub mod openid;
pub mod params;
pub mod proxy;
pub mod response;
mod text;
