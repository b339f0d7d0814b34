//! What the programs of a host find of it, what they may use, and as whom they run.

use tenure_apps::{App, Folder, Limits, Sort, check_name};
use tenure_program::{Account, Inherited, Rights};

use crate::exit::Failure;
use crate::output::safe;

/// What the operator of a host says of all its programs.
#[derive(Debug, Clone, Default)]
pub(super) struct Bounds {
    /// Variables that they find although they are the host's own.
    pub(super) pass_env: Vec<String>,
    /// The most that each of them may use, whatever its own settings say.
    pub(super) limits: Limits,
    /// As whom they run, if not as the host.
    pub(super) run_as: Vec<RunAs>,
    /// Whether none of them, nor what it starts, gets more rights than it has, whatever its own settings say.
    pub(super) no_new_privs: bool,
}

/// As whom programs of a host run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunAs {
    /// The only one that is meant; all that nothing else is said of if `None`.
    of: Option<(Sort, String)>,
    /// As it was said.
    said: String,
    account: Account,
}

impl Bounds {
    /// What this app finds of the host's environment.
    pub(super) fn inherits(&self, app: &App) -> Inherited {
        Inherited::Guarded { only: app.settings.env_from.clone(), also: self.pass_env.clone() }
    }

    /// What this app may use.
    pub(super) fn limits(&self, app: &App) -> tenure_program::Limits {
        let Limits { memory, processes, cpu, file, open_files } = app.settings.limits.and(self.limits);
        tenure_program::Limits { memory, processes, cpu, file, open_files }
    }

    /// As whom this app runs, and what it may become.
    pub(super) fn rights(&self, app: &App) -> Rights {
        Rights {
            identity: self.run_as(app).map(|found| found.account.identity),
            no_new_privs: self.no_new_privs || app.settings.no_new_privs,
        }
    }

    /// Who that is, as somebody has said it.
    pub(super) fn user(&self, app: &App) -> Option<&str> {
        self.run_as(app).map(|found| found.said.as_str())
    }

    /// What such a user finds in its environment of itself: not the name and the home of the host.
    pub(super) fn of_its_user(&self, app: &App) -> Vec<(String, std::ffi::OsString)> {
        let Some((name, home)) = self.run_as(app).and_then(|found| found.account.entry.clone()) else {
            return Vec::new();
        };
        let said = [("USER", name.clone().into()), ("LOGNAME", name.into()), ("HOME", home.into())];
        said.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }

    fn run_as(&self, app: &App) -> Option<&RunAs> {
        let is_it = |found: &&RunAs| {
            found.of.as_ref().is_some_and(|(sort, name)| *sort == app.sort && *name == app.name)
        };
        let all = || self.run_as.iter().find(|found| found.of.is_none());
        self.run_as.iter().find(is_it).or_else(all)
    }

    /// Looks whether it can be as it was said, before anything runs: whoever is misspelt would run as the host.
    ///
    /// # Errors
    /// In words, what cannot be.
    pub(super) fn check(&self, folder: &Folder) -> Result<(), Failure> {
        for (sort, name) in self.run_as.iter().filter_map(|found| found.of.as_ref()) {
            if !folder.apps.iter().any(|app| app.sort == *sort && app.name == *name) {
                let name = safe::line(name);
                return Err(Failure::NotThere(format!(
                    "--run-as names {sort}/{name}, and there is no such program"
                )));
            }
        }
        let is_root = rustix::process::geteuid().is_root();
        if self.run_as.is_empty() || is_root {
            return Ok(());
        }
        let why = "--run-as: only a host of root can run programs as somebody else; without it they run as the user of this host";
        Err(Failure::Invalid(why.to_owned()))
    }
}

/// Limits as they are said in one flag, such as `memory=512MiB,processes=64`.
pub(super) fn limits(said: &str) -> Result<Limits, String> {
    let mut limits = Limits::default();
    for part in said.split(',') {
        let (name, value) = part.split_once('=').ok_or_else(|| format!("{part:?} is no NAME=VALUE"))?;
        limits.set(name.trim(), value.trim())?;
    }
    Ok(limits)
}

/// As whom programs run, as it is said in one flag, such as `www-data` or `triggered/report=4711:4711`.
pub(super) fn run_as(said: &str) -> Result<RunAs, String> {
    let (of, user) = match said.split_once('=') {
        None => (None, said),
        Some((app, user)) => {
            let (sort, name) = app.split_once('/').unwrap_or((app, ""));
            let sort = Sort::of(sort).ok_or("allowed before the =: triggered/NAME or continuous/NAME")?;
            check_name(name).map_err(|wrong| wrong.to_string())?;
            (Some((sort, name.to_owned())), user)
        }
    };
    Ok(RunAs { of, said: user.to_owned(), account: Account::of(user)? })
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
    fn who_is_said_of_one_program_counts_for_it_before_who_is_said_of_all() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["triggered/a", "triggered/b", "continuous/a"] {
            std::fs::create_dir_all(folder.path().join(path)).unwrap();
            std::fs::write(folder.path().join(path).join("run.sh"), "true").unwrap();
        }
        let folder = tenure_apps::read(folder.path(), None, &|_| true).unwrap();
        let run_as = ["4711:4711", "triggered/a=4712:4713"].map(|said| run_as(said).unwrap()).to_vec();
        let bounds = Bounds { run_as, ..Bounds::default() };
        let users: Vec<_> = folder.apps.iter().map(|app| bounds.user(app)).collect();
        assert_eq!(users, [Some("4712:4713"), Some("4711:4711"), Some("4711:4711")]);
        assert_eq!(bounds.rights(&folder.apps[0]).identity.map(|it| (it.uid, it.gid)), Some((4712, 4713)));
        let other =
            Bounds { run_as: vec![super::run_as("triggered/c=4711:4711").unwrap()], ..Bounds::default() };
        assert!(other.check(&folder).unwrap_err().to_string().contains("triggered/c"));
        for bad in ["", "a=root", "triggered/=root", "sometimes/a=root", "triggered/a=no-such-user-here"] {
            assert!(super::run_as(bad).is_err(), "{bad}");
        }
    }
}
