//! `tenure db check`: looking for what must never be.

use clap::Args;
use tenure::{Error, Finding, SqliteOptions};
use tenure_http::check_audit;

use super::target::{Form, Target, wait};
use crate::exit::Failure;
use crate::output::safe;
use crate::screen::print;

/// Arguments of `tenure db check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    target: Target,
}

/// Verifies the hash chain of the audit log.
async fn chain(target: &Target) -> Result<Option<Finding>, Error> {
    let sqlite = SqliteOptions { looks_if_it_may_not_write: true, ..SqliteOptions::default() };
    let tenure = target.options().untended().allow_plaintext().sqlite(sqlite).open(&target.url()).await?;
    let found = check_audit(&tenure).await;
    tenure.close().await?;
    Ok(found?.map(|what| Finding { about: "audit".to_owned(), what }))
}

pub(crate) fn run(check: Check) -> Result<(), Failure> {
    let mut findings = wait(check.target.options().check(&check.target.url()))?;
    findings.extend(wait(chain(&check.target))?);
    match check.target.output {
        // Texts are always JSON.
        Form::Json => print(&serde_json::json!({ "findings": &findings }).to_string()),
        Form::Table if findings.is_empty() => print("no inconsistencies found"),
        Form::Table => {
            let line = |found: &Finding| safe::line(&format!("{:<12} {}", found.about, found.what));
            findings.iter().for_each(|found| print(&line(found)));
        }
    }
    if findings.is_empty() { Ok(()) } else { Err(Failure::Findings(findings.len())) }
}
