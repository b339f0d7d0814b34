//! What the programs of a host find of it, and what they may use.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tenure_apps::{App, Limits};
use tenure_program::{Account, Confinement, Enforcement, Inherited, Rights, Sandbox};

use super::place::{Copy, DATA, WORK, own_names};
use crate::program::{BEST_EFFORT, Hidden, confinement, exposed, of_processes, rights};

/// Modes of a sandbox.
const REQUIRED: &str = "required";
const BEST: &str = "best_effort";

/// What the operator of a host says of all its programs.
#[derive(Debug, Clone, Default)]
pub(super) struct Bounds {
    /// Variables that they find although they are the host's own.
    pub(super) pass_env: Vec<String>,
    /// The most that each of them may use, whatever its own settings say.
    pub(super) limits: Limits,
    /// True if programs may gain privileges. Their own settings can still forbid it.
    pub(super) allows_new_privs: bool,
    /// Confinement of each of them. Their own settings can only add to it.
    pub(super) confinement: Confinement,
    /// Folders that hold the programs, without symbolic links.
    pub(super) roots: Vec<PathBuf>,
    /// Files of the host that no program in a sandbox may read.
    pub(super) hidden: Vec<Hidden>,
}

impl Bounds {
    /// What this app finds of the host's environment.
    pub(super) fn inherits(&self, app: &App) -> Inherited {
        Inherited::Guarded {
            only: app.settings.env_from.clone(),
            also: self.pass_env.clone(),
            withheld: crate::secrets::variables(),
        }
    }

    /// Returns the limits of this app: of each limit, the lower one.
    pub(super) fn all_limits(&self, app: &App) -> Limits {
        app.settings.limits.and(self.limits)
    }

    /// What this app may use.
    pub(super) fn limits(&self, app: &App) -> tenure_program::Limits {
        of_processes(self.all_limits(app))
    }

    /// Returns the rights of this app: those of all programs, less what its own settings forbid.
    pub(super) fn rights(&self, app: &App) -> Rights {
        let rights = rights(self.allows_new_privs);
        Rights { no_new_privs: rights.no_new_privs || app.settings.no_new_privs, ..rights }
    }

