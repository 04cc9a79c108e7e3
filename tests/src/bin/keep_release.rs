//! Writes what a release leaves behind, on the store of this run: `keep-release 0.9.0`. [`end_to_end::kept`]

use std::env;

use end_to_end::kept::Kept;

#[tokio::main]
async fn main() {
    let number = env::args().nth(1).expect("usage: keep-release NUMBER");
    Kept::present(&number).write().await;
}
