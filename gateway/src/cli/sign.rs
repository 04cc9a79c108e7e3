//! `signpost sign`: a signed query or form body for given parameters.

#![allow(
    clippy::doc_markdown,
    rustdoc::bare_urls,
    rustdoc::invalid_html_tags,
    reason = "these comments are the help that a terminal shows"
)]

use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::ValueEnum;
use gateway_protocol::{
    param::Params,
    sign::{
        AppKey, ReplayPolicy, SignAlgorithm, SignCover, SignProfile, canonical_for_display, sign,
    },
};

use super::{complain, key::KeySource, say};
use crate::clock::{Clock, SystemClock};

#[derive(Debug, clap::Args)]
pub(super) struct SignArguments {
    #[command(flatten)]
    rules: SignRules,
    /// The application's key: env:NAME or file:PATH.
    #[arg(long, value_name = "SOURCE", default_value = "env:SIGNPOST_APP_KEY")]
    key: KeySource,
    /// The method, for a profile that covers it.
    #[arg(long, default_value = "GET")]
    method: String,
    /// The path, for a profile that covers it.
    #[arg(long, default_value = "/")]
    path: String,
    /// Also print the canonical string, with <APP_KEY> where the key goes.
    #[arg(long)]
    canonical: bool,
    /// Parameters, not yet encoded.
    #[arg(value_name = "KEY=VALUE")]
    params: Vec<String>,
}

/// The sign profile, as far as a client chooses one on the command line.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct SignRules {
    /// The family of rules: plain, decoded, bilibili, alipay, wechat or top.
    #[arg(long, value_parser = preset)]
    preset: Option<SignProfile>,
    /// The hash, if not the preset's.
    #[arg(long, value_enum)]
    algorithm: Option<Algorithm>,
    /// What is signed beside the parameters, if not the preset's.
    #[arg(long, value_enum)]
    cover: Option<Cover>,
    /// Whether a request may come twice, if not the preset's; a client need not know.
    #[arg(long, value_enum)]
    replay: Option<Replay>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Replay {
    Allow,
    Reject,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Algorithm {
    Md5,
    HmacSha256,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Cover {
    Parameters,
    Request,
}

impl SignRules {
    /// Whether anything was chosen.
    pub(super) fn is_given(&self) -> bool {
        self.preset.is_some()
            || self.algorithm.is_some()
            || self.cover.is_some()
            || self.replay.is_some()
    }

    /// The profile that was chosen, starting from `usual`. A preset is a family's way to write the string; it
    /// does not undo what makes the usual profile stronger.
    pub(super) fn profile(&self, usual: SignProfile) -> SignProfile {
        let SignProfile {
            algorithm,
            cover,
            replay,
            ..
        } = usual;
        let written = self.preset.clone().unwrap_or(usual);
        let chosen_algorithm = self.algorithm.map(|chosen| match chosen {
            Algorithm::Md5 => SignAlgorithm::Md5,
            Algorithm::HmacSha256 => SignAlgorithm::HmacSha256,
        });
        let chosen_cover = self.cover.map(|chosen| match chosen {
            Cover::Parameters => SignCover::Parameters,
            Cover::Request => SignCover::Request,
        });
        let chosen_replay = self.replay.map(|chosen| match chosen {
            Replay::Allow => ReplayPolicy::Allow,
            Replay::Reject => ReplayPolicy::Reject,
        });
        SignProfile {
            algorithm: chosen_algorithm.unwrap_or(algorithm),
            cover: chosen_cover.unwrap_or(cover),
            replay: chosen_replay.unwrap_or(replay),
            ..written
        }
    }
}

pub(super) fn run(arguments: &SignArguments) -> anyhow::Result<ExitCode> {
    let profile = arguments.rules.profile(SignProfile::default());
    let key = arguments.key.clone().read()?;
    let unsigned = with_time(&arguments.params)?;
    if arguments.canonical {
        let params = Params::parse(unsigned.as_bytes(), b"", usize::MAX)?;
        let canonical =
            canonical_for_display(&profile, &arguments.method, &arguments.path, &params);
        complain(&String::from_utf8_lossy(&canonical));
    }
    say(&signed(
        &unsigned,
        &profile,
        &key,
        &arguments.method,
        &arguments.path,
    )?);
    Ok(ExitCode::SUCCESS)
}

/// Encodes the parameters and adds the time, unless they have one.
pub(super) fn with_time(params: &[String]) -> anyhow::Result<String> {
    let mut encoded = url::form_urlencoded::Serializer::new(String::new());
    let mut has_time = false;
    for param in params {
        let (key, value) = param
            .split_once('=')
            .ok_or_else(|| anyhow!("'{param}': a parameter is KEY=VALUE"))?;
        has_time |= key == gateway_protocol::sign::TIME;
        encoded.append_pair(key, value);
    }
    if !has_time {
        encoded.append_pair(gateway_protocol::sign::TIME, &SystemClock.now().to_string());
    }
    Ok(encoded.finish())
}

/// Appends the sign.
pub(super) fn signed(
    unsigned: &str,
    profile: &SignProfile,
    key: &AppKey,
    method: &str,
    path: &str,
) -> anyhow::Result<String> {
    let params = Params::parse(unsigned.as_bytes(), b"", usize::MAX).context("the parameters")?;
    let sign = sign(profile, key, method, path, &params);
    Ok(format!("{unsigned}&sign={}", sign.to_hex()))
}

fn preset(name: &str) -> Result<SignProfile, String> {
    SignProfile::preset(name)
        .ok_or_else(|| format!("the presets are {}", SignProfile::PRESETS.join(", ")))
}
