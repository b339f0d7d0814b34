//! `tenure serve`: jobs over HTTP, for programs in any language.

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tenure::{Tenure, Worker};
use tenure_http::{Access, Hiding, Network, Options, Server, deliveries};
use tenure_ui::Dashboard;
use tokio_util::sync::CancellationToken;

use crate::dev::url_of;
use crate::exit::Failure;
use crate::files;
use crate::manager::Manager;
use crate::screen::{Screen, Tone, complain};
use crate::span::span;
use crate::traces;

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
    /// Does nothing by itself: tells no webhooks, sends no jobs to push endpoints, does nothing that was asked for in bulk; some
    /// other server on the same store has to
    #[arg(long)]
    no_worker: bool,
    /// Where others reach this server, such as https://jobs.example.com: push endpoints are told [default: where it listens]
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Addresses that may be called although they are not public, such as 10.1.0.0/16; may be said often
    #[arg(long, value_name = "CIDR")]
    allow_callback_to: Vec<Network>,
    /// Tells a collector of OpenTelemetry what jobs go through, such as http://127.0.0.1:4318; OTEL_EXPORTER_OTLP_ENDPOINT
    /// says the same, and other variables of OpenTelemetry the rest
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
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
    options.allow_callback_to.clone_from(&serve.allow_callback_to);
    (options.pushes, options.public_url) = (!serve.no_worker, serve.public_url.clone());
    if !serve.hide.is_empty() {
        options.hiding = Hiding::of(&serve.hide).map_err(|wrong| Failure::Library(wrong.into()))?;
    }
    options.traces = traces::wanted(serve.otlp.as_deref())?;
    options.access = match serve.auth {
        Auth::Open => Access::Open,
        Auth::Tokens => Access::Tokens,
    };
    let server = Server::bind(&tenure, options).await?;
    let pages = Dashboard::over(&tenure, server.contract()).read_only(serve.read_only).mounted();
    let server = server.merge(pages);
    introduce(&tenure, &server, &serve, &screen);
    let stop = CancellationToken::new();
    let working = tokio::spawn(work_beside(tenure.clone(), Beside::of(&serve), stop.clone()));
    let (manager, clock) = (Manager::of_environment(), tenure.store().clock());
    manager.is_ready();
    let serving = server.run(async {
        // It ends early only if the runtime does, and then stopping is right as well.
        let _ = interrupted.await;
        stop.cancel();
        manager.is_stopping();
        screen.line("\nstopping: what is under way is finished, press Ctrl-C again to stop at once");
    });
    let served = async {
        serving.await;
        // How it went was told when it ended.
        let _ = working.await;
        tenure.close().await
    };
    tokio::select! {
        biased;
        closed = served => closed?,
        () = manager.tell_that_it_lives(&*clock) => {}
    }
    screen.line("stopped");
    Ok(())
}

/// One line for each thing that was opened.
fn introduce(tenure: &Tenure, server: &Server, serve: &Serve, screen: &Screen) {
    let line = |name: &str, said: &str| {
        screen.line(&format!("{} {said}", screen.paint(Tone::Busy, &format!("{name:<8}"))));
    };
    line("store", &tenure.store().describe());
    line("http", &format!("http://{}, described at /openapi.json", server.address()));
    line("pages", &format!("http://{}/ui/", server.address()));
    let who = match serve.auth {
        Auth::Open => "anybody who can reach this address may ask everything",
        Auth::Tokens => {
            "whoever shows an access token; `tenure token create --db … --name … --scope …` makes one"
        }
    };
    line("access", who);
    let delivers = !serve.no_worker && !serve.read_only;
    let own = if delivers { "; what is asked for in bulk is done here" } else { "" };
    line(
        "worker",
        &format!("none here: jobs wait for workers that claim them, and for programs that run them{own}"),
    );
    line(
        "webhooks",
        if delivers {
            "are told what happens, and push endpoints sent jobs"
        } else {
            "are told nothing by this server"
        },
    );
    line(
        "timers",
        if serve.no_timer { "are not fired here" } else { "are fired here, whoever has set them" },
    );
}

/// What the server does by itself.
struct Beside {
    fires: bool,
    delivers: bool,
    allowed: Vec<Network>,
}

impl Beside {
    fn of(serve: &Serve) -> Self {
        let delivers = !serve.no_worker && !serve.read_only;
        Self { fires: !serve.no_timer, delivers, allowed: serve.allow_callback_to.clone() }
    }
}

/// Fires the timers of the store and delivers what webhooks are to be told, until told to stop. Without it requests are
/// answered all the same.
async fn work_beside(tenure: Tenure, beside: Beside, stop: CancellationToken) {
    let name = "tenure serve";
    let worked = match (beside.fires, beside.delivers) {
        (false, false) => return,
        (true, false) => Worker::new(&tenure, ()).only_timers().name(name).run(stop.cancelled()).await,
        (fires, true) => {
            let worker = deliveries(&tenure, &beside.allowed).bulk_operations(BULK_AT_ONCE).name(name);
            let worker = if fires { worker } else { worker.no_timers() };
            worker.run(stop.cancelled()).await
        }
    };
    if let Err(error) = worked {
        complain(&format!("timers are not fired here any more, and webhooks not told: {error}"));
    }
}
