//! `tenure db migrate`: bringing a schema up to date, or saying how.

use clap::Args;

use super::target::{Form, Target, wait};
use crate::exit::Failure;
use crate::screen::{print, tell};

/// Arguments of `tenure db migrate`.
#[derive(Debug, Args)]
pub(crate) struct Migrate {
    #[command(flatten)]
    target: Target,
    /// Print the pending SQL and change nothing
    #[arg(long)]
    print_sql: bool,
    /// Grant this PostgreSQL role the rights that servers and workers need
    #[arg(long, value_name = "ROLE")]
    grant_to: Option<String>,
}

pub(crate) fn run(migrate: Migrate) -> Result<(), Failure> {
    let Migrate { target, print_sql, grant_to } = migrate;
    let url = target.url();
    let missing = wait(target.options().migration(&url))?;
    if print_sql {
        let grants = grant_to.map(|role| target.options().grants(&url, &role)).transpose()?;
        if missing.sql.is_empty() {
            tell(&format!("schema version {} is up to date", missing.to));
        }
        print(format!("{}{}", missing.sql, grants.unwrap_or_default()).trim_end());
        return Ok(());
    }
    wait(target.options().migrate(&url, grant_to.as_deref()))?;
    let (from, to) = (missing.from, missing.to);
    match target.output {
        Form::Json => print(&serde_json::json!({ "from": from, "to": to }).to_string()),
        Form::Table if from == to => print(&format!("schema version {to} is up to date")),
        Form::Table => print(&format!("migrated from schema version {from} to {to}")),
    }
    Ok(())
}
