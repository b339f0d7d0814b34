//! As whom a program runs, and what it may become.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{PermissionsExt, chown, fchown};
use std::path::{Path, PathBuf};

use nix::unistd::{Group, Uid, User};

/// As whom a program runs, and what it may become: as its host, and what that may, if nothing is said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rights {
    /// As whom. Its supervisor stays what the host is, so that it can end whatever the program has started.
    pub identity: Option<Identity>,
    /// Whether neither the program nor what it starts can get more rights than it has, by `sudo` for one. On Linux only; elsewhere
    /// such a program does not begin.
    pub no_new_privs: bool,
}

/// A user and the only group that goes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The number of the user.
    pub uid: u32,
    /// The number of the group.
    pub gid: u32,
}

/// A user as the system knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// By number.
    pub identity: Identity,
    /// Its name and its home, if it has an entry.
    pub entry: Option<(String, PathBuf)>,
}

impl Account {
    /// The user and the group that `USER` or `USER:GROUP` means, each by name or number.
    ///
    /// # Errors
    /// In words, if there is none, or if a number has no entry that would say its group.
    pub fn of(said: &str) -> Result<Self, String> {
        let (user, group) = said.split_once(':').map_or((said, None), |(user, group)| (user, Some(group)));
        let ask = |error: nix::Error| format!("the system does not say who {said} is: {error}");
        let entry = match user.parse() {
            Ok(uid) => User::from_uid(Uid::from_raw(uid)),
            Err(_) => User::from_name(user),
        };
        let entry = entry.map_err(ask)?;
        let uid = entry.as_ref().map(|entry| entry.uid.as_raw()).or_else(|| user.parse().ok());
        let uid = uid.ok_or_else(|| format!("there is no user {user:?} here"))?;
        let gid = match (group, &entry) {
            (Some(group), _) => match group.parse() {
                Ok(gid) => gid,
                Err(_) => {
                    let found = Group::from_name(group).map_err(ask)?;
                    found.ok_or_else(|| format!("there is no group {group:?} here"))?.gid.as_raw()
                }
            },
            (None, Some(entry)) => entry.gid.as_raw(),
            (None, None) => return Err(format!("user {uid} has no entry here: say its group, {uid}:GROUP")),
        };
        // All ones mean "as it is" to the system.
        if uid == u32::MAX || gid == u32::MAX {
            return Err(format!("{said} is nobody"));
        }
        Ok(Self { identity: Identity { uid, gid }, entry: entry.map(|entry| (entry.name, entry.dir)) })
    }
}

impl Identity {
    /// Gives it what the program writes to and reads from; the folder of the run stays the host's, so that nothing in it can be
    /// put in the place of something else.
    pub(crate) fn may_use(self, folder: &Path, files: &[PathBuf]) -> io::Result<()> {
        fs::set_permissions(folder, Permissions::from_mode(0o711))?;
        for file in files {
            if !file.exists() {
                fs::write(file, "")?;
            }
            fs::set_permissions(file, Permissions::from_mode(0o600))?;
            chown(file, Some(self.uid), Some(self.gid))?;
        }
        Ok(())
    }

    /// Gives it the pipes that it writes to, which it could not open by their names otherwise (`> /dev/stderr`).
    pub(crate) fn may_open(self, pipes: &[&dyn AsFd]) {
        for pipe in pipes {
            // It can write to it all the same.
            let _ = fchown(pipe.as_fd(), Some(self.uid), Some(self.gid));
        }
    }
}

impl Rights {
    /// As one word between two processes of ours.
    pub(crate) fn read(word: &OsStr) -> Option<Self> {
        let (identity, privs) = word.to_str()?.split_once(',')?;
        let identity = match identity.split_once(':') {
            Some((uid, gid)) => Some(Identity { uid: uid.parse().ok()?, gid: gid.parse().ok()? }),
            None if identity.is_empty() => None,
            None => return None,
        };
        Some(Self { identity, no_new_privs: privs == "none" })
    }

    /// Takes from this process, which is about to become the program, what it may not become.
    pub(crate) fn bind_this_process(self) -> io::Result<()> {
        if self.no_new_privs { set_no_new_privs() } else { Ok(()) }
    }
}

#[cfg(target_os = "linux")]
fn set_no_new_privs() -> io::Result<()> {
    rustix::thread::set_no_new_privs(true).map_err(io::Error::from)
}

#[cfg(not(target_os = "linux"))]
fn set_no_new_privs() -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system cannot do that"))
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Identity { uid, gid }) = self.identity {
            write!(f, "{uid}:{gid}")?;
        }
        f.write_str(if self.no_new_privs { ",none" } else { ",any" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_go_from_process_to_process_as_they_are() {
        for identity in [None, Some(Identity { uid: 7, gid: 8 })] {
            for no_new_privs in [true, false] {
                let rights = Rights { identity, no_new_privs };
                assert_eq!(Rights::read(OsStr::new(&rights.to_string())), Some(rights));
            }
        }
        assert_eq!(Rights::read(OsStr::new("7,any")), None);
        assert_eq!(Rights::read(OsStr::new("")), None);
    }

    #[test]
    fn users_and_groups_are_known_by_name_and_number_and_who_is_not_there_is_told() {
        let root = Account::of("root").unwrap();
        assert_eq!(root.identity, Identity { uid: 0, gid: 0 });
        assert_eq!(Account::of("0").unwrap(), root);
        assert_eq!(Account::of("4711:4712").unwrap().identity, Identity { uid: 4711, gid: 4712 });
        for (said, told) in [
            ("nobody-of-that-name", "there is no user"),
            ("root:no-group-of-that-name", "there is no group"),
            ("2000000007", "say its group"),
            ("", "there is no user"),
            ("4294967295:0", "is nobody"),
        ] {
            let wrong = Account::of(said).unwrap_err();
            assert!(wrong.contains(told), "{said}: {wrong}");
        }
    }
}
