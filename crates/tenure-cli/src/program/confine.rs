//! Limits, sandbox and user of the programs of a host or worker, as its flags name them.

use std::path::{Path, PathBuf, absolute};
use std::str::FromStr;

use clap::{Args, ValueEnum};
use tenure_apps::Limits;
use tenure_program::{Account, Confinement, Enforcement, GroupLimits, Sandbox, real_path};

use crate::exit::Failure;
use crate::screen::complain;

/// Flags that confine programs.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Confine {
    /// Limits of each program, such as memory=512MiB,cpu=600,total_memory=1GiB,tasks=200
    #[arg(long, value_name = "LIMITS", value_parser = limits)]
    limits: Option<Limits>,
    /// Let programs reach only their own files and those of the system
    #[arg(long, value_name = "MODE")]
    sandbox: Option<Mode>,
    /// More files and folders that programs in the sandbox may read
    #[arg(long, value_name = "PATHS", value_delimiter = ',', requires = "sandbox")]
    sandbox_read: Vec<PathBuf>,
    /// More files and folders that programs in the sandbox may change
    #[arg(long, value_name = "PATHS", value_delimiter = ',', requires = "sandbox")]
    sandbox_write: Vec<PathBuf>,
    /// TCP ports that programs in the sandbox may connect to, or none [default: any]
    #[arg(long, value_name = "PORTS", requires = "sandbox")]
    sandbox_connect: Option<Ports>,
    /// TCP ports that programs in the sandbox may listen on, or none [default: any]
    #[arg(long, value_name = "PORTS", requires = "sandbox")]
    sandbox_bind: Option<Ports>,
    /// Run programs as this user; needs root
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
}

/// Reaction to a kernel that cannot enforce a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Mode {
    /// Refuse to start
    Required,
    /// Warn, and start without it
    BestEffort,
}

/// Port numbers, or `none`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ports(Vec<u16>);

impl FromStr for Ports {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self(Vec::new()));
        }
        let port = |part: &str| {
            part.trim().parse().map_err(|_| format!("invalid port {part:?}; expected 0 to 65535"))
        };
        text.split(',').map(port).collect::<Result<_, _>>().map(Self)
    }
}

impl Confine {
    /// Returns the limits for each process.
    pub(crate) fn limits(&self) -> Limits {
        self.limits.unwrap_or_default()
    }

    /// Returns the confinement of all programs, and prints what this machine cannot enforce of it.
    ///
    /// # Errors
    ///
    /// If the machine lacks something that is required.
    pub(crate) fn confinement(&self) -> Result<Confinement, Failure> {
        let user = self.user.as_deref().map(Account::named).transpose().map_err(Failure::Usage)?;
        let sandboxes: Vec<Sandbox> = self.sandbox()?.into_iter().collect();
        let confinement = confinement(sandboxes, self.limits(), user);
        let notes = confinement.check().map_err(|why| Failure::Usage(format!("{why}; {BEST_EFFORT}")))?;
        notes.iter().for_each(|note| complain(note));
        if self.sandbox.is_some() && confinement.user.is_none() && rustix::process::geteuid().is_root() {
            complain(AS_ROOT);
        }
        Ok(confinement)
    }

    /// Refuses a sandbox that cannot hide files of the host, for this reason. If the sandbox is best effort, prints the reason.
    ///
    /// # Errors
    ///
    /// If the sandbox is required.
    pub(crate) fn check_hidden(&self, exposed: Option<&str>) -> Result<(), Failure> {
        match (self.sandbox, exposed) {
            (Some(Mode::Required), Some(why)) => Err(Failure::Usage(why.to_owned())),
            (Some(Mode::BestEffort), Some(why)) => {
                complain(why);
                Ok(())
            }
            (None, _) | (_, None) => Ok(()),
        }
    }

    fn sandbox(&self) -> Result<Option<Sandbox>, Failure> {
        let Some(mode) = self.sandbox else { return Ok(None) };
        let ports = |ports: &Option<Ports>| ports.as_ref().map(|ports| ports.0.clone());
        Ok(Some(Sandbox {
            enforcement: mode.into(),
            read: existing(&self.sandbox_read)?,
            read_if_there: Vec::new(),
            write: existing(&self.sandbox_write)?,
            connect: ports(&self.sandbox_connect),
            bind: ports(&self.sandbox_bind),
        }))
    }
}

/// Advice for a host that runs as root: Landlock does not check changes of a file's owner and mode.
const AS_ROOT: &str = "programs that run as root can escape the sandbox by changing file modes; set --user";
/// Advice for a machine that lacks something.
pub(crate) const BEST_EFFORT: &str = "with the sandbox best_effort, programs run without it";

impl From<Mode> for Enforcement {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Required => Self::Required,
            Mode::BestEffort => Self::BestEffort,
        }
    }
}

