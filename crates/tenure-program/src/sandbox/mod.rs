//! Confinement of a program: its files and ports, a cgroup for its resources, and a user.
//!
//! Each mechanism is optional and has one module. The process that is about to become the program applies them, so none
//! needs code between `fork` and `exec`.

mod account;
mod cgroup;
mod landlock;

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use account::Account;
pub(crate) use cgroup::Group;
pub use cgroup::{GroupLimits, Groups};
pub use landlock::{Sandbox, real_path};

/// Reaction to a restriction that this machine cannot enforce.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Enforcement {
    /// The program runs without it.
    BestEffort,
    /// The program does not start.
    #[default]
    Required,
}

/// Restrictions of one program in addition to those of its user. By default, there are none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Access to files and ports. The program may do only what all of them allow.
    pub sandboxes: Vec<Sandbox>,
    /// Resources of the program and its children together.
    pub limits: GroupLimits,
    /// Reaction if this machine cannot enforce `limits`.
    pub enforcement: Enforcement,
    /// User and groups of the program. By default, those of its host.
    pub user: Option<Account>,
}

/// The part of a confinement that the supervisor and the process before the program need.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Confined {
    pub(crate) sandboxes: Vec<Sandbox>,
    pub(crate) group: Option<Group>,
    pub(crate) user: Option<Account>,
}

impl Confinement {
    /// Returns the restrictions that this machine cannot enforce and that are best effort.
    ///
    /// Call it before any program starts: for `limits`, this process moves into a leaf of its cgroup, which its children inherit.
    ///
    /// # Errors
    ///
    /// In words, why this machine cannot enforce a required restriction.
    pub fn check(&self) -> Result<Vec<String>, String> {
        let (mut notes, mut refused) = (Vec::new(), Vec::new());
        let mut note = |enforcement, why: Option<String>| match enforcement {
            Enforcement::Required => refused.extend(why),
            Enforcement::BestEffort => notes.extend(why),
        };
        for sandbox in &self.sandboxes {
            note(sandbox.enforcement, landlock::missing(sandbox));
        }
        if self.limits.is_any() {
            let missing = Groups::find().and_then(|groups| groups.divide(&self.limits));
            note(self.enforcement, missing.err());
        }
        refused.dedup();
        notes.dedup();
        if refused.is_empty() { Ok(notes) } else { Err(refused.join("; ")) }
    }

    /// Prepares the folder of a run, and a cgroup with the folder's name.
    pub(crate) fn prepare(self, folder: &Path, own: &Path) -> Result<Confined, String> {
        self.check()?;
        let name = folder.file_name().unwrap_or(OsStr::new("run"));
        let group = match Group::create(name, self.limits) {
            Ok(group) => Some(group),
            // Only limits need a cgroup. For anything else it makes the end of a program faster.
            Err(why) if self.limits.is_any() && self.enforcement == Enforcement::Required => return Err(why),
            Err(_) => None,
        };
        let within = |sandbox: Sandbox| sandbox.and_read(folder).and_write(own);
        Ok(Confined { sandboxes: self.sandboxes.into_iter().map(within).collect(), group, user: self.user })
    }

    /// Gives this file or folder of the host to the user of the program.
    pub(crate) fn give(&self, path: &Path) -> io::Result<()> {
        self.user.as_ref().map_or(Ok(()), |user| user.own(path))
    }

    pub(crate) fn is_none(&self) -> bool {
        self.sandboxes.is_empty() && !self.limits.is_any() && self.user.is_none()
    }
}

impl Confined {
    /// Reads the word that one process of ours passes to another.
    pub(crate) fn read(word: &OsStr) -> Option<Self> {
        serde_json::from_str(word.to_str()?).ok()
    }

    /// Writes that word.
    pub(crate) fn word(&self) -> Result<String, String> {
        serde_json::to_string(self).map_err(|error| format!("a path is not UTF-8: {error}"))
    }

    /// Moves this process, which is about to become the program, into its cgroup.
    pub(crate) fn join_group(&self) -> Result<(), String> {
        let Some(group) = &self.group else { return Ok(()) };
        group.join().map_err(|error| format!("cannot enter the cgroup of the program: {error}"))
    }

    /// Restricts this process, which is about to become the program. Call it last: it may not be able to do much afterwards.
    pub(crate) fn bind_this_process(&self) -> Result<(), String> {
        // Before the user changes: root can open each path for its rule.
        self.sandboxes.iter().try_for_each(landlock::apply)?;
        let Some(user) = &self.user else { return Ok(()) };
        let unknown = |error| format!("cannot look up the folder of the program: {error}");
        let folder = std::env::current_dir().map_err(unknown)?;
        user.assume().map_err(|error| format!("cannot become user {}: {error}", user.name))?;
        // Root entered it. Relative paths would let the user reach files below folders that this user cannot enter.
        std::env::set_current_dir(&folder)
            .map_err(|error| format!("user {} cannot enter {}: {error}", user.name, folder.display()))
    }

    /// Removes the cgroup of a program that has not begun.
    pub(crate) fn end(&self) {
        self.group.iter().for_each(Group::close);
    }

    /// Returns true if the program must not influence the processes that start it, by `LD_PRELOAD` for one.
    pub(crate) fn is_guarded(&self) -> bool {
        !self.sandboxes.is_empty() || self.user.is_some()
    }
}

/// Describes the restrictions that this machine can enforce, for people.
#[must_use]
pub fn support() -> String {
    let groups = match Groups::find() {
        Ok(groups) => groups.words(),
        Err(why) => format!("none ({why})"),
    };
    let user = if rustix::process::geteuid().is_root() { "yes" } else { "no (needs root)" };
    format!("files and ports: {}; cgroup limits: {groups}; other users: {user}", landlock::level())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confinement_goes_from_process_to_process_as_it_is() {
        let sandbox = Sandbox { connect: Some(vec![5432]), ..Sandbox::default() };
        let confined =
            Confined { sandboxes: vec![sandbox.and_write(Path::new("/srv/a b"))], ..Confined::default() };
        assert_eq!(Confined::read(OsStr::new(&confined.word().unwrap())), Some(confined));
        assert_eq!(Confined::read(OsStr::new("{}")), None);
    }
}
