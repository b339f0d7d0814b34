//! `tenure db backup`: a copy of a file while it is in use.

use std::path::PathBuf;

use clap::Args;

use super::target::{Form, Target, wait};
use crate::exit::Failure;
use crate::files;
use crate::screen::print;

/// Arguments of `tenure db backup`.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    #[command(flatten)]
    target: Target,
    /// File to write; an older copy is replaced
    #[arg(value_name = "FILE")]
    to: PathBuf,
}

pub(crate) fn run(backup: Backup) -> Result<(), Failure> {
    let Backup { target, to } = backup;
    files::can_be_written(&to)?;
    wait(target.options().backup(&target.url(), &to))?;
    let bytes = std::fs::metadata(&to).map_or(0, |metadata| metadata.len());
    print(&match target.output {
        Form::Json => serde_json::json!({ "file": to.display().to_string(), "bytes": bytes }).to_string(),
        Form::Table => format!("copied to {} ({})", to.display(), super::status::size(bytes)),
    });
    Ok(())
}
