//! `tenure serve`: jobs over HTTP, for programs in any language.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use clap::Args;
use tenure::{OpenOptions, PostgresOptions, Tenure, Worker};
use tenure_http::{
    Access, AuditFile, Egress, Grant, Grants, Hiding, Network, OidcOptions, Options, Server, SocketFile,
    TlsFiles, deliveries_that_hide,
};
use tenure_ui::Dashboard;
use tokio_util::sync::CancellationToken;

use crate::declared;
use crate::dev::url_of;
use crate::exit::Failure;
use crate::files;
use crate::keys::AtRest;
use crate::logs::Logs;
use crate::manager::Manager;
use crate::reload::Reload;
use crate::screen::{Screen, Tone, complain};
use crate::secrets;
use crate::settings::{Env, Flags, Layer, NO_ADDRESS, Resolved};
use crate::sign_in;
use crate::span::span;
use crate::traces;

/// The minimum of `--transfer-memory-mib`: one client may hold so much, for the largest single request.
const LEAST_TRANSFER_MIB: u32 = 16;
/// Bulk operations that a server does at once.
const BULK_AT_ONCE: usize = 2;
/// How long a server that others send requests to goes on answering: so long a balancer may need to notice.
const DRAIN_DELAY: Duration = Duration::from_secs(5);

/// Arguments of `tenure serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Settings file in place of ./tenure.toml [env: TENURE_CONFIG]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Use DATABASE_URL if no other setting names a database
    #[arg(long)]
    use_database_url: bool,
    #[command(flatten)]
    flags: Flags,
}

impl Serve {
    /// What counts now.
    pub(crate) fn settings(&self) -> Result<Resolved, Failure> {
        let mut resolved =
            Resolved::of_server(&Env::real(), self.flags.layer(), self.config.as_deref()).sound()?;
        if self.use_database_url {
            let shared = std::env::var("DATABASE_URL").ok().filter(|url| !url.is_empty());
            resolved.or_else("database.url", shared, "DATABASE_URL");
        }
        Ok(resolved)
    }
}

/// What a server is to be like.
struct Plan {
    url: String,
    schema: String,
    at_rest: AtRest,
    options: Options,
    fires: bool,
    delivers: bool,
    oidc: Option<OidcOptions>,
}

impl Plan {
    fn of(settings: &Resolved, surroundings: Duration) -> Result<Self, Failure> {
        let Some(url) = settings.text("database.url") else {
            let why = "no database configured: pass --db FILE|URL, or set TENURE_DATABASE_URL or url in [database] of tenure.toml";
            return Err(Failure::Usage(why.to_owned()));
        };
        let mut options = Options::default();
        options.only_socket = settings.text("server.bind") == Some(NO_ADDRESS);
        if !options.only_socket {
            options.bind = settings.parsed("server.bind", str::parse)?.unwrap_or(options.bind);
        }
        options.socket = socket(settings)?;
        options.hosts = settings.list("server.hosts").to_vec();
        let number = |text: &str| {
            text.parse::<u32>().map_err(|_| format!("invalid number {text:?}; expected a whole number"))
        };
        if let Some(most) = settings.parsed("server.connections_per_address", number)? {
            options.connections_per_address = usize::try_from(most).unwrap_or(usize::MAX);
        }
        if let Some(most) = settings.parsed("server.unknown_tokens_per_minute", number)? {
            options.unknown_tokens_per_minute = most;
        }
        if let Some(most) = settings.parsed("server.workers_per_token", number)? {
            options.workers_per_token = usize::try_from(most).unwrap_or(usize::MAX);
        }
        let enough = |text: &str| match number(text)? {
            mib @ 0..LEAST_TRANSFER_MIB => {
                Err(format!("{mib} is too small; the minimum is {LEAST_TRANSFER_MIB}"))
            }
            mib => Ok(mib),
        };
        if let Some(mib) = settings.parsed("server.transfer_memory_mib", enough)? {
            options.transfer_memory_mib = usize::try_from(mib).unwrap_or(usize::MAX);
        }
        if let Some(most) = settings.parsed("server.max_queues", number)? {
            options.max_queues = usize::try_from(most).unwrap_or(usize::MAX);
        }
        if let Some(most) = settings.parsed("server.queues_per_token", number)? {
            options.queues_per_token = Some(usize::try_from(most).unwrap_or(usize::MAX));
        }
        if let Some(most) = settings.parsed("server.kinds_per_token", number)? {
            options.kinds_per_token = usize::try_from(most).unwrap_or(usize::MAX);
        }
        if let Some(most) = settings.parsed("server.lease_names_per_token", number)? {
            options.lease_names_per_token = usize::try_from(most).unwrap_or(usize::MAX);
        }
        options.read_only = settings.is_on("server.read_only");
        options.drain_delay = settings.parsed("server.drain_delay", span)?.unwrap_or(surroundings);
        options.tls = tls(settings)?;
        options.egress = declared::may_call(settings);
        options.trusted_proxies = networks(settings, "server.trusted_proxies")?;
        options.grants = grants(settings)?;
        options.audit_file = settings.text("server.audit_log").map(audit_file).transpose()?;
        options.audit_collector =
            settings.text("server.audit_otlp").map(traces::audit_collector).transpose()?;
        let works = settings.is_on("server.worker");
        options.pushes = works;
        options.public_url = settings.text("server.public_url").map(str::to_owned);
        let hide = settings.list("server.hide");
        if !hide.is_empty() {
            options.hiding = Hiding::of(hide).map_err(|wrong| Failure::Library(wrong.into()))?;
        }
        options.kinds_together = !settings.is_on("telemetry.kind_labels");
        options.traces = traces::wanted(settings.text("telemetry.otlp"))?;
        options.access =
            if settings.text("server.auth") == Some("tokens") { Access::Tokens } else { Access::Open };
        if options.access == Access::Open && !settings.list("server.grants").is_empty() {
            let why = "grants need authentication; set --auth tokens";
            return Err(Failure::Usage(why.to_owned()));
        }
        options.proxy_sign_in = sign_in::proxy(settings, &options)?;
        let oidc = sign_in::oidc(settings, &options)?;
        Ok(Self {
            url: url_of(&secrets::database("database.url", url)?),
            at_rest: AtRest::of_settings(settings)?,
            schema: settings.text("database.schema").unwrap_or_default().to_owned(),
            delivers: works && !options.read_only,
            fires: settings.is_on("server.timers"),
            oidc,
            options,
        })
    }

