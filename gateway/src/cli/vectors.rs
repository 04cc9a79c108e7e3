//! `signpost vectors`: prints the test vectors of signatures.

use std::process::ExitCode;

use clap::ValueEnum;

use super::{print_error, print_line};

#[derive(Debug, clap::Args)]
pub(super) struct VectorsArguments {
    /// Which ones.
    #[arg(value_enum, default_value_t = Vectors::Sign)]
    vectors: Vectors,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Vectors {
    /// Parameters as they are sent, with profile and key, and their canonical string and signature.
    Sign,
    /// Names and values, and the whole text that a client library sends for them.
    Text,
    /// Signatures in headers: method, target, time, nonce and body, with the signed text and the signature.
    Head,
    /// Signatures made with a mistake, each with the hint that explains it.
    Hints,
}

/// Prints JSON to standard output, and how to use it to standard error.
pub(super) fn run(arguments: &VectorsArguments) -> anyhow::Result<ExitCode> {
    let (json, how) = match arguments.vectors {
        Vectors::Sign => (
            include_str!("../../../tests/vectors/sign-vectors.json"),
            "For each of `cases`: canonical string of `query` and `body` by `profile`, with <APP_KEY> for `app_key`: is it `canonical`?\n\
             The hash of it, with the key in its place, or its HMAC: is it `sign`?\n\
             If all are the same, the client signs right; gateway/protocol/SIGNING.md has the rules.",
        ),
        Vectors::Text => (
            include_str!("../../../tests/vectors/client-vectors.json"),
            "For each of `cases`: encode `pairs` as RFC 3986 says (a space is %20), add `time`, sign by `profile`, add `sign`.\n\
             Is the result `text`? Another encoding, for example + for a space, is as right: then compare what it decodes to.\n\
             If all are the same, the client sends the bytes that it signs.",
        ),
        Vectors::Head => (
            include_str!("../../../tests/vectors/head-vectors.json"),
            "For each of `cases`: the text of `method`, `target`, `time`, `nonce` and the hash of `body`: is it `text`?\n\
             Its HMAC-SHA-256 with `app_key`, or with md5 its hash with the key in place of <APP_KEY>: is it `sign`?\n\
             If all are the same, the client signs headers right; gateway/protocol/SIGNING.md has the rules.",
        ),
        Vectors::Hints => (
            include_str!("../../../tests/vectors/hint-vectors.json"),
            "Each of `cases` is a request whose `sign` is wrong: the hash of `signed` instead of the right string.\n\
             `hint` names the mistake, as the response's `hint` explains it.\n\
             gateway/protocol/SIGNING.md lists all of them.",
        ),
    };
    print_error(how);
    print_line(json.trim_end());
    Ok(ExitCode::SUCCESS)
}
