//! `tenure serve`: jobs over HTTP, for programs in any language.

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tenure::{Tenure, Worker};
use tenure_http::{Access, Hiding, Options, Server};
use tokio_util::sync::CancellationToken;

use crate::dev::url_of;
use crate::exit::Failure;
use crate::files;
use crate::screen::{Screen, Tone, complain};
use crate::span::span;

/// Bulk operations that a server does at once.
const BULK_AT_ONCE: usize = 2;

/// What can be said to `tenure serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Keeps the jobs in this SQLite file (a path or a sqlite:// URL) or PostgreSQL database (a postgres:// URL)
    #[arg(long, value_name = "FILE|URL", env = "TENURE_DATABASE_URL", hide_env_values = true)]
    db: String,
    /// Where it listens. On an address that other machines can reach only with --auth tokens
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8368")]
    bind: SocketAddr,
    /// A name by which it may be addressed beside localhost, such as that of the proxy before it; may be said often
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    /// Whether whoever asks has to show an access token (tokens) or nobody has (open); `tenure token create` makes one
    #[arg(long, value_name = "HOW", default_value = "open")]
    auth: Auth,
    /// Hides what has such a name, such as *password*, from those who only look; in place of the usual names; may be said often
    #[arg(long = "hide", value_name = "PATTERN")]
    hide: Vec<String>,
    /// Changes nothing, whoever asks
    #[arg(long)]
    read_only: bool,
    /// Goes on answering for so long after it was told to stop, and says that it is not ready, such as 5s behind a balancer
    #[arg(long, value_name = "SPAN", default_value = "0s", value_parser = span)]
    drain_delay: Duration,
    /// Fires no timers; some other program on the same store has to
    #[arg(long)]
    no_timer: bool,
    /// Does nothing that was asked for in bulk; some other server on the same store has to
    #[arg(long)]
    no_worker: bool,
}

/// Whether whoever asks has to say who he is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Auth {
    /// Nobody has
    Open,
    /// Everybody has, by an access token
    Tokens,
}

/// Serves until somebody interrupts it.
pub(crate) fn run(serve: Serve) -> Result<(), Failure> {
    files::allow_many();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|source| Failure::System { what: "the program's threads did not start", source })?;
    runtime.block_on(work(serve))
}

async fn work(serve: Serve) -> Result<(), Failure> {
    // Before anything else: whoever interrupts a start gets a clean stop, too.
    let interrupted = tokio::spawn(tenure::shutdown_signal());
    let screen = Screen::open();
    let tenure = Tenure::open(&url_of(&serve.db)).await?;
    let mut options = Options::default();
    (options.bind, options.hosts) = (serve.bind, serve.hosts.clone());
    (options.read_only, options.drain_delay) = (serve.read_only, serve.drain_delay);
    if !serve.hide.is_empty() {
        options.hiding = Hiding::of(&serve.hide).map_err(|wrong| Failure::Library(wrong.into()))?;
    }
    options.access = match serve.auth {
        Auth::Open => Access::Open,
        Auth::Tokens => Access::Tokens,
    };
    let server = Server::bind(&tenure, options).await?;
    introduce(&tenure, &server, &serve, &screen);
    let stop = CancellationToken::new();
    let own = own_worker(&tenure, &serve).map(|worker| tokio::spawn(work_beside(worker, stop.clone())));
    server
        .run(async {
            // It ends early only if the runtime does, and then stopping is right as well.
            let _ = interrupted.await;
            stop.cancel();
            screen.line("\nstopping: what is under way is finished, press Ctrl-C again to stop at once");
        })
        .await;
    if let Some(own) = own {
        // How it went was told when it ended.
        let _ = own.await;
    }
    tenure.close().await?;
    screen.line("stopped");
    Ok(())
}

/// One line for each thing that was opened.
fn introduce(tenure: &Tenure, server: &Server, serve: &Serve, screen: &Screen) {
    let line = |name: &str, said: &str| {
        screen.line(&format!("{} {said}", screen.paint(Tone::Busy, &format!("{name:<7}"))));
    };
    line("store", &tenure.store().describe());
    line("http", &format!("http://{}, described at /openapi.json", server.address()));
    let who = match serve.auth {
        Auth::Open => "anybody who can reach this address may ask everything",
        Auth::Tokens => {
            "whoever shows an access token; `tenure token create --db … --name … --scope …` makes one"
        }
    };
    line("access", who);
    let own =
        if serve.no_worker || serve.read_only { "" } else { "; what is asked for in bulk is done here" };
    line(
        "worker",
        &format!("none here: jobs wait for workers that claim them, and for programs that run them{own}"),
    );
    line(
        "timers",
        if serve.no_timer { "are not fired here" } else { "are fired here, whoever has set them" },
    );
}

/// What fires timers and does what servers were asked to do in bulk, if any of it is done here.
fn own_worker(tenure: &Tenure, serve: &Serve) -> Option<Worker<()>> {
    let worker = Worker::new(tenure, ()).name("tenure serve");
    match (serve.no_worker || serve.read_only, serve.no_timer) {
        (false, false) => Some(worker.bulk_operations(BULK_AT_ONCE)),
        (false, true) => Some(worker.bulk_operations(BULK_AT_ONCE).without_timers()),
        (true, false) => Some(worker.only_timers()),
        (true, true) => None,
    }
}

/// Works until told to stop. Without it requests are answered all the same.
async fn work_beside(worker: Worker<()>, stop: CancellationToken) {
    if let Err(error) = worker.run(stop.cancelled()).await {
        complain(&format!("neither timers nor bulk operations are looked after here any more: {error}"));
    }
}