    async fn open(&self) -> Result<Tenure, Failure> {
        let mut postgres = PostgresOptions::default();
        postgres.schema.clone_from(&self.schema);
        let options = OpenOptions::new().measured().postgres(postgres);
        Ok(self.at_rest.apply(options).open(&self.url).await?)
    }
}

/// Returns the Unix socket, if the settings name one.
fn socket(settings: &Resolved) -> Result<Option<SocketFile>, Failure> {
    let Some(path) = settings.text("server.socket") else { return Ok(None) };
    let mut socket = SocketFile::new(path);
    let mode = |text: &str| {
        let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
        mode.ok_or_else(|| format!("invalid mode {text:?}; expected octal digits such as 0660"))
    };
    socket.mode = settings.parsed("server.socket_mode", mode)?.unwrap_or(socket.mode);
    socket.group = settings.text("server.socket_group").map(str::to_owned);
    Ok(Some(socket))
}

/// Returns the files of TLS, if the settings name them.
fn tls(settings: &Resolved) -> Result<Option<TlsFiles>, Failure> {
    let client_ca = settings.text("server.tls_client_ca");
    let (cert, key) = match (settings.text("server.tls_cert"), settings.text("server.tls_key"), client_ca) {
        (Some(cert), Some(key), _) => (cert, key),
        (None, None, None) => return Ok(None),
        _ => return Err(Failure::Usage("TLS needs both --tls-cert FILE and --tls-key FILE".to_owned())),
    };
    let mut files = TlsFiles::new(cert, key);
    files.client_ca = client_ca.map(PathBuf::from);
    files.is_client_certificate_optional = settings.text("server.tls_client_auth") == Some("optional");
    Ok(Some(files))
}

fn audit_file(path: &str) -> Result<AuditFile, Failure> {
    AuditFile::open(Path::new(path)).map_err(|source| Failure::Output { path: path.into(), source })
}

fn networks(settings: &Resolved, name: &str) -> Result<Vec<Network>, Failure> {
    let ranges = settings.list(name).iter().map(|range| range.parse::<Network>());
    ranges.collect::<Result<_, _>>().map_err(|wrong| Failure::Invalid(format!("{name}: {wrong}")))
}

fn grants(settings: &Resolved) -> Result<Grants, Failure> {
    let rules = settings.list("server.grants").iter().map(|rule| rule.parse::<Grant>());
    let rules = rules.collect::<Result<_, _>>().map_err(|wrong| Failure::Library(wrong.into()))?;
    Ok(Grants::new(rules))
}

/// How long it goes on answering if nobody says so: somewhere a balancer has to notice, and at a terminal nobody does.
fn drain_delay(said: impl Fn(&str) -> bool, is_terminal: bool) -> Duration {
    let is_managed = ["KUBERNETES_SERVICE_HOST", "NOTIFY_SOCKET", "INVOCATION_ID"].into_iter().any(said);
    if is_managed && !is_terminal { DRAIN_DELAY } else { Duration::ZERO }
}

