//! Where the programs of a host run, and where they keep what is theirs.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use tenure_apps::App;
use tenure_program::{Account, remove_folder};
use tokio::runtime::Handle;

use super::copying::{self, Outward};
use super::deploy::of_its_name;
use super::host::Host;
use super::trusted;
use crate::exit::Failure;
use crate::files;
use crate::screen::complain;

/// Folder below the state of a host for data of its programs.
pub(super) const DATA: &str = "data";
/// Folder below the state of a host for working copies.
pub(super) const WORK: &str = "work";

/// The places of one host.
#[derive(Debug)]
pub(super) struct Places {
    /// Folder of all that follows, and of the store by default.
    pub(super) state: PathBuf,
    /// What is there for the next run as well.
    data: PathBuf,
    /// Working copies of this host.
    work: PathBuf,
    /// Locked for as long as this host lives: what has no such lock was left behind by one that was killed.
    _lock: File,
    /// The thread that removes the files of dead hosts.
    _cleaning: Option<JoinHandle<()>>,
}

/// A working copy, which goes with the run.
#[derive(Debug)]
pub(super) struct Copy {
    /// Where the program runs.
    pub(super) path: PathBuf,
    /// False if it is the program's own folder after all.
    pub(super) is_own: bool,
}

impl Places {
    /// Makes them below this folder, and removes what dead hosts have left there.
    pub(super) fn open(state: &Path, host: &str) -> Result<Self, Failure> {
        let all = state.join(WORK);
        let work = all.join(host);
        let fail = |source| Failure::Folder { path: work.clone(), source };
        files::create_private_folder(&work).map_err(fail)?;
        let lock = files::private_file().create(true).truncate(false).open(lock_of(&work)).map_err(fail)?;
        lock.lock().map_err(fail)?;
        // Removing the files of dead hosts can take minutes, and no program waits for it.
        let remove = move || remove_what_dead_hosts_left(&all).iter().for_each(|trouble| complain(trouble));
        let cleaning = std::thread::spawn(remove);
        let state = fs::canonicalize(state).map_err(fail)?;
        Ok(Self {
            data: state.join(DATA),
            state,
            work: fs::canonicalize(&work).map_err(fail)?,
            _lock: lock,
            _cleaning: Some(cleaning),
        })
    }

    /// Where this app keeps what is to be there for its next run.
    pub(super) fn data(&self, app: &App, user: Option<&Account>) -> io::Result<PathBuf> {
        let path = self.data.join(app.sort.word()).join(&app.name);
        self.create(&path, user)?;
        Ok(path)
    }

    /// Where a run of this app takes place: its own folder, or a copy of it. The last `own` names of `folder`, the folder of the
    /// app, must not be links.
    ///
    /// Files are read with the rights of the program's user. Otherwise this user could move a file that only root can read into
    /// the folder of the program, and would get a copy of it.
    pub(super) fn copy(
        &self,
        app: &App,
        (folder, own): (&Path, usize),
        user: Option<&Account>,
        run: &str,
        stop: &AtomicBool,
    ) -> io::Result<Copy> {
        if app.settings.is_in_place == Some(true) {
            return Ok(Copy { path: app.folder.clone(), is_own: false });
        }
        let path = self.work.join(app.sort.word()).join(&app.name).join(run);
        self.create(&path, user)?;
        // After the check of its path: it is removed in any case.
        let copy = Copy { path, is_own: true };
        let copying = || copying::copy((folder, own), &copy.path, Outward::Kept, stop);
        match user {
            None => copying()?,
            Some(user) => user.act(copying)?.map_err(|error| explained(error, user))?,
        }
        Ok(copy)
    }

    /// Creates a folder of a program, and gives it to the program's user.
    fn create(&self, path: &Path, user: Option<&Account>) -> io::Result<()> {
        let Some(user) = user else { return files::create_private_folder(path) };
        let parent = path.parent().unwrap_or(path);
        trusted::check(parent)?;
        files::create_private_folder(path)?;
        // Again, because parts of the path may have been missing.
        trusted::check(parent)?;
        self.open_the_way_to(path)?;
        user.own(path)
    }

    /// Lets other users pass through the folders above this one. They still cannot list them.
    fn open_the_way_to(&self, path: &Path) -> io::Result<()> {
        let mut above = path.ancestors().skip(1).take_while(|folder| folder.starts_with(&self.state));
        above.try_for_each(|folder| fs::set_permissions(folder, fs::Permissions::from_mode(0o711)))
    }
}

/// Returns how many names at the end of the path of an app's folder another user may replace: its own, and that of the folder
/// for programs of its sort.
pub(super) fn own_names(app: &App) -> usize {
    let named = of_its_name(app);
    let sort = named.parent().and_then(Path::file_name);
    1 + usize::from(named != app.folder) + usize::from(sort.is_some_and(|sort| sort == app.sort.word()))
}

