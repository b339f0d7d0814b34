//! `tenure app`: which programs there are, how they stand, what they say; running, stopping and starting them.

use std::future::Future;
use std::path::Path;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tenure::apps::{Apps, Began, Info, Sort, Wanted};
use tenure::{Clock, Filter, JobId, JobRecord, Kind, Order, PageAsk, State, StateName, SystemClock, Tenure};

use super::SET;
use crate::dev::url_of;
use crate::exit::Failure;
use crate::output::{Out, Output, Shape, Table, safe};

/// Between two looks for new lines.
const LOOK: std::time::Duration = std::time::Duration::from_millis(500);
/// The store of a folder that runs, seen from that folder.
const HERE: &str = ".tenure/apps.db";
/// Lines of one look.
const LINES: usize = 1_000;

/// What can be said to `tenure app`.
#[derive(Debug, Args)]
pub(crate) struct AppArgs {
    /// The SQLite file or PostgreSQL database that the hosts share [default: .tenure/apps.db in this folder, if it is there]
    #[arg(long, value_name = "FILE|URL", global = true, env = "TENURE_DATABASE_URL", hide_env_values = true)]
    db: Option<String>,
    /// What the programs are called together
    #[arg(long, value_name = "NAME", default_value = SET, global = true)]
    set: String,
    #[command(flatten)]
    output: Output,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// All programs that hosts offer, and how they stand
    List,
    /// Runs a triggered program now
    Run {
        /// Its name
        name: String,
        /// Its arguments; no shell reads them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
        /// Waits for its end, shows what it says, and ends as it has ended
        #[arg(long)]
        wait: bool,
    },
    /// Lets a program run again that was stopped
    Start(Named),
    /// Stops a program on all hosts until it is started: a triggered one runs no more, a continuous one is told to stop
    Stop {
        #[command(flatten)]
        named: Named,
        /// Why, for people
        #[arg(long, value_name = "TEXT", default_value = "")]
        reason: String,
    },
    /// The last runs of a triggered program, the latest first
    Runs {
        /// Its name
        name: String,
        /// How many
        #[arg(short = 'n', long = "number", value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
        number: u16,
    },
    /// What a program has said: in its last run, or in one that is named, or all the time
    Logs {
        #[command(flatten)]
        named: Named,
        /// A run of a triggered one [default: the last]
        #[arg(long, value_name = "ID")]
        run: Option<JobId>,
        /// Goes on with what it says from now on
        #[arg(short, long)]
        follow: bool,
    },
}

#[derive(Debug, Args)]
struct Named {
    /// Its name; triggered/NAME or continuous/NAME if both sorts have one
    name: String,
}

pub(crate) fn run(args: AppArgs) -> Result<(), Failure> {
    let url = url_of(&db(args.db)?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Failure::System { what: "the program's threads did not start", source })?;
    runtime.block_on(interruptible(async {
        // What it asks about is tended by whoever runs it.
        let tenure = tenure::OpenOptions::new().untended().open(&url).await?;
        let mut out = args.output.open();
        let apps = tenure.apps(&args.set)?;
        done(&tenure, &apps, args.what, &mut out).await?;
        out.flush()
    }))
}

/// The store that is named, or the one of the folder in which this is asked.
fn db(said: Option<String>) -> Result<String, Failure> {
    let here = || Path::new(HERE).exists().then(|| HERE.to_owned());
    said.or_else(here).ok_or_else(|| {
        let why = format!("say which store by --db, or ask in the folder that runs, where {HERE} is");
        Failure::Usage(why)
    })
}

async fn interruptible(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    tokio::select! {
        biased;
        _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
        done = work => done,
    }
}

