//! `tenure db backup`: a copy of a file while it is in use.

use std::path::PathBuf;

use clap::Args;

use super::target::{Form, Target, wait};
use crate::exit::Failure;
use crate::files;
use crate::screen::print;

/// What can be said to `tenure db backup`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tenure db backup --db jobs.db /backups/jobs.db

Opening the copy is all that it takes to go on with it: it grants greater fences than the source ever does, so that what was
granted after the copy cannot be confused with what is granted from it. A PostgreSQL database is copied by pg_dump.")]
pub(crate) struct Backup {
    #[command(flatten)]
    target: Target,
    /// Where the copy is put, in the place of an older one; never the file that is in use
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
        Form::Table => format!("copied to {}, {}", to.display(), super::status::size(bytes)),
    });
    Ok(())
}
