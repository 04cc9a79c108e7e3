//! `signpost app import` and `signpost app export`.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use clap::Args;
use serde_json::json;
use signpost_management::{
    administration::{
        apps::{Listing, MAX_PAGE},
        import::{ImportError, read_file},
    },
    operations::import::{IMPORT, ImportInput},
};
use signpost_proxy::{Config, program::raise_statement_timeout};

use crate::cli::{
    CommonOptions,
    operation::{Told, with_keys},
    print_error, print_line,
};

/// The file format, for `signpost app import --help`.
pub(super) const IMPORT_FILE: &str = r#"The file is CSV with a header row, or JSON lines (one object per line), in UTF-8; its first character decides:

  ident,key,name,origins,profile,default_version
  team-1,4283fefc63f0cd0e873a0000c6d07ef7,First team,https://a.example https://b.example,wechat,v2

  {"ident":"team-1","key":"4283…","name":"First team","origins":["https://a.example"],"profile":"wechat"}

ident            required: 1 to 64 of A-Z a-z 0-9 . _ -
key              required: the key that its clients sign with: at least 128 bits (32 hex digits), no white space,
                 also not around it
name             required: 1 to 64 characters
origins          origins that a login may return to: separated by spaces in CSV, a list in JSON
profile          a sign profile of its own: a preset (sign --help lists them) with the gateway's algorithm, cover and
                 replay, or an object as in app list --json. Default: the gateway's profile
default_version  one of the gateway's versions
rate_limit       a rate limit of its own, as in app create
extensions       until when it may use versions that end, as in app update: separated by spaces in CSV, a list in JSON
state            active (the default) or disabled

The columns may be in any order; only the first three are required. A line of app export needs a key. If the file has
problems, all of them are reported by line, and nothing is imported. Limits: 250,000 applications and 64 MiB; 100,000
take some seconds. Running gateways accept the applications within a second. The file contains keys: protect it, and
delete it afterwards."#;

#[derive(Debug, Args)]
pub(in crate::cli) struct Import {
    /// The file, or "-" for standard input.
    #[arg(value_name = "FILE")]
    path: PathBuf,
    #[command(flatten)]
    told: Told<ImportInput>,
}

pub(super) async fn import(import: Import) -> anyhow::Result<()> {
    let Told { mut input, common } = import.told;
    let mut config = Config::load(&common.config)?;
    raise_statement_timeout(&mut config.store);
    let name = display_name(&import.path);
    read(&import.path, &mut input).with_context(|| name.clone())?;
    let context = with_keys(&config, &common).await?;
    let imported = (IMPORT.run)(&context, (), input).await.map_err(|error| {
        match error.cause.downcast::<ImportError>() {
            Ok(ImportError::Problems(problems)) => {
                let lines = problems.to_string().replace('\n', &format!("\n{name}: "));
                anyhow!("{name}: {lines}\nnothing was imported")
            }
            Ok(other) => anyhow::Error::new(other).context(name),
            Err(other) => other,
        }
    })?;
    for (weakness, count) in &imported.weaknesses {
        print_error(&format!("warning: {count} applications: {weakness}"));
    }
    if imported.weak_keys > 0 {
        print_error(&format!(
            "warning: {} applications have keys under 128 bits, which can be guessed from one signed request",
            imported.weak_keys
        ));
    }
    if common.json {
        print_line(&json!({ "imported": imported.applications }).to_string());
    } else {
        print_line(&format!("imported {} applications", imported.applications));
    }
    Ok(())
}

fn read(path: &Path, input: &mut ImportInput) -> Result<(), ImportError> {
    input.file.0 = if path == Path::new("-") {
        read_file(io::stdin().lock(), 0)?
    } else {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        read_file(file, usize::try_from(length).unwrap_or(usize::MAX))?
    };
    Ok(())
}

fn display_name(file: &Path) -> String {
    if file == Path::new("-") {
        "standard input".to_owned()
    } else {
        file.display().to_string()
    }
}

/// Prints all applications as JSON lines, without keys.
pub(super) async fn export(common: &CommonOptions) -> anyhow::Result<()> {
    let context = with_keys(&Config::load(&common.config)?, common).await?;
    let mut listing = Listing {
        limit: MAX_PAGE,
        ..Listing::default()
    };
    loop {
        let page = context.apps().list(&listing).await?;
        for app in &page.apps {
            print_line(&app.exported());
        }
        if page.next.is_none() {
            return Ok(());
        }
        listing.after = page.next;
    }
}