async fn done(tenure: &Tenure, apps: &Apps<'_>, what: What, out: &mut Out) -> Result<(), Failure> {
    match what {
        What::List => list(&apps.list().await?, out),
        What::Run { name, arguments, wait } => {
            let id = begin(tenure, apps, &name, arguments).await?;
            if !wait {
                return out.line(&id.to_string());
            }
            follow_run(tenure, id, true, out).await?;
            ended_well(&tenure.jobs().get(id).await?)
        }
        What::Start(named) => {
            let (sort, name) = named.sort(tenure, apps).await?;
            let was_stopped = apps.start(sort, &name).await?;
            let words = if was_stopped { "may run again" } else { "was not stopped" };
            out.tell(&format!("{} {name} {words}", sort.word()));
            Ok(())
        }
        What::Stop { named, reason } => {
            let (sort, name) = named.sort(tenure, apps).await?;
            apps.stop(sort, &name, &reason).await?;
            out.tell(&format!("{} {name} is stopped", sort.word()));
            Ok(())
        }
        What::Runs { name, number } => runs(&last_runs(tenure, apps, &name, number.into()).await?, out),
        What::Logs { named, run, follow } => match named.sort(tenure, apps).await? {
            (Sort::Triggered, name) => {
                let id = match run {
                    Some(id) => id,
                    None => last_runs(tenure, apps, &name, 1)
                        .await?
                        .first()
                        .map(|job| job.id)
                        .ok_or_else(|| Failure::NotThere(format!("triggered {name} has not run yet")))?,
                };
                follow_run(tenure, id, follow, out).await
            }
            (Sort::Continuous, name) => said(apps, &name, follow, out).await,
        },
    }
}

impl Named {
    /// Which app is meant.
    async fn sort(&self, tenure: &Tenure, apps: &Apps<'_>) -> Result<(Sort, String), Failure> {
        for sort in [Sort::Triggered, Sort::Continuous] {
            if let Some(name) = self.name.strip_prefix(sort.word()).and_then(|rest| rest.strip_prefix('/')) {
                return Ok((sort, name.to_owned()));
            }
        }
        let mut found: Vec<Sort> =
            apps.list().await?.iter().filter(|info| info.name == self.name).map(|info| info.sort).collect();
        if found.is_empty() {
            // Nobody offers it any more, but what it has done is there.
            let has_run = !last_runs(tenure, apps, &self.name, 1).await?.is_empty();
            found.extend(has_run.then_some(Sort::Triggered));
            let has_said = !apps.said(&self.name, None, 1).await?.is_empty();
            found.extend(has_said.then_some(Sort::Continuous));
        }
        match found.as_slice() {
            [sort] => Ok((*sort, self.name.clone())),
            [] => Err(Failure::NotThere(format!(
                "no host offers {} in the set {}",
                safe::line(&self.name),
                apps.set()
            ))),
            _ => Err(Failure::Usage(format!("say triggered/{0} or continuous/{0}", self.name))),
        }
    }
}

async fn begin(
    tenure: &Tenure,
    apps: &Apps<'_>,
    name: &str,
    arguments: Vec<String>,
) -> Result<JobId, Failure> {
    let wanted =
        Wanted { arguments, by: "tenure app run".to_owned(), id: Some(tenure.new_id()), ..Wanted::default() };
    match apps.run(name, &wanted).await? {
        Began::New(id) => Ok(id),
        // As Kudu says it, and what it does not say: which one.
        Began::Busy(id) => Err(Failure::Conflict(format!(
            "Cannot start a new run since job is already running. It is run {id}"
        ))),
        Began::Stopped => Err(Failure::Conflict("WebJobs are currently in \"stopped\" state.".to_owned())),
        Began::NotOffered => Err(Failure::NotThere(format!(
            "no host offers a triggered {} in the set {}",
            safe::line(name),
            apps.set()
        ))),
    }
}

fn list(all: &[Info], out: &mut Out) -> Result<(), Failure> {
    let mut table = Table::new(&["type", "name", "state", "schedule", "host", "detail"]);
    for info in all {
        match out.shape() {
            Shape::Jsonl => out.document(&json!(info).to_string())?,
            Shape::Id => out.id("app", &format!("{}/{}", info.sort.word(), info.name))?,
            Shape::Json | Shape::Table | Shape::Wide => {}
        }
        let schedule = info.schedule.clone().unwrap_or_default();
        let row = |state: &str, host: &str, detail: &str| {
            [info.sort.word(), &info.name, state, &schedule, host, detail]
                .map(|cell| safe::line(cell).into())
                .to_vec()
        };
        if info.hosts.is_empty() {
            table.row(row("stopped", "", info.stopped.as_deref().unwrap_or_default()));
        }
        for on_host in &info.hosts {
            let offer = &on_host.offer;
            let is_off = info.stopped.is_some() && info.sort == Sort::Triggered;
            let state = if is_off { "stopped" } else { offer.state.word() };
            table.row(row(state, &on_host.node, &offer.detail));
        }
    }
    match out.shape() {
        Shape::Json => out.document(&json!({ "items": all }).to_string()),
        Shape::Jsonl | Shape::Id => Ok(()),
        Shape::Table | Shape::Wide => out.table(&table, true),
    }
}

