//! `tenure run`: the programs of a folder run on this host.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tenure::apps::Standing;
use tenure::{OpenOptions, Singleton, Worker, limits};
use tenure_apps::{App, Folder, Overall, Sort};
use tenure_program::{hide_this_process, real_path};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::bounds::Bounds;
use super::continuous::{Office, keep};
use super::host::Host;
use super::orders::Orders;
use super::place::Places;
use super::timers::{keep_timers, kind, set_timers};
use super::{SET, identity, report, triggered, trusted};
use crate::dev::{file_of, folder as own_folder, place_in, url_of};
use crate::exit::Failure;
use crate::files;
use crate::keys::Keys;
use crate::manager::Manager;
use crate::program::{Confine, Hidden, end_orphans_twice};
use crate::screen::{Screen, complain};
use crate::span::span;

/// A program that was killed needs so long to be seen dead.
const KILLED: Duration = Duration::from_secs(5);
/// Files of the host's own folder.
const STORE: &str = "apps.db";

/// Arguments of `tenure run`.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Folder of programs
    folder: PathBuf,
    /// SQLite file or PostgreSQL database that all hosts share [default: FOLDER/.tenure/apps.db]
    #[arg(long, value_name = "FILE|URL", env = "TENURE_DATABASE_URL", hide_env_values = true, value_parser = crate::secrets::database_option())]
    db: Option<String>,
    #[command(flatten)]
    keys: Keys,
    /// Name of this set of programs; two folders on one database need two names [default: apps]
    #[arg(long, value_name = "NAME")]
    set: Option<String>,
    /// Folder for data and working copies [default: FOLDER/.tenure]
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// Number of triggered programs that run at once on this host
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1000))]
    slots: u16,
    /// Lease of what this host runs; other hosts take over after it if this one dies
    #[arg(long, value_name = "SPAN", value_parser = span, default_value = "15s")]
    lease: Duration,
    /// Keep 200 lines of each run of a continuous program, as Kudu does
    #[arg(long)]
    as_kudu: bool,
    /// Variables of the host to pass to programs, such as TENURE_URL or TENURE_*
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pass_env: Vec<String>,
    /// Let programs gain privileges, such as by sudo
    #[arg(long)]
    allow_new_privs: bool,
    #[command(flatten)]
    confine: Confine,
    /// Check the folder and run nothing
    #[arg(long)]
    check: bool,
}

impl Run {
    fn set(&self) -> &str {
        self.set.as_deref().unwrap_or(SET)
    }

    /// Returns the folder for data and working copies.
    fn state(&self) -> PathBuf {
        self.state.clone().unwrap_or_else(|| place_in(&self.folder))
    }

    /// Returns its files that no program in a sandbox may read.
    fn hidden(&self, state: &Path) -> Vec<Hidden> {
        let own = Hidden::path(state, "pass another folder with --state");
        match &self.db {
            None => vec![own.and_store(&state.join(STORE))],
            Some(db) => [own].into_iter().chain(file_of(db).as_deref().map(Hidden::store)).collect(),
        }
    }

    /// Creates that folder. If a program runs as another user, no other user may be able to replace it.
    fn create_state(&self, has_other_users: bool) -> Result<PathBuf, Failure> {
        let check = || if has_other_users { trusted(&self.state()) } else { Ok(()) };
        // Before anything is created, and after: in `/tmp`, another user may have been faster.
        check()?;
        let state = match &self.state {
            Some(state) => {
                let fail = |source| Failure::Folder { path: state.clone(), source };
                files::create_private_folder(state).map_err(fail)?;
                state.clone()
            }
            None => own_folder(&self.folder)?,
        };
        check()?;
        Ok(state)
    }
}

fn trusted(state: &Path) -> Result<(), Failure> {
    trusted::check(state).map_err(|source| Failure::Folder { path: state.to_owned(), source })
}

