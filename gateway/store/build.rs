//! Builds again when a migration is added: they are embedded by a macro that cargo cannot see into.

fn main() {
    println!("cargo::rerun-if-changed=migrations");
}
