//! `tenure db migrate`: bringing a schema up to date, or saying how.

use clap::Args;

use super::target::{Form, Target, wait};
use crate::exit::Failure;
use crate::screen::{print, tell};

/// What can be said to `tenure db migrate`.
#[derive(Debug, Args)]
pub(crate) struct Migrate {
    #[command(flatten)]
    target: Target,
    /// Prints the SQL that is missing and changes nothing: somebody else runs it
    #[arg(long)]
    print_sql: bool,
    /// Grants this role of a PostgreSQL server all that programs need at run time; it need not own anything
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
            tell(&format!("the schema is number {} and up to date", missing.to));
        }
        print(format!("{}{}", missing.sql, grants.unwrap_or_default()).trim_end());
        return Ok(());
    }
    wait(target.options().migrate(&url, grant_to.as_deref()))?;
    let (from, to) = (missing.from, missing.to);
    match target.output {
        Form::Json => print(&serde_json::json!({ "from": from, "to": to }).to_string()),
        Form::Table if from == to => print(&format!("the schema is number {to}; nothing was missing")),
        Form::Table => print(&format!("the schema went from number {from} to {to}")),
    }
    Ok(())
}