    /// Returns the user that this app runs as, if it is not that of the host.
    pub(super) fn user(&self, app: &App) -> Result<Option<Account>, String> {
        match (&self.confinement.user, &app.settings.user) {
            (Some(user), Some(named)) if user.name != *named => {
                Err(format!("user: invalid value {named:?}; this host allows only {:?}", user.name))
            }
            (Some(user), _) => Ok(Some(user.clone())),
            (None, Some(named)) => Account::named(named).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// Returns true if a program that can run has another user than the host.
    pub(super) fn has_other_users(&self, apps: &[App]) -> bool {
        apps.iter().any(|app| app.runs() && self.user(app).is_ok_and(|user| user.is_some()))
    }

    /// Returns the folder of this app, and the number of last names in its path that must not be links.
    ///
    /// The folder of an app in a sandbox must be below a folder of programs and outside the state of the host, also if a link
    /// leads to it. The sandbox lets the app read this folder, and the author of a program must not choose any other one.
    pub(super) fn folder(&self, app: &App, state: &Path) -> Result<(PathBuf, usize), String> {
        if self.confinement.sandboxes.is_empty() && app.settings.sandbox.is_none() {
            let is_of_other = self.user(app)?.is_some();
            return Ok((app.folder.clone(), if is_of_other { own_names(app) } else { 0 }));
        }
        let folder = fs::canonicalize(&app.folder)
            .map_err(|error| format!("cannot find {} for the sandbox: {error}", app.folder.display()))?;
        let names = self.roots.iter().find_map(|root| folder.strip_prefix(root).ok());
        let Some(names) = names.map(|below| below.components().count()) else {
            return Err(format!(
                "it runs in a sandbox, so no link may lead its folder out of the folder of programs, to {}; move its files",
                folder.display()
            ));
        };
        if folder == state || is_of_host(&folder, state) {
            return Err(format!(
                "it runs in a sandbox, so its folder must not be in the state of the host, {}",
                state.display()
            ));
        }
        if self.mode(app) == REQUIRED {
            self.exposed_to(app, &folder, state).map_or(Ok(()), Err)?;
        }
        Ok((folder, names))
    }

    /// Returns the files that the sandbox of the host cannot hide, in words.
    pub(super) fn exposed(&self) -> Option<String> {
        self.shown(&self.confinement.sandboxes)
    }

    fn shown(&self, sandboxes: &[Sandbox]) -> Option<String> {
        if sandboxes.is_empty() {
            return None;
        }
        // The operator may list the folder of programs, but every sandbox can read the folders of the system.
        let root = |root: &PathBuf| Hidden::path(root, "move the folder of programs");
        let roots: Vec<Hidden> = self.roots.iter().map(root).collect();
        let shown = [exposed(&self.hidden, sandboxes), exposed(&roots, &[Sandbox::default()])];
        let shown: Vec<String> = shown.into_iter().flatten().collect();
        (!shown.is_empty()).then(|| shown.join("; "))
    }

    /// Returns the files that the sandbox of an app in this folder cannot hide, in words.
    fn exposed_to(&self, app: &App, folder: &Path, state: &Path) -> Option<String> {
        let mut sandboxes = self.sandboxes(app);
        let data = state.join(DATA).join(app.sort.word()).join(&app.name);
        sandboxes.iter_mut().for_each(|sandbox| sandbox.write.push(data.clone()));
        self.shown(&sandboxes).or_else(|| {
            // The folder without the state, which may be in it.
            sandboxes.iter_mut().for_each(|sandbox| sandbox.read.push(folder.to_owned()));
            let hidden: Vec<Hidden> = self.hidden.iter().map(|hidden| hidden.outside(state)).collect();
            exposed(&hidden, &sandboxes)
        })
    }

    /// Returns the confinement of a run of this app, which cannot see the rest of the host's `state`.
    pub(super) fn confinement(
        &self,
        app: &App,
        (copy, data): (&Copy, &Path),
        state: &Path,
    ) -> Result<Confinement, String> {
        let mut confined = self.confinement_of(app)?;
        if confined.sandboxes.is_empty() {
            return Ok(confined);
        }
        let fail = |error| format!("cannot list {} for the sandbox: {error}", app.folder.display());
        let readable = all_but(&self.folder(app, state)?.0, state).map_err(fail)?;
        for sandbox in &mut confined.sandboxes {
            sandbox.read_if_there.extend(readable.iter().cloned());
            sandbox.write.push(data.to_owned());
            sandbox.write.extend(copy.is_own.then(|| copy.path.clone()));
        }
        Ok(confined)
    }

    /// Checks that this machine can confine the app as its settings require. If not, the app cannot run, or gets a note. If the
    /// app runs from a copy as another user, its folder must not be a link. Checks also [`folder`](Self::folder) and the files that
    /// its sandbox cannot hide.
    pub(super) fn check(&self, app: &mut App, state: &Path) {
        let is_link = app.folder.ancestors().take(own_names(app)).any(Path::is_symlink);
        if is_link
            && app.settings.is_in_place != Some(true)
            && self.user(app).is_ok_and(|user| user.is_some())
        {
            app.wrong.push("it runs as another user, so its folder must not be a symbolic link".to_owned());
        }
        // A folder that cannot be read has its own message.
        if app.runs() {
            app.wrong.extend(self.folder(app, state).err());
        }
        if self.mode(app) == BEST {
            app.notes.extend(fs::canonicalize(&app.folder).ok().and_then(|folder| {
                let why = self.exposed_to(app, &folder, state)?;
                // The host has said it of its own sandbox.
                (self.exposed().as_ref() != Some(&why)).then_some(why)
            }));
        }
        match self.confinement_of(app).and_then(|confined| confined.check()) {
            Ok(notes) => app.notes.extend(notes),
            Err(why) if app.settings.user.is_some() => app.wrong.push(why),
            Err(why) => app.wrong.push(format!("{why}; {BEST_EFFORT}")),
        }
    }

    /// Describes the mode of the sandbox.
    pub(super) fn mode(&self, app: &App) -> &'static str {
        match self.sandboxes(app).iter().map(|sandbox| sandbox.enforcement).max() {
            None => "off",
            Some(Enforcement::BestEffort) => BEST,
            Some(Enforcement::Required) => REQUIRED,
        }
    }

    fn confinement_of(&self, app: &App) -> Result<Confinement, String> {
        let user = self.user(app)?;
        Ok(confinement(self.sandboxes(app), self.all_limits(app), user))
    }

    /// Returns two sandboxes, one within the other: the app's settings cannot give it what the host does not allow.
    fn sandboxes(&self, app: &App) -> Vec<Sandbox> {
        let own = app.settings.sandbox.as_ref().map(own);
        self.confinement.sandboxes.iter().cloned().chain(own).collect()
    }
}

/// Returns this folder, or as much of its content as does not lead to the hidden one. A sandbox can only add paths.
///
/// Leaves out symbolic links: a rule for a link would let the program read the target, which may be anywhere.
fn all_but(folder: &Path, hidden: &Path) -> io::Result<Vec<PathBuf>> {
    if !hidden.starts_with(folder) {
        return Ok(vec![folder.to_owned()]);
    }
    let mut readable = Vec::new();
    // From the folder down to the one that has the hidden one in it.
    let mut way: Vec<&Path> =
        hidden.ancestors().skip(1).take_while(|above| above.starts_with(folder)).collect();
    while let Some(above) = way.pop() {
        for entry in fs::read_dir(above)? {
            let path = entry?.path();
            match path.symlink_metadata() {
                _ if hidden.starts_with(&path) => {}
                Ok(found) if found.is_symlink() => {}
                Ok(_) => readable.push(path),
                // Deleted since the folder was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(readable)
}

/// Returns true if this folder is below the state of the host. Programs may lie beside its data and working copies.
fn is_of_host(folder: &Path, state: &Path) -> bool {
    [DATA, WORK].iter().any(|name| folder.starts_with(state.join(name)))
}

fn own(said: &tenure_apps::Sandbox) -> Sandbox {
    Sandbox {
        enforcement: if said.is_best_effort { Enforcement::BestEffort } else { Enforcement::Required },
        read: said.read.iter().map(Into::into).collect(),
        read_if_there: Vec::new(),
        write: said.write.iter().map(Into::into).collect(),
        connect: said.connect.clone(),
        bind: said.bind.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_readable_but_for_the_hidden_one_below_it() {
        let root = tempfile::tempdir().unwrap();
        let top = root.path();
        fs::create_dir_all(top.join("below/.tenure/data")).unwrap();
        fs::create_dir_all(top.join("lib")).unwrap();
        fs::write(top.join("below/run.sh"), "").unwrap();
        let readable = |folder: &Path| {
            let mut all = all_but(folder, &top.join("below/.tenure")).unwrap();
            all.sort();
            all
        };
        assert_eq!(readable(top), [top.join("below/run.sh"), top.join("lib")]);
        assert_eq!(readable(&top.join("lib")), [top.join("lib")]);
        assert!(readable(&top.join("below/.tenure")).is_empty());
        std::os::unix::fs::symlink("/", top.join("below/link")).unwrap();
        std::os::unix::fs::symlink(".tenure", top.join("below/state")).unwrap();
        assert_eq!(readable(top), [top.join("below/run.sh"), top.join("lib")], "links are left out");
    }
}