/// Runs until somebody interrupts it.
pub(crate) fn run(run: Run) -> Result<(), Failure> {
    files::allow_many();
    let screen = Screen::open();
    let overall = Overall::of(|name| std::env::var(name).ok());
    overall.wrong.iter().for_each(|wrong| complain(wrong));
    let root = overall.root.as_deref().map(Path::new);
    if overall.is_stopped {
        complain("WEBJOBS_STOPPED is set: this host runs no programs; other hosts continue");
    } else if overall.is_schedule_off {
        complain("WEBJOBS_DISABLE_SCHEDULE is set: this host starts no scheduled runs; other hosts continue");
    }
    let state = real_path(&run.state());
    let bounds = Bounds {
        pass_env: run.pass_env.clone(),
        limits: run.confine.limits(),
        allows_new_privs: run.allow_new_privs,
        confinement: run.confine.confinement()?,
        roots: roots(&run.folder, root),
        hidden: run.hidden(&state),
    };
    run.confine.check_hidden(bounds.exposed().as_deref())?;
    let mut folder = tenure_apps::read(&run.folder, root, &is_installed)
        .map_err(|error| Failure::Invalid(error.to_string()))?;
    folder.apps.iter_mut().for_each(|app| bounds.check(app, &state));
    report::tell(&folder, &screen);
    let running = folder.apps.iter().filter(|app| app.runs()).count();
    if bounds.has_other_users(&folder.apps) {
        trusted(&run.state())?;
    }
    if run.check {
        let wrong = folder.apps.len() - running;
        return if wrong == 0 {
            Ok(())
        } else {
            Err(Failure::Invalid(format!(
                "{wrong} {} cannot run",
                if wrong == 1 { "program" } else { "programs" }
            )))
        };
    }
    if running == 0 {
        return Err(Failure::NotThere(format!("no program in {} can run", run.folder.display())));
    }
    tenure::apps::check_set(run.set()).map_err(tenure::Error::from)?;
    // The environment has the access to the store: no program may read it from this process.
    hide_this_process();
    end_orphans_twice();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|source| Failure::System { what: "cannot start threads", source })?;
    let done = runtime.block_on(ordered(run, (folder, bounds), overall, screen));
    if matches!(done, Err(Failure::Interrupted)) {
        // Nobody waits any more for what still goes on.
        runtime.shutdown_background();
    }
    done
}

async fn ordered(run: Run, read: (Folder, Bounds), overall: Overall, screen: Screen) -> Result<(), Failure> {
    // Before anything else: whoever interrupts a start gets a clean stop, too.
    let orders = Orders::listen()?;
    let lease = run.lease.as_secs_f64();
    tokio::select! {
        biased;
        done = work(run, read, overall, screen, &orders) => done?,
        why = orders.are_over() => complain(&format!(
            "this host stops at once because {why}; runs whose end was not recorded start again when their lease of {lease} s expires"
        )),
    }
    if orders.kill.is_cancelled() { Err(Failure::Interrupted) } else { Ok(()) }
}

async fn work(
    run: Run,
    (folder, bounds): (Folder, Bounds),
    overall: Overall,
    screen: Screen,
    orders: &Orders,
) -> Result<(), Failure> {
    let state = run.create_state(bounds.has_other_users(&folder.apps))?;
    let db = run.db.clone().unwrap_or_else(|| state.join(STORE).display().to_string());
    let folder_id = identity::of(&run.folder, run.set.as_deref())?;
    let options = run.keys.at_rest()?.apply(OpenOptions::new().app(run.set()).program(&folder_id));
    let opened = options.open(&url_of(&db)).await;
    let tenure = opened.map_err(|error| identity::explained(error, &run.folder, &folder_id))?;
    let (id, node) = (tenure.new_id().to_string(), node());
    let places = Places::open(&state, &id)?;
    let host = Arc::new(Host::new(
        (&tenure, run.set(), &folder_id),
        (id, node),
        places,
        overall,
        (run.as_kudu, run.lease),
        bounds,
        orders.kill.clone(),
    ));
    let apps: Vec<Arc<App>> = folder.apps.into_iter().map(Arc::new).collect();
    apps.iter().for_each(|app| host.offers(app));
    host.look_what_is_stopped().await?;
    // Before any timer is ended: others that begin now see what this one has.
    host.offer().await?;
    for gone in set_timers(&host, &apps).await? {
        complain(&format!("deleted schedule {gone}: no host has its program any more"));
    }
    let stop = CancellationToken::new();
    let fresh = tokio::spawn(Arc::clone(&host).keep_fresh(stop.clone()));
    let timed = tokio::spawn(keep_timers(Arc::clone(&host), apps.clone(), stop.clone()));
    let mut everywhere = JoinSet::new();
    for app in apps.iter().filter(|app| app.sort == Sort::Continuous && begins(&host, app)) {
        if !app.settings.is_singleton {
            let office = Office::Everywhere(stop.clone());
            everywhere.spawn(keep(Arc::clone(&host), Arc::clone(app), office));
        }
    }
    let (manager, clock) = (Manager::of_environment(), tenure.store().clock());
    orders.begin();
    let database = tenure.store().about().place;
    screen.line(&format!("database {database}; set {}; folder {folder_id}; Ctrl-C stops", run.set()));
    manager.is_ready();
    let told = async {
        orders.stop.cancelled().await;
        stop.cancel();
        manager.is_stopping();
        screen.line("stopping: programs are asked to stop, press Ctrl-C again to kill them");
    };
    let working = async {
        match worker(&host, &apps, &run) {
            Some(worker) => worker.run(told).await,
            None => {
                told.await;
                Ok(tenure::Stopped::default())
            }
        }
    };
    let worked = tokio::select! {
        biased;
        worked = working => worked,
        () = manager.tell_that_it_lives(&*clock) => Ok(tenure::Stopped::default()),
    };
    if worked.as_ref().is_ok_and(|stopped| stopped.told) {
        screen.line("stopping: this host was asked to stop");
    }
    stop.cancel();
    while everywhere.join_next().await.is_some() {}
    // How it went was told when it ended.
    let (_, _) = (fresh.await, timed.await);
    drop(host);
    worked?;
    tenure.close().await?;
    screen.line("stopped");
    Ok(())
}

