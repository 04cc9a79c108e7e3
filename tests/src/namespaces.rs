//! Namespaces of the kernel, in which a test has processes or disks of its own.

use std::process::Command;

use crate::program::output_text;

/// Whether the kernel lets this process create them. Only root may, and not in every container: then says why not.
///
/// # Panics
///
/// It fails for another reason.
#[must_use]
pub fn may_be_created(kinds: &[&str]) -> bool {
    let mut unshare = Command::new("unshare");
    let tried = unshare.args(kinds).arg("true").output();
    let tried = tried.expect("util-linux has it");
    if tried.status.success() {
        return true;
    }
    let reason = output_text(&tried);
    assert!(reason.contains("unshare failed"), "{reason}");
    #[expect(clippy::print_stderr, reason = "a test that ends early says why")]
    {
        eprintln!("not tested, the kernel creates no namespaces: {reason}");
    }
    false
}
