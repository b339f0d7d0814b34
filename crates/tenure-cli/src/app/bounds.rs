//! What the programs of a host find of it, and what they may use.

use tenure_apps::{App, Limits};
use tenure_program::{Inherited, Rights};

use crate::program::rights;

/// What the operator of a host says of all its programs.
#[derive(Debug, Clone, Default)]
pub(super) struct Bounds {
    /// Variables that they find although they are the host's own.
    pub(super) pass_env: Vec<String>,
    /// The most that each of them may use, whatever its own settings say.
    pub(super) limits: Limits,
    /// True if programs may gain privileges. Their own settings can still forbid it.
    pub(super) allows_new_privs: bool,
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

    /// Returns the rights of this app: those of all programs, less what its own settings forbid.
    pub(super) fn rights(&self, app: &App) -> Rights {
        let rights = rights(self.allows_new_privs);
        Rights { no_new_privs: rights.no_new_privs || app.settings.no_new_privs, ..rights }
    }
}

/// Limits as they are said in one flag, such as `memory=512MiB,processes=64`.
pub(super) fn limits(said: &str) -> Result<Limits, String> {
    let mut limits = Limits::default();
    for part in said.split(',') {
        let (name, value) =
            part.split_once('=').ok_or_else(|| format!("expected NAME=VALUE, not {part:?}"))?;
        limits.set(name.trim(), value.trim())?;
    }
    Ok(limits)
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
}
