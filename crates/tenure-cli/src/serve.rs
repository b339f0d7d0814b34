//! `tenure serve`: jobs over HTTP, for programs in any language.

use std::net::SocketAddr;

use clap::Args;
use tenure::Tenure;
use tenure_http::{Options, Server};

use crate::dev::url_of;
use crate::exit::Failure;
use crate::screen::{Screen, Tone};

/// What can be said to `tenure serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Keeps the jobs in this SQLite file (a path or a sqlite:// URL) or PostgreSQL database (a postgres:// URL)
    #[arg(long, value_name = "FILE|URL", env = "TENURE_DATABASE_URL", hide_env_values = true)]
    db: String,
    /// Where it listens: an address of this machine itself
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8368")]
    bind: SocketAddr,
    /// A name by which it may be addressed beside localhost, such as that of the proxy before it; may be said often
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
}

/// Serves until somebody interrupts it.
pub(crate) fn run(serve: Serve) -> Result<(), Failure> {
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
    (options.bind, options.hosts) = (serve.bind, serve.hosts);
    let server = Server::bind(&tenure, options).await?;
    let name = |name: &str| screen.paint(Tone::Busy, &format!("{name:<7}"));
    screen.line(&format!("{} {}", name("store"), tenure.store().describe()));
    screen.line(&format!("{} http://{}, described at /openapi.json", name("http"), server.address()));
    screen.line(&format!(
        "{} none here: jobs wait for workers that claim them, and for programs that run them",
        name("worker")
    ));
    server
        .run(async {
            // It ends early only if the runtime does, and then stopping is right as well.
            let _ = interrupted.await;
            screen.line("\nstopping: what is under way is finished, press Ctrl-C again to stop at once");
        })
        .await;
    tenure.close().await?;
    screen.line("stopped");
    Ok(())
}
