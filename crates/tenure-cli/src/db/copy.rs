//! `tenure db copy`: all of a store into another one.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use tenure::{Copied, CopyRefusal, CopyTotals, OpenOptions, PostgresOptions, Tenure};

use super::progress::Progress;
use crate::dev::Home;
use crate::exit::Failure;
use crate::screen;

/// Arguments of `tenure db copy`.
#[derive(Debug, Args)]
pub(crate) struct Copy {
    /// Source: SQLite file or PostgreSQL database (postgres:// URL)
    #[arg(long, value_name = "URL", value_parser = crate::secrets::database_option())]
    from: String,
    /// Target: new file, or database without jobs
    #[arg(long, value_name = "URL", value_parser = crate::secrets::database_option())]
    to: String,
    /// PostgreSQL schema of the source [default: tenure]
    #[arg(long, value_name = "NAME")]
    from_schema: Option<String>,
    /// PostgreSQL schema of the target [default: tenure]
    #[arg(long, value_name = "NAME")]
    to_schema: Option<String>,
    /// Copy although the source may be in use: concurrent changes may be missing, and running jobs run again in the copy
    #[arg(long)]
    even_in_use: bool,
    /// Output format
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
        return Err(Failure::Usage(format!("{FROM} and {TO} are the same database")));
    }
    // Opening it would make it.
    if from.url.starts_with("sqlite:")
        && let Some(path) = from.kept_in.as_deref().filter(|path| !Path::new(path).exists())
    {
        return Err(Failure::NotThere(format!("{FROM}: file {path} not found")));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|source| Failure::System { what: "cannot start threads", source })?;
    runtime.block_on(work(copy, &from, &to))
}

const FROM: &str = "--from";
const TO: &str = "--to";

fn kept(place: &str, which: &'static str) -> Result<Home, Failure> {
    let home = Home::named(place);
    if home == Home::in_memory() {
        return Err(Failure::Usage(format!(
            "{which}: memory: cannot be copied from another process; pass a file or database"
        )));
    }
    Ok(home)
}

async fn work(copy: &Copy, from: &Home, to: &Home) -> Result<(), Failure> {
    // Before anything else: whoever interrupts a start gets a clean stop, too.
    let interrupted = tokio::spawn(tenure::shutdown_signal());
    let made = Made::if_new(to);
    let source = open(from, copy.from_schema.as_deref(), FROM).await?;
    let target = open(to, copy.to_schema.as_deref(), TO).await?;
    let names = (source.store().about().place, target.store().about().place);
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
    let is_removed = !matches!(copied, Some(Ok(Copied::Whole(_)))) && made.is_some_and(Made::remove);
    let Some(copied) = copied else {
        if !is_removed {
            screen::tell(&format!(
                "tenure: {} may hold an incomplete copy, which cannot be opened; delete it before you copy again",
                names.1
            ));
        }
        return Err(Failure::Interrupted);
    };
    match copied.map_err(|error| Failure::Copy(names.1.clone(), Box::new(error)))? {
        Copied::Whole(totals) => {
            closed.1.map_err(|error| at(TO, error))?;
            tell(copy.output, &names, totals);
            Ok(())
        }
        Copied::Refused(why) => Err(refused(&names, &why, is_removed)),
    }
}

/// A file that this command makes, because it was not there.
struct Made(PathBuf);

impl Made {
    fn if_new(to: &Home) -> Option<Self> {
        let is_file = to.url.starts_with("sqlite:");
        let path = to.kept_in.as_deref().filter(|_| is_file).map(PathBuf::from)?;
        (!path.exists()).then_some(Self(path))
    }

    /// Removes the file and what SQLite keeps beside it; answers whether it is gone.
    fn remove(self) -> bool {
        for suffix in ["-wal", "-shm"] {
            let mut beside = self.0.clone().into_os_string();
            beside.push(suffix);
            // It is only there if the file was not closed.
            let _ = std::fs::remove_file(beside);
        }
        std::fs::remove_file(&self.0).is_ok()
    }
}

async fn open(home: &Home, schema: Option<&str>, which: &'static str) -> Result<Tenure, Failure> {
    let mut options = PostgresOptions::default();
    if let Some(schema) = schema {
        options.schema = schema.to_owned();
    }
    let open = OpenOptions::new().untended().postgres(options).allow_plaintext().open(&home.url);
    open.await.map_err(|error| at(which, error))
}

fn at(which: &'static str, error: tenure::Error) -> Failure {
    Failure::At { which, source: Box::new(error) }
}

fn refused((from, to): &(String, String), why: &CopyRefusal, is_removed: bool) -> Failure {
    let (incomplete, delete) = if is_removed {
        ("was incomplete and is removed", "")
    } else {
        ("is incomplete and cannot be opened", ", delete the copy")
    };
    match why {
        CopyRefusal::Occupied(_) => Failure::Conflict(format!("{TO}, {to}: {why}")),
        CopyRefusal::InUse(_) => Failure::Conflict(format!(
            "{FROM}, {from}: {why}. Stop its workers and wait, or pass --even-in-use: concurrent changes may then be \
             missing from the copy, and running jobs run again"
        )),
        CopyRefusal::Unreadable { .. } => Failure::Conflict(format!("{FROM}, {from}: {why}")),
        CopyRefusal::Changed { .. } => Failure::Conflict(format!(
            "{FROM}, {from}: {why}. The copy in {to} {incomplete}: stop the users of the source{delete} and copy again"
        )),
        CopyRefusal::Incomplete { .. } => {
            Failure::NotWhole(format!("{TO}, {to}: {why}. The copy {incomplete}{delete}"))
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
            "copied {totals}\nfrom {from}\nto   {to}\nThe copy is ready. It grants larger fencing tokens than the source \
             did; do not use the source again"
        ),
    });
}
