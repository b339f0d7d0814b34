//! `tenure dev`: the library at work, with nothing to set up.

mod flow;
mod home;
mod http;
mod kinds;
mod line;
mod seed;
mod show;

use std::sync::Arc;

use clap::Args;
use tenure::schedule::Schedule;
use tenure::{OpenOptions, StateName, Tenure};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use self::seed::CatchingUp;
use self::show::{Seen, Show, standings, unfinished};
use crate::exit::Failure;
use crate::open::shown_in_browser;
use crate::screen::{Screen, Tone};

pub(crate) use self::home::{Home, folder};

/// The URL that a file's path stands for, or the URL itself.
pub(crate) fn url_of(db: &str) -> String {
    Home::named(db).url
}

/// What can be said to `tenure dev`.
#[derive(Debug, Args)]
pub(crate) struct Dev {
    /// SQLite file or PostgreSQL database (postgres:// URL) [default: .tenure/dev.db]
    #[arg(long, value_name = "FILE|URL", conflicts_with = "memory")]
    db: Option<String>,
    /// Keep the jobs in memory until the program ends
    #[arg(long)]
    memory: bool,
    /// Port to listen on; 0 for any free one [default: 8368]
    #[arg(long, value_name = "P")]
    port: Option<u16>,
    /// Sample jobs per second after the first seven; 0 for none
    #[arg(long, value_name = "N", default_value_t = 0.7, value_parser = rate)]
    jobs_per_second: f64,
    /// Fill the dashboard with the last hours of a sample shop
    #[arg(long)]
    seed: bool,
    /// Open the dashboard in a browser
    #[arg(long)]
    open: bool,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "expected a number from 0 to 1000".to_owned())?;
    if (0.0..=1000.0).contains(&rate) { Ok(rate) } else { Err("expected a number from 0 to 1000".to_owned()) }
}

/// Runs until somebody interrupts it.
pub(crate) fn run(dev: Dev) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|source| Failure::System { what: "cannot start threads", source })?;
    runtime.block_on(work(dev))
}

async fn work(dev: Dev) -> Result<(), Failure> {
    // Before anything else: whoever interrupts a start gets a clean stop, too.
    let interrupted = tokio::spawn(tenure::shutdown_signal());
    let screen = Arc::new(Screen::open());
    let home = match (&dev.db, dev.memory) {
        (Some(db), _) => Home::named(db),
        (None, true) => Home::in_memory(),
        (None, false) => Home::usual()?,
    };
    let past = dev.seed.then(CatchingUp::new);
    let tenure = open_store(&home, past.as_ref()).await?;
    let server = http::server(&tenure, dev.port).await?;
    introduce(&tenure, &dev, server.as_ref(), &screen);
    if let (true, Some(server)) = (dev.open, &server) {
        show_pages(&format!("http://{}/ui/", server.address()), &screen);
    }
    let left = unfinished(&standings(&tenure).await?);
    if left > 0 {
        screen.line(&format!("picked up {left} {} left from last time", plural(left)));
    }
    screen.line("");
    let going_on = match &past {
        Some(past) => Some(seed::begin(&tenure, past, server.as_ref()).await?),
        None => None,
    };
    let (end, ended) = oneshot::channel();
    let show = Show { tenure: tenure.clone(), screen: Arc::clone(&screen), seen: Seen::default() };
    let show = tokio::spawn(show.run(tenure.events(), ended));
    let flow = tokio::spawn(flow::run(tenure.clone(), dev.jobs_per_second));
    let (served, serving) = http::serve(&tenure, server);
    let flowing = flow.abort_handle();
    let stop = async {
        // It ends early only if the runtime does, and then stopping is right as well.
        let _ = interrupted.await;
        flowing.abort();
        drop(going_on);
        drop(serving);
        announce_stop(&tenure, &screen).await;
    };
    let worked = work_until(&tenure, stop, &screen).await;
    let _ = served.await;
    // A flow that fell over did so on the same store; its reason is worth more than silence.
    let flowed = if flow.is_finished() { flow.await.ok() } else { None };
    let _ = end.send(());
    let seen = show.await.unwrap_or_default();
    worked?;
    flowed.transpose()?;
    let left = unfinished(&standings(&tenure).await?);
    tenure.close().await?;
    farewell(seen, left, &home, &screen);
    Ok(())
}