/// Puts the parts of a confinement together. Without a sandbox, its limits are required.
pub(crate) fn confinement(sandboxes: Vec<Sandbox>, limits: Limits, user: Option<Account>) -> Confinement {
    let enforcement = sandboxes.iter().map(|sandbox| sandbox.enforcement).max().unwrap_or_default();
    let Limits { total_memory, tasks, milli_cpus, .. } = limits;
    let limits = GroupLimits { memory: total_memory, tasks, milli_cpus };
    Confinement { sandboxes, limits, enforcement, user }
}

/// Returns the limits that need no cgroup.
pub(crate) fn of_processes(limits: Limits) -> tenure_program::Limits {
    let Limits { memory, processes, cpu, file, open_files, .. } = limits;
    tenure_program::Limits { memory, processes, cpu, file, open_files }
}

/// Reads limits in one flag, such as `memory=512MiB,processes=64`.
pub(crate) fn limits(said: &str) -> Result<Limits, String> {
    let mut limits = Limits::default();
    for part in said.split(',') {
        let (name, value) =
            part.split_once('=').ok_or_else(|| format!("expected NAME=VALUE, not {part:?}"))?;
        limits.set(name.trim(), value.trim())?;
    }
    Ok(limits)
}

/// The file that this command would run, if it is there.
pub(crate) fn executable(command: &std::ffi::OsStr) -> Option<PathBuf> {
    let named = Path::new(command);
    if named.components().count() > 1 {
        return absolute(named).ok().filter(|path| path.is_file());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(named)).find(|path| path.is_file())
}

/// Files of a host that its programs must not read.
#[derive(Debug, Clone)]
pub(crate) struct Hidden {
    paths: Vec<PathBuf>,
    advice: &'static str,
}

impl Hidden {
    /// Returns one path, with advice for a sandbox that cannot hide it.
    pub(crate) fn path(path: &Path, advice: &'static str) -> Self {
        Self { paths: vec![real_path(path)], advice }
    }

    /// Adds a SQLite file and the files that SQLite keeps beside it.
    pub(crate) fn and_store(mut self, file: &Path) -> Self {
        let file = real_path(file);
        let beside = |suffix: &str| {
            let mut name = file.clone().into_os_string();
            name.push(suffix);
            name.into()
        };
        self.paths.extend(["", "-wal", "-shm", "-journal"].map(beside));
        self
    }

    /// Returns the SQLite file of `--db`.
    pub(crate) fn store(file: &Path) -> Self {
        Self { paths: Vec::new(), advice: "pass another file with --db" }.and_store(file)
    }

    /// Leaves out everything in this folder.
    pub(crate) fn outside(&self, folder: &Path) -> Self {
        let paths = self.paths.iter().filter(|path| !path.starts_with(folder)).cloned().collect();
        Self { paths, ..*self }
    }

    /// Returns the first path that all these sandboxes show, in words.
    fn shown(&self, sandboxes: &[Sandbox]) -> Option<String> {
        let shown = |path: &PathBuf| {
            let above = sandboxes.iter().map(|sandbox| sandbox.shows(path)).collect::<Option<Vec<_>>>()?;
            let (path, above, advice) = (path.display(), above.last()?.display(), self.advice);
            Some(format!("the sandbox cannot hide {path}, because programs in it can read {above}; {advice}"))
        };
        self.paths.iter().find_map(shown)
    }
}

/// Returns the files of the host that these sandboxes together cannot hide from a program, in words.
pub(crate) fn exposed<'a>(
    hidden: impl IntoIterator<Item = &'a Hidden>,
    sandboxes: &[Sandbox],
) -> Option<String> {
    let all: Vec<String> = hidden.into_iter().filter_map(|hidden| hidden.shown(sandboxes)).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn existing(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let existing = |path: &PathBuf| {
        let fail = |source| Failure::Folder { path: path.clone(), source };
        path.metadata().and_then(|_| absolute(path)).map_err(fail)
    };
    paths.iter().map(existing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_said_in_one_flag() {
        let said = limits("memory=512MiB, processes=64").unwrap();
        assert_eq!((said.memory, said.processes, said.cpu), (Some(512 << 20), Some(64), None));
        for bad in ["memory", "memory=x", "disk=1", ""] {
            assert!(limits(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ports_are_numbers_or_none() {
        assert_eq!("443, 5432".parse(), Ok(Ports(vec![443, 5432])));
        assert_eq!("none".parse(), Ok(Ports(Vec::new())));
        for bad in ["", "http", "70000", "-1"] {
            assert!(bad.parse::<Ports>().is_err(), "{bad}");
        }
    }

    #[test]
    fn limits_are_required_unless_every_sandbox_is_best_effort() {
        let of = |sandboxes: &[Enforcement]| {
            let sandbox =
                |enforcement: &Enforcement| Sandbox { enforcement: *enforcement, ..Sandbox::default() };
            confinement(sandboxes.iter().map(sandbox).collect(), Limits::default(), None).enforcement
        };
        let (required, best_effort) = (Enforcement::Required, Enforcement::BestEffort);
        assert_eq!(of(&[]), required);
        assert_eq!(of(&[best_effort]), best_effort);
        assert_eq!(of(&[best_effort, required]), required);
    }
}
