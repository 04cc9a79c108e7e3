//! Counts the connections that requests take, for the metrics.

use signpost_kit::{counted_label, label_enum};

label_enum! {
    /// Where the connection for an attempt comes from: the label `result`.
    pub enum Taken {
        /// From the thread's pool.
        Reused = "reused",
        /// It was established.
        New = "new",
        /// It could not be established.
        Failed = "failed",
    }
}

counted_label!(Taken);
