//! `tenure db check`: looking for what must never be.

use clap::Args;

use super::target::{Form, Target, wait};
use crate::exit::Failure;
use crate::screen::print;

/// Arguments of `tenure db check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    target: Target,
}

pub(crate) fn run(check: Check) -> Result<(), Failure> {
    let findings = wait(check.target.options().check(&check.target.url()))?;
    match check.target.output {
        // Texts are always JSON.
        Form::Json => print(&serde_json::json!({ "findings": &findings }).to_string()),
        Form::Table if findings.is_empty() => print("no inconsistencies found"),
        Form::Table => {
            findings.iter().for_each(|found| print(&format!("{:<12} {}", found.about, found.what)))
        }
    }
    if findings.is_empty() { Ok(()) } else { Err(Failure::Findings(findings.len())) }
}
