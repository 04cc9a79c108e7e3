//! The families that every program has.

use super::{Families, process, store};
use crate::{cache, log::writer, reload::last_reload, trace};

/// All of them, by subject.
pub const SHARED: [Families; 6] = [
    process::FAMILIES,
    store::FAMILIES,
    cache::FAMILIES,
    last_reload::FAMILIES,
    writer::FAMILIES,
    trace::FAMILIES,
];