/// Works until it is to stop. A worker that operators have told to end ends, and what else there is goes on.
async fn work_until(
    tenure: &Tenure,
    stop: impl Future<Output = ()>,
    screen: &Screen,
) -> Result<(), tenure::Error> {
    let (over, mut stop) = (CancellationToken::new(), std::pin::pin!(stop));
    let worked = kinds::worker(tenure).run(async {
        stop.as_mut().await;
        over.cancel();
    });
    let stopped = worked.await?;
    if stopped.told && !over.is_cancelled() {
        screen.line("the worker was told to end and does no more jobs; start again for another one");
        stop.await;
    }
    Ok(())
}

/// The store; what is filled in has happened by a clock that begins in the past.
async fn open_store(home: &Home, past: Option<&CatchingUp>) -> Result<Tenure, Failure> {
    let options = OpenOptions::new().measured();
    let options = match past {
        Some(past) => options.clock(Arc::new(past.clone())),
        None => options,
    };
    Ok(options.open(&home.url).await?)
}

fn show_pages(url: &str, screen: &Screen) {
    if !shown_in_browser(url) {
        screen.line(&format!("there is no browser to open {url} with"));
    }
}

/// One line for each thing that was opened.
fn introduce(tenure: &Tenure, dev: &Dev, server: Option<&tenure_http::Server>, screen: &Screen) {
    let name = |name: &str| screen.paint(Tone::Busy, &format!("{name:<7}"));
    let queues = kinds::QUEUES.map(|(queue, slots)| format!("{queue} ({slots} slots)")).join(", ");
    screen.line(&format!("{} {}", name("store"), tenure.store().describe()));
    screen.line(&format!("{} queues {queues}; kinds {}", name("worker"), kinds::KINDS.join(", ")));
    let (timer, when) = kinds::TIMER;
    let meaning = when.parse::<Schedule>().map_or_else(|_| when.to_owned(), |when| when.describe());
    screen.line(&format!("{} {timer}: echo, {meaning}", name("timer")));
    screen.line(&match server {
        Some(server) => {
            let address = server.address();
            let pages = format!("{} http://{address}/ui/", name("pages"));
            format!("{} http://{address}; try curl -L http://{address}/demo/stars\n{pages}", name("http"))
        }
        None => format!("{} port {} is in use; --port says another", name("http"), http::PORT),
    });
    if dev.seed {
        screen.line(&format!(
            "{} a shop that does not exist; its last hours take a moment, and it goes on",
            name("seed")
        ));
    }
    let rate = dev.jobs_per_second;
    let then = if rate > 0.0 { format!(", then {rate} in a second") } else { String::new() };
    screen.line(&format!("{} a handful of demo jobs{then}; Ctrl-C stops", name("flow")));
}

async fn announce_stop(tenure: &Tenure, screen: &Screen) {
    let running = standings(tenure).await.map(|all| {
        all.iter().filter(|(state, _)| *state == StateName::Running).map(|(_, jobs)| *jobs).sum::<u64>()
    });
    let text = match running {
        Ok(0) => "stopping".to_owned(),
        Ok(jobs) => {
            format!("stopping: finishing {jobs} {}, press Ctrl-C again to stop at once", plural(jobs))
        }
        Err(_) => "stopping, press Ctrl-C again to stop at once".to_owned(),
    };
    screen.line(&format!("\n{text}"));
}

fn farewell(seen: Seen, left: u64, home: &Home, screen: &Screen) {
    let Seen { enqueued, succeeded, failed, retried, missed } = seen;
    let at_least = if missed > 0 { "at least " } else { "" };
    screen.line(&format!(
        "\nstopped: {at_least}{enqueued} enqueued, {succeeded} succeeded, {failed} failed, {retried} retried"
    ));
    screen.line(&match (&home.kept_in, left) {
        (None, 0) => "the jobs were in memory and are gone".to_owned(),
        (None, left) => format!("the jobs were in memory and are gone, {left} of them unfinished"),
        (Some(place), 0) => format!("all jobs have ended; they are kept in {place}"),
        (Some(place), left) => format!("{left} {} left in {place}; start again and they go on", plural(left)),
    });
}

fn plural(jobs: u64) -> &'static str {
    if jobs == 1 { "job" } else { "jobs" }
}
