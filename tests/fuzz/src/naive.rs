//! Parsers written for the reader: each rule once, in the order of its grammar, with no thought of speed.
//!
//! They share no code with the product, so that a mistake is not made twice.

pub mod answer;
pub mod canonical;
pub mod chunked;
pub mod head;
pub mod params;
mod text;