/// Where a run takes place, and where its app keeps what is to be there for the next one. Ends early if it shall stop.
pub(super) async fn ready<T>(
    host: &Arc<Host>,
    app: &Arc<App>,
    run: String,
    stopped: impl Future<Output = T>,
) -> Result<(Copy, PathBuf), String> {
    let (places, theirs, stop) = (Arc::clone(host), Arc::clone(app), Arc::new(AtomicBool::new(false)));
    let is_told = Arc::clone(&stop);
    // Copying blocks, and may take its time.
    let placing = tokio::task::spawn_blocking(move || {
        let user = places.bounds.user(&theirs).map_err(io::Error::other)?;
        let (folder, own) = places.bounds.folder(&theirs, &places.places.state).map_err(io::Error::other)?;
        let copy = places.places.copy(&theirs, (&folder, own), user.as_ref(), &run, &is_told)?;
        Ok::<_, io::Error>((copy, places.places.data(&theirs, user.as_ref())?))
    });
    tokio::pin!(placing);
    let placed = tokio::select! {
        biased;
        placed = &mut placing => placed,
        _ = stopped => {
            stop.store(true, Ordering::Relaxed);
            placing.await
        }
    };
    let placed = placed.map_err(|error| error.to_string())?;
    placed.map_err(|error| format!("cannot prepare its files: {error}"))
}

impl Drop for Places {
    fn drop(&mut self) {
        match remove_folder(&self.work) {
            Ok(()) => drop(fs::remove_file(lock_of(&self.work))),
            Err(error) => complain(&left_behind(&self.work, &error)),
        }
    }
}

/// Working copies that this process has removed.
static REMOVED: AtomicU64 = AtomicU64::new(0);

impl Drop for Copy {
    fn drop(&mut self) {
        if !self.is_own {
            return;
        }
        // Its name is free for the next attempt of this run at once.
        let number = REMOVED.fetch_add(1, Ordering::Relaxed);
        let aside = self.path.with_file_name(format!(".removed-{number}"));
        let path = match fs::rename(&self.path, &aside) {
            Ok(()) => aside,
            Err(_) => std::mem::take(&mut self.path),
        };
        let remove = move || {
            if let Err(error) = remove_folder(&path) {
                complain(&left_behind(&path, &error));
            }
        };
        // A program can leave millions of files, and the runtime's threads drive all other programs. Without a runtime, no
        // other program waits.
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(remove)),
            Err(_) => remove(),
        }
    }
}

/// Says what to do about a file that the program's user cannot read.
fn explained(error: io::Error, user: &Account) -> io::Error {
    if error.kind() != io::ErrorKind::PermissionDenied {
        return error;
    }
    let why = format!("{error}; it runs as user {:?}, who must be able to read all its files", user.name);
    io::Error::new(error.kind(), why)
}

fn left_behind(path: &Path, error: &io::Error) -> String {
    format!("cannot delete {}: {error}; the next host that starts retries", path.display())
}

fn lock_of(work: &Path) -> PathBuf {
    work.with_extension("lock")
}

/// Answers what could not be removed, in words. The lock stays with it, so that the next host knows that it is nobody's.
fn remove_what_dead_hosts_left(all: &Path) -> Vec<String> {
    let mut troubles = Vec::new();
    let Ok(entries) = fs::read_dir(all) else { return troubles };
    for path in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
        if path.extension().is_none_or(|it| it != "lock") {
            continue;
        }
        // Who has the lock lives.
        if !File::open(&path).is_ok_and(|lock| lock.try_lock().is_ok()) {
            continue;
        }
        let work = path.with_extension("");
        match remove_folder(&work) {
            Ok(()) => drop(fs::remove_file(&path)),
            Err(error) => troubles.push(left_behind(&work, &error)),
        }
    }
    troubles
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_apps::{Settings, Sort};

    fn app(folder: &Path) -> App {
        App {
            name: "a".to_owned(),
            sort: Sort::Triggered,
            folder: folder.to_owned(),
            command: Vec::new(),
            settings: Settings::usual(Sort::Triggered),
            wrong: Vec::new(),
            notes: Vec::new(),
            is_disabled: false,
        }
    }

    #[test]
    fn a_working_copy_goes_with_its_run_and_what_a_dead_host_left_with_the_next_host() {
        let folder = tempfile::tempdir().unwrap();
        let (source, state) = (folder.path().join("source"), folder.path().join("state"));
        fs::create_dir_all(source.join("below")).unwrap();
        fs::write(source.join("below/run.sh"), "true").unwrap();
        let places = Places::open(&state, "one").unwrap();
        let copy = places.copy(&app(&source), (&source, 0), None, "1", &AtomicBool::new(false)).unwrap();
        assert_eq!(fs::read_to_string(copy.path.join("below/run.sh")).unwrap(), "true");
        let path = copy.path.clone();
        let other = Places::open(&state, "two").unwrap();
        assert!(path.exists(), "its host lives");
        drop(copy);
        assert!(!path.exists());
        let left = places.copy(&app(&source), (&source, 0), None, "2", &AtomicBool::new(false)).unwrap();
        let path = left.path.clone();
        std::mem::forget(left);
        // Killed: its lock goes, and nothing else.
        let Places { _lock, .. } = &places;
        _lock.unlock().unwrap();
        let mut third = Places::open(&state, "three").unwrap();
        third._cleaning.take().unwrap().join().unwrap();
        assert!(!path.exists());
        drop(other);
        std::mem::forget(places);
    }
}