/// Serves until somebody interrupts it.
pub(crate) fn run(serve: Serve) -> Result<(), Failure> {
    // Programs of the same user must not read the database URL and secrets from this process.
    tenure_program::hide_this_process();
    let settings = serve.settings()?;
    let logs = Logs::of(&settings)?;
    for odd in Env::real().unknown() {
        tracing::warn!("{odd}");
    }
    files::allow_many();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|source| Failure::System { what: "cannot start threads", source })?;
    runtime.block_on(work(serve, settings, logs))
}

async fn work(serve: Serve, settings: Resolved, logs: Logs) -> Result<(), Failure> {
    // Before anything else: whoever interrupts a start gets a clean stop, too.
    let interrupted = tokio::spawn(tenure::shutdown_signal());
    let reload = Reload::listen()?;
    let screen = Arc::new(Screen::open());
    let is_said = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_terminal = std::io::stdout().is_terminal() || std::io::stderr().is_terminal();
    let plan = Plan::of(&settings, drain_delay(is_said, is_terminal))?;
    let tenure = plan.open().await?;
    let read_only = plan.options.read_only;
    let server = Server::bind(&tenure, plan.options.clone()).await?;
    let pages = Dashboard::over(&tenure, server.contract())
        .read_only(read_only)
        .behind(&path_of(plan.options.public_url.as_deref()));
    let oidc = plan.oidc.clone().map(|oidc| server.oidc(oidc)).transpose();
    let pages = match oidc.map_err(|wrong| Failure::Library(wrong.into()))? {
        Some(oidc) => pages.sign_in_with(oidc),
        None => pages,
    };
    let pages = pages.mounted();
    let server = server.merge(pages);
    introduce(&tenure, &server, &plan, &screen);
    if !read_only {
        declare(&server.own_contract(), &settings, &screen).await?;
    }
    let stop = CancellationToken::new();
    let beside = Beside {
        fires: plan.fires,
        delivers: plan.delivers,
        egress: plan.options.egress,
        hiding: plan.options.hiding,
    };
    let working = tokio::spawn(work_beside(tenure.clone(), beside, stop.clone()));
    let (routes, audit_file) = (server.own_contract(), plan.options.audit_file.clone());
    let contract = (routes, audit_file.clone());
    let reloading = reload.run((serve, settings), logs, contract, Arc::clone(&screen), server.tls());
    let reloading = tokio::spawn(reloading);
    let (manager, clock) = (Manager::of_environment(), tenure.store().clock());
    manager.is_ready();
    let serving = server.run(async {
        // It ends early only if the runtime does, and then stopping is right as well.
        let _ = interrupted.await;
        stop.cancel();
        reloading.abort();
        manager.is_stopping();
        screen.line("\nstopping: finishing open requests, press Ctrl-C again to stop at once");
    });
    let served = async {
        serving.await;
        // How it went was told when it ended.
        let _ = working.await;
        tenure.close().await
    };
    tokio::select! {
        biased;
        closed = served => {
            closed?;
            audit_file.iter().for_each(AuditFile::flush);
        }
        () = manager.tell_that_it_lives(&*clock) => {}
    }
    screen.line("stopped");
    Ok(())
}

/// The path under which others reach this server, which whoever stands before it takes off.
fn path_of(public_url: Option<&str>) -> String {
    let path = public_url.and_then(|url| url.split_once("://")?.1.split_once('/')).map(|(_, path)| path);
    path.unwrap_or_default().to_owned()
}

/// Brings about what the files declare. What is wrong with it keeps a server from starting, as other settings do.
async fn declare(routes: &Router, settings: &Resolved, screen: &Screen) -> Result<(), Failure> {
    // All of it or nothing: what would be refused is found before anything is otherwise.
    let may_call = declared::may_call(settings);
    let faults = declared::tried(&settings.declared, &may_call).await?;
    Resolved::of([Layer { faults, ..Layer::default() }]).sound()?;
    let applied = declared::apply(routes, &settings.declared).await?;
    applied.changed.iter().for_each(|change| screen.line(change));
    Resolved::of([Layer { faults: applied.faults, ..Layer::default() }]).sound().map(drop)
}