async fn last_runs(
    tenure: &Tenure,
    apps: &Apps<'_>,
    name: &str,
    number: usize,
) -> Result<Vec<JobRecord>, Failure> {
    let kind = Kind::new(&apps.kind(name)?).map_err(tenure::Error::from)?;
    let filter = Filter { kinds: vec![kind], ..Filter::default() };
    let ask = PageAsk { filter, order: Order::NewestFirst, at_most: number, ..PageAsk::default() };
    Ok(tenure.jobs().page(ask).await?.jobs)
}

fn runs(jobs: &[JobRecord], out: &mut Out) -> Result<(), Failure> {
    let mut table = Table::new(&["id", "state", "began", "ended", "attempt", "detail"]);
    let now = SystemClock.now();
    let documents: Vec<Value> = jobs.iter().map(|job| document(job, now)).collect();
    for (job, document) in jobs.iter().zip(&documents) {
        match out.shape() {
            Shape::Jsonl => out.document(&document.to_string())?,
            Shape::Id => out.id("job", &job.id.to_string())?,
            Shape::Json | Shape::Table | Shape::Wide => {}
        }
        let when = |field: &str| out.when(document[field].as_str());
        let cells = [
            job.id.to_string(),
            document["state"].as_str().unwrap_or_default().to_owned(),
            when("started_at"),
            when("ended_at"),
            job.attempt.to_string(),
            safe::line(document["detail"].as_str().unwrap_or_default()),
        ];
        table.row(cells.into_iter().map(Into::into).collect());
    }
    match out.shape() {
        Shape::Json => out.document(&json!({ "items": documents }).to_string()),
        Shape::Jsonl | Shape::Id => Ok(()),
        Shape::Table | Shape::Wide => out.table(&table, true),
    }
}

fn document(job: &JobRecord, now: tenure::Timestamp) -> Value {
    let failure = job.failure.as_ref().map(ToString::to_string);
    json!({
        "id": job.id.to_string(),
        "state": job.state.name(now).as_str(),
        "started_at": job.started.map(|at| at.to_string()),
        "ended_at": job.state.ended().map(|at| at.to_string()),
        "attempt": job.attempt,
        "by_schedule": job.terms.slot.as_ref().is_some_and(|slot| slot.origin == tenure::Origin::Schedule),
        "detail": failure,
    })
}

/// Prints the lines of a run; goes on until its end if that is wanted.
async fn follow_run(tenure: &Tenure, id: JobId, follow: bool, out: &mut Out) -> Result<(), Failure> {
    let mut behind = (0, 0);
    loop {
        // Before the lines: what was said before the end is there when the end is.
        let has_ended = matches!(tenure.jobs().get(id).await?.state, State::Finished { .. });
        loop {
            let lines = tenure.jobs().logs(id, behind, LINES).await?;
            let Some(last) = lines.last() else { break };
            behind = (last.delivery, last.number);
            for line in &lines {
                out.line(&safe::line(&line.text))?;
            }
        }
        out.flush()?;
        if has_ended || !follow {
            return Ok(());
        }
        tenure.store().clock().sleep(LOOK).await;
    }
}

fn ended_well(job: &JobRecord) -> Result<(), Failure> {
    match job.state.name(SystemClock.now()) {
        StateName::Succeeded => Ok(()),
        StateName::Failed
        | StateName::Cancelled
        | StateName::Scheduled
        | StateName::Queued
        | StateName::Blocked
        | StateName::Running => {
            let why = job.failure.as_ref().map_or_else(String::new, |failure| format!(": {failure}"));
            Err(Failure::Unsuccessful(format!("run {} did not succeed{why}", job.id)))
        }
    }
}

/// Prints what a continuous app has said.
async fn said(apps: &Apps<'_>, name: &str, follow: bool, out: &mut Out) -> Result<(), Failure> {
    let (clock, mut behind) = (SystemClock, None);
    loop {
        let all = apps.said(name, behind, LINES).await?;
        for said in &all {
            behind = Some(said.number);
            for line in &said.lines {
                out.line(&format!("{} {}", safe::line(&said.node), safe::line(line)))?;
            }
        }
        out.flush()?;
        if !follow && (all.is_empty() || behind.is_none()) {
            return Ok(());
        }
        if all.is_empty() {
            behind = behind.or(Some(0));
            clock.sleep(LOOK).await;
        }
    }
}
