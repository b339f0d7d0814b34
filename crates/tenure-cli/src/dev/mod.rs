//! `tenure dev`: the library at work, with nothing to set up.

mod board;
mod flow;
mod home;
mod http;
mod kinds;
mod line;
mod seed;
mod show;

use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use tenure::schedule::Schedule;
use tenure::{OpenOptions, StateName, Tenure};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use self::board::Board;
use self::seed::CatchingUp;
use self::show::{Seen, Show, standings, unfinished};
use crate::client::USUAL;
use crate::exit::Failure;
use crate::keys::{AtRest, Keys};
use crate::open::shown_in_browser;
use crate::output::counted;
use crate::screen::{self, Screen, Tone};

pub(crate) use self::home::{Home, folder, place_in};

/// The URL that a file's path stands for, or the URL itself.
pub(crate) fn url_of(db: &str) -> String {
    Home::named(db).url
}

/// Returns the SQLite file that a path or URL names.
pub(crate) fn file_of(db: &str) -> Option<PathBuf> {
    let home = Home::named(db);
    home.kept_in.filter(|file| home.url.starts_with("sqlite:") && file != ":memory:").map(PathBuf::from)
}

/// Arguments of `tenure dev`.
#[derive(Debug, Args)]
pub(crate) struct Dev {
    /// SQLite file or PostgreSQL database (postgres:// URL) [default: .tenure/dev.db]
    #[arg(long, value_name = "FILE|URL", conflicts_with = "memory", value_parser = crate::secrets::database_option())]
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
    #[command(flatten)]
    keys: Keys,
    /// Print every event, not only the end of each attempt
    #[arg(short, long)]
    verbose: bool,
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
    let tenure = open_store(&home, &dev.keys.at_rest()?, past.as_ref()).await?;
    let server = http::server(&tenure, dev.port).await?;
    introduce(&tenure, &dev, server.as_ref(), &screen);
    let block = block(&home, server.as_ref());
    let board = (screen::can_pin() && !dev.verbose).then(|| Board::new(block.clone()));
    if board.is_none() {
        screen.line("");
        block.iter().for_each(|line| screen.line(line));
    }
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
    let (is_verbose, seen) = (dev.verbose, Seen::default());
    let show = Show { tenure: tenure.clone(), screen: Arc::clone(&screen), seen, is_verbose, board };
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
        screen::unpin();
        announce_stop(&tenure, &screen).await;
    };
    let worked = work_until(&tenure, stop, &screen).await;
    let _ = served.await;
    // A flow that fell over did so on the same store; its reason is worth more than silence.
    let flowed = if flow.is_finished() { flow.await.ok() } else { None };
    let _ = end.send(());
    let seen = show.await.unwrap_or_default();
    screen::unpin();
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
        screen.line("the worker was asked to stop; restart `tenure dev` for another one");
        stop.await;
    }
    Ok(())
}

/// The store; what is filled in has happened by a clock that begins in the past.
async fn open_store(home: &Home, at_rest: &AtRest, past: Option<&CatchingUp>) -> Result<Tenure, Failure> {
    let options = at_rest.apply(OpenOptions::new().measured());
    let options = match past {
        Some(past) => options.clock(Arc::new(past.clone())),
        None => options,
    };
    Ok(options.open(&home.url).await?)
}

fn show_pages(url: &str, screen: &Screen) {
    if !shown_in_browser(url) {
        screen.line(&format!("found no browser to open {url}"));
    }
}

/// One line for each thing that was opened.
fn introduce(tenure: &Tenure, dev: &Dev, server: Option<&tenure_http::Server>, screen: &Screen) {
    let line = |name: &str, said: &str| {
        screen.line(&format!("{} {said}", screen.paint(Tone::Busy, &format!("{name:<9}"))));
    };
    let queues =
        kinds::QUEUES.map(|(queue, slots)| format!("{queue} ({})", counted(slots as u64, "slot"))).join(", ");
    line("database", &tenure.store().about().place);
    line("worker", &format!("queues {queues}; kinds {}", kinds::KINDS.join(", ")));
    let (timer, when) = kinds::TIMER;
    let meaning = when.parse::<Schedule>().map_or_else(|_| when.to_owned(), |when| when.describe());
    line("schedule", &format!("{timer}: echo, {meaning}"));
    match server {
        Some(server) => {
            let address = server.address();
            line("server", &format!("http://{address}"));
            line("try", &format!("curl -L http://{address}/demo/stars"));
        }
        None => line("server", &format!("none: port {} is in use; pass --port 0 for a free one", http::PORT)),
    }
    if dev.seed {
        line("seed", "a sample shop with a history of some hours, which takes a moment to load");
    }
    let rate = dev.jobs_per_second;
    let then = if rate > 0.0 { format!(", then {rate} per second") } else { String::new() };
    line("jobs", &format!("{} sample jobs{then}", flow::AT_START));
}

/// Where the dashboard is, and three commands to go on with.
fn block(home: &Home, server: Option<&tenure_http::Server>) -> Vec<String> {
    let (first, option) = match server {
        Some(server) => {
            let url = format!("http://{}", server.address());
            let option = if url == USUAL { String::new() } else { format!(" --url {url}") };
            (format!("Dashboard  {url}/ui/"), option)
        }
        None => {
            let option = home.kept_in.as_ref().map(|place| format!(" --db {place} --write"));
            (format!("Dashboard  none: port {} is in use", http::PORT), option.unwrap_or_default())
        }
    };
    let started_as = env::args_os().next().unwrap_or_default();
    let program = in_shell(&started_as.to_string_lossy(), &env::var_os("PATH").unwrap_or_default());
    vec![
        first,
        format!("Next       {program} submit echo '{{\"text\": \"hello\"}}' --wait{option}"),
        format!("           {program} job list{option}"),
        format!("           {program} top{option}"),
        "           Ctrl-C stops".to_owned(),
    ]
}

/// Returns the command that starts this program from the same folder: `cargo run` leaves it out of the `PATH`.
fn in_shell(started_as: &str, path: &OsStr) -> String {
    let is_on_path = env::split_paths(path).any(|folder| folder.join("tenure").is_file());
    match started_as {
        name if is_on_path || !name.contains('/') => "tenure".to_owned(),
        name if name.contains(char::is_whitespace) => format!("'{name}'"),
        name => name.to_owned(),
    }
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
        (Some(place), left) => {
            format!("{left} {} left in {place}; the next start resumes them", plural(left))
        }
    });
}

fn plural(jobs: u64) -> &'static str {
    if jobs == 1 { "job" } else { "jobs" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_start_with_a_name_that_the_shell_finds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().as_os_str();
        assert_eq!(in_shell("target/debug/tenure", path), "target/debug/tenure");
        assert_eq!(in_shell("/my tools/tenure", path), "'/my tools/tenure'");
        std::fs::write(folder.path().join("tenure"), "").unwrap();
        assert_eq!(in_shell("target/debug/tenure", path), "tenure");
        assert_eq!(in_shell("tenure", path), "tenure");
    }
}
