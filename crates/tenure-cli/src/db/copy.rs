//! `tenure db copy`: all of a store into another one.

use std::path::Path;

use clap::{Args, ValueEnum};
use tenure::{Copied, CopyRefusal, CopyTotals, OpenOptions, PostgresOptions, Tenure};

use super::progress::Progress;
use crate::dev::Home;
use crate::exit::Failure;
use crate::screen;

/// What can be said to `tenure db copy`.
#[derive(Debug, Args)]
pub(crate) struct Copy {
    /// What is copied: a SQLite file (a path or a sqlite:// URL) or a PostgreSQL database (a postgres:// URL)
    #[arg(long, value_name = "URL")]
    from: String,
    /// Where the copy is written: a file that is not there yet, or a database without jobs
    #[arg(long, value_name = "URL")]
    to: String,
    /// The schema of the source, if it is a database and the schema is not `tenure`
    #[arg(long, value_name = "NAME")]
    from_schema: Option<String>,
    /// The schema of the copy, if that is in a database and not to be in `tenure`
    #[arg(long, value_name = "NAME")]
    to_schema: Option<String>,
    /// Copies although somebody may be using the source: what they change meanwhile is copied or not, and jobs that run
    /// now are done again in the copy
    #[arg(long)]
    even_in_use: bool,
    /// For people, or for programs
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    Table,
    Json,
}

/// Copies until it is whole, or somebody interrupts it.
pub(crate) fn run(copy: &Copy) -> Result<(), Failure> {
    let (from, to) = (kept(&copy.from, FROM)?, kept(&copy.to, TO)?);
    if from.url == to.url && copy.from_schema == copy.to_schema {
        return Err(Failure::Usage(format!("{FROM} and {TO} are the same place")));
    }
    // Opening it would make it.
    if from.url.starts_with("sqlite:")
        && let Some(path) = from.kept_in.as_deref().filter(|path| !Path::new(path).exists())
    {
        return Err(Failure::NotThere(format!("{FROM}: there is no file {path}")));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|source| Failure::System { what: "the program's threads did not start", source })?;
    runtime.block_on(work(copy, &from, &to))
}

const FROM: &str = "--from";
const TO: &str = "--to";

fn kept(place: &str, which: &'static str) -> Result<Home, Failure> {
    let home = Home::named(place);
    if home == Home::in_memory() {
        return Err(Failure::Usage(format!("{which}: what is in memory is in no other program")));
    }
    Ok(home)
}

async fn work(copy: &Copy, from: &Home, to: &Home) -> Result<(), Failure> {
    // Before anything else: whoever interrupts a start gets a clean stop, too.
    let interrupted = tokio::spawn(tenure::shutdown_signal());
    let source = open(from, copy.from_schema.as_deref(), FROM).await?;
    let target = open(to, copy.to_schema.as_deref(), TO).await?;
    let names = (source.store().describe(), target.store().describe());
    let mut progress = Progress::new();
    let told = &mut |copied, of| progress.tell(copied, of);
    let copied = tokio::select! {
        biased;
        _ = interrupted => None,
        copied = source.copy_to(&target, copy.even_in_use, told) => Some(copied),
    };
    progress.end();
    // Closing waits for what is being written.
    let closed = (source.close().await, target.close().await);
    let Some(copied) = copied else {
        screen::tell(&format!(
            "tenure: {} may have a part of the copy now, and cannot be opened then; remove it before you copy again",
            names.1
        ));
        return Err(Failure::Interrupted);
    };
    match copied.map_err(|error| Failure::Copy(names.1.clone(), Box::new(error)))? {
        Copied::Whole(totals) => {
            closed.1.map_err(|error| at(TO, error))?;
            tell(copy.output, &names, totals);
            Ok(())
        }
        Copied::Refused(why) => Err(refused(&names, &why)),
    }
}

async fn open(home: &Home, schema: Option<&str>, which: &'static str) -> Result<Tenure, Failure> {
    let mut options = PostgresOptions::default();
    if let Some(schema) = schema {
        options.schema = schema.to_owned();
    }
    let open = OpenOptions::new().untended().postgres(options).open(&home.url);
    open.await.map_err(|error| at(which, error))
}

fn at(which: &'static str, error: tenure::Error) -> Failure {
    Failure::At { which, source: Box::new(error) }
}

fn refused((from, to): &(String, String), why: &CopyRefusal) -> Failure {
    match why {
        CopyRefusal::NoCopies => Failure::Usage(why.to_string()),
        CopyRefusal::Occupied(_) => Failure::Conflict(format!("{TO}, {to}: {why}")),
        CopyRefusal::InUse(_) => Failure::Conflict(format!(
            "{FROM}, {from}: {why}. Stop what uses it and wait until then; or copy all the same with --even-in-use: what \
             they change meanwhile is copied or not, and jobs that run now are done again"
        )),
        CopyRefusal::Changed { .. } => Failure::Conflict(format!(
            "{FROM}, {from}: {why}. The copy in {to} is not whole and cannot be opened: stop what uses the source, remove \
             the copy, and copy again"
        )),
        CopyRefusal::Incomplete { .. } => {
            Failure::NotWhole(format!("{TO}, {to}: {why}. It cannot be opened: remove it"))
        }
    }
}

fn tell(form: Form, (from, to): &(String, String), totals: CopyTotals) {
    let CopyTotals { jobs, keys, leases, entries, timers, slots, records, journal_entries } = totals;
    screen::print(&match form {
        Form::Json => serde_json::json!({
            "from": from, "to": to, "jobs": jobs, "unique_keys": keys, "leases": leases, "ledger_entries": entries,
            "timers": timers, "slots": slots, "records": records, "journal_entries": journal_entries,
        })
        .to_string(),
        Form::Table => format!(
            "copied {totals}\nfrom {from}\nto   {to}\nIt can be opened now. Every fence that it grants is greater than any \
             of the source; do not start programs on the source again"
        ),
    });
}
