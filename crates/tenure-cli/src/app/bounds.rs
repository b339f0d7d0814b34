//! What the programs of a host find of it, and what they may use.

use std::path::Path;

use tenure_apps::{App, Limits};
use tenure_program::{Account, Confinement, Enforcement, Inherited, Rights, Sandbox};

use super::place::Copy;
use crate::program::{BEST_EFFORT, confinement, of_processes, rights};

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
}

impl Bounds {
    /// What this app finds of the host's environment.
    pub(super) fn inherits(&self, app: &App) -> Inherited {
        Inherited::Guarded { only: app.settings.env_from.clone(), also: self.pass_env.clone() }
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
                Err(format!("user: cannot be {named:?}, because this host runs programs as {:?}", user.name))
            }
            (Some(user), _) => Ok(Some(user.clone())),
            (None, Some(named)) => Account::named(named).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// Returns the confinement of a run of this app.
    pub(super) fn confinement(&self, app: &App, copy: &Copy, data: &Path) -> Result<Confinement, String> {
        let mut confined = self.confinement_of(app)?;
        confined.sandboxes = confined
            .sandboxes
            .into_iter()
            .map(|sandbox| {
                let sandbox = sandbox.and_read(&app.folder).and_read(&copy.path).and_write(data);
                if copy.is_own { sandbox.and_write(&copy.path) } else { sandbox }
            })
            .collect();
        Ok(confined)
    }

    /// Looks whether this machine can confine the app as its settings say. If not, the app cannot run, or gets a note.
    pub(super) fn check(&self, app: &mut App) {
        match self.confinement_of(app).and_then(|confined| confined.check()) {
            Ok(notes) => app.notes.extend(notes),
            Err(why) if app.settings.user.is_some() => app.wrong.push(why),
            Err(why) => app.wrong.push(format!("{why}; {BEST_EFFORT}")),
        }
    }

    /// Describes the mode of the sandbox.
    pub(super) fn mode(&self, app: &App) -> &'static str {
        let all = self.confinement.sandboxes.iter().cloned().chain(app.settings.sandbox.as_ref().map(own));
        match all.map(|sandbox| sandbox.enforcement).max() {
            None => "off",
            Some(Enforcement::BestEffort) => "best_effort",
            Some(Enforcement::Required) => "required",
        }
    }

    fn confinement_of(&self, app: &App) -> Result<Confinement, String> {
        let user = self.user(app)?;
        // Two sandboxes, one within the other: the app's settings cannot give it what the host does not allow.
        let sandboxes =
            self.confinement.sandboxes.iter().cloned().chain(app.settings.sandbox.as_ref().map(own));
        Ok(confinement(sandboxes.collect(), self.all_limits(app), user))
    }
}

fn own(said: &tenure_apps::Sandbox) -> Sandbox {
    Sandbox {
        enforcement: if said.is_best_effort { Enforcement::BestEffort } else { Enforcement::Required },
        read: said.read.iter().map(Into::into).collect(),
        write: said.write.iter().map(Into::into).collect(),
        connect: said.connect.clone(),
        bind: said.bind.clone(),
    }
}