/// One line for each thing that was opened.
fn introduce(tenure: &Tenure, server: &Server, plan: &Plan, screen: &Screen) {
    let line = |name: &str, said: &str| {
        screen.line(&format!("{} {said}", screen.paint(Tone::Busy, &format!("{name:<9}"))));
    };
    line("database", &tenure.store().about().place);
    let scheme = if plan.options.tls.is_some() { "https" } else { "http" };
    if !plan.options.only_socket {
        line("http", &format!("{scheme}://{}, OpenAPI at /openapi.json", server.address()));
        line("dashboard", &format!("{scheme}://{}/ui/", server.address()));
    }
    if let Some(socket) = &plan.options.socket {
        line("socket", &format!("unix:{}, for local users with a grant", socket.path.display()));
    }
    let who = match plan.options.access {
        Access::Open => "open: no access token needed at this address",
        Access::Tokens => {
            "access token required; create one with `tenure token create --db … --name … --scope …`"
        }
    };
    line("access", who);
    let own = if plan.delivers { "; bulk operations run here" } else { "" };
    line("worker", &format!("none here: start one with the library or `tenure worker`{own}"));
    line(
        "webhooks",
        if plan.delivers { "delivered here, and jobs sent to push endpoints" } else { "not delivered here" },
    );
    line("schedules", if plan.fires { "fired here" } else { "not fired here" });
}

/// What the server does by itself.
struct Beside {
    fires: bool,
    delivers: bool,
    egress: Egress,
    hiding: Hiding,
}

/// Fires the timers of the store and delivers what webhooks are to be told, until told to stop. Without it requests are
/// answered all the same.
async fn work_beside(tenure: Tenure, beside: Beside, stop: CancellationToken) {
    let name = "tenure serve";
    let worked = match (beside.fires, beside.delivers) {
        (false, false) => return,
        (true, false) => {
            Worker::new(&tenure, ()).only_timers().heeds_nobody().name(name).run(stop.cancelled()).await
        }
        (fires, true) => {
            let worker = deliveries_that_hide(&tenure, &beside.egress, &beside.hiding);
            let worker = worker.bulk_operations(BULK_AT_ONCE).name(name);
            let worker = if fires { worker } else { worker.no_timers() };
            worker.run(stop.cancelled()).await
        }
    };
    if let Err(error) = worked {
        complain(&format!("schedules and webhooks have stopped on this server: {error}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_drains_where_others_send_requests_and_not_at_a_terminal() {
        let under = |name: &'static str| move |asked: &str| asked == name;
        for manager in ["KUBERNETES_SERVICE_HOST", "NOTIFY_SOCKET", "INVOCATION_ID"] {
            assert_eq!(drain_delay(under(manager), false), DRAIN_DELAY, "{manager}");
            assert_eq!(drain_delay(under(manager), true), Duration::ZERO, "{manager}");
        }
        assert_eq!(drain_delay(under("HOME"), false), Duration::ZERO);
    }

    #[test]
    fn what_a_proxy_takes_off_is_the_path_of_the_public_url() {
        for (url, path) in [
            (None, ""),
            (Some("https://jobs.example.com"), ""),
            (Some("https://jobs.example.com/"), ""),
            (Some("https://example.com/a/jobs-admin"), "a/jobs-admin"),
        ] {
            assert_eq!(path_of(url), path, "{url:?}");
        }
    }

    #[test]
    fn tls_needs_a_certificate_and_its_key() {
        let of = |said: &[(&str, &str)]| {
            let said = said.iter().map(|(key, file)| (format!("TENURE_SERVER__{key}"), (*file).to_owned()));
            let env = Env { variables: said.collect(), ..Env::default() };
            tls(&Resolved::of_server(&env, Layer::default(), None))
        };
        assert!(of(&[]).unwrap().is_none());
        for half in ["TLS_CERT", "TLS_KEY", "TLS_CLIENT_CA"] {
            assert_eq!(of(&[(half, "a.pem")]).unwrap_err().code(), 2, "{half}");
        }
        let pair = [("TLS_CERT", "a.pem"), ("TLS_KEY", "a.key"), ("TLS_CLIENT_CA", "ca.pem")];
        let files = of(&pair).unwrap().unwrap();
        assert!(files.client_ca == Some("ca.pem".into()) && !files.is_client_certificate_optional);
    }

    #[test]
    fn what_is_said_of_the_delay_goes_before_the_surroundings() {
        let spoken = |name: &'static str, value: &str| {
            let env = Env { variables: [(name.to_owned(), value.to_owned())].into(), ..Env::default() };
            let mut resolved = Resolved::of_server(&env, Layer::default(), None);
            resolved.or_else("database.url", Some("a.db".to_owned()), "a test");
            Plan::of(&resolved, DRAIN_DELAY).unwrap().options.drain_delay
        };
        assert_eq!(spoken("TENURE_SERVER__DRAIN_DELAY", "0s"), Duration::ZERO);
        assert_eq!(spoken("TENURE_SERVER__AUTH", "tokens"), DRAIN_DELAY);
    }
}