/// Whether this host begins it at all, as far as its files and its own environment go.
fn begins(host: &Host, app: &App) -> bool {
    app.runs() && !app.is_disabled && !host.overall.is_stopped
}

/// A worker for all that runs by jobs and under leases; none if nothing of that does here.
fn worker(host: &Arc<Host>, apps: &[Arc<App>], run: &Run) -> Option<Worker<Arc<Host>>> {
    let is_silent = host.overall.is_stopped || host.overall.is_schedule_off;
    let longest = apps.iter().map(|app| app.settings.stopping_wait).max().unwrap_or_default();
    let mut worker = Worker::new(&host.tenure, Arc::clone(host))
        .name(&format!("tenure run on {} (pid {})", host.node, std::process::id()))
        .lease(run.lease)
        .leaving(host.left.subscribe())
        // Programs have the time to stop that their settings say, from the beginning of the stop on.
        .finish_within(Duration::ZERO)
        .stop_grace(longest + KILLED);
    let (mut has_queue, mut has_singletons) = (false, false);
    for app in apps.iter().filter(|app| begins(host, app)) {
        let theirs = Arc::clone(app);
        match app.sort {
            Sort::Triggered => {
                has_queue = true;
                worker =
                    worker.raw_job(&kind(host, app), move |run| triggered::run(run, Arc::clone(&theirs)));
            }
            Sort::Continuous if app.settings.is_singleton => {
                has_singletons = true;
                host.stands(app, Standing::StandingBy, "");
                let singleton = Singleton::function().lease(run.lease);
                worker = worker.singleton_with(&app.name, singleton, move |duty| {
                    let host = Arc::clone(duty.app());
                    keep(host, Arc::clone(&theirs), Office::Alone(duty))
                });
            }
            Sort::Continuous => {}
        }
    }
    if is_silent {
        // A slot that nobody decides is caught up with later; one that is brought where its program does not run would wait.
        worker = worker.no_timers();
    }
    match (has_queue, has_singletons) {
        (true, _) => Some(worker.queue(&host.set, run.slots.into())),
        (false, true) => Some(worker),
        (false, false) => (!is_silent).then(|| worker.only_timers()),
    }
}

/// Returns the folders that hold the programs, without symbolic links.
fn roots(folder: &Path, other_root: Option<&Path>) -> Vec<PathBuf> {
    let all = [Some(folder.to_owned()), other_root.map(|root| folder.join(root))];
    all.into_iter().flatten().filter_map(|root| std::fs::canonicalize(root).ok()).collect()
}

/// The name of this machine.
fn node() -> String {
    let node = rustix::system::uname().nodename().to_string_lossy().into_owned();
    node.chars().take(limits::HOLDER_BYTES / 4).collect()
}

/// Whether a program of this name can be run here.
pub(super) fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| is_executable(&folder.join(program)))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
