//! User and groups of a program whose host runs as root.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::lchown;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// User and groups that a program runs as.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Login name.
    pub name: String,
    pub(crate) uid: u32,
    gid: u32,
    groups: Vec<u32>,
    home: PathBuf,
    shell: PathBuf,
}

impl Account {
    /// Looks up a user of this machine.
    ///
    /// # Errors
    ///
    /// In words, if there is no such user, or this process cannot become it.
    #[cfg(target_os = "linux")]
    pub fn named(name: &str) -> Result<Self, String> {
        use std::ffi::CString;

        use nix::unistd::{Gid, User, geteuid, getgrouplist};

        if !geteuid().is_root() {
            return Err(format!(
                "cannot run programs as user {name:?}: run the host as root, or remove the user"
            ));
        }
        let fail = |error| format!("cannot look up user {name:?}: {error}");
        let Some(user) = User::from_name(name).map_err(fail)? else {
            return Err(format!("unknown user {name:?}: create it first, or name another one"));
        };
        if user.uid.is_root() {
            return Err(format!("user {name:?} is root: name a user with fewer rights"));
        }
        let login = CString::new(name).map_err(|_| format!("invalid user {name:?}: it has a NUL byte"))?;
        let groups = getgrouplist(&login, user.gid).map_err(fail)?;
        Ok(Self {
            name: user.name,
            uid: user.uid.as_raw(),
            gid: user.gid.as_raw(),
            groups: groups.into_iter().map(Gid::as_raw).collect(),
            home: user.dir,
            shell: user.shell,
        })
    }

    /// Refuses: only Linux has all the calls that this needs.
    ///
    /// # Errors
    ///
    /// Always.
    #[cfg(not(target_os = "linux"))]
    pub fn named(name: &str) -> Result<Self, String> {
        Err(format!("cannot run programs as user {name:?}: this needs Linux"))
    }

    /// Gives this file or folder to the user. A symbolic link is not followed.
    ///
    /// # Errors
    ///
    /// If the system refuses.
    pub fn own(&self, path: &Path) -> io::Result<()> {
        lchown(path, Some(self.uid), Some(self.gid))
    }

    /// Does this work with the user's rights to files, in a thread of its own. Files that it creates belong to the user.
    ///
    /// The process keeps its real user, so the user cannot stop or trace the thread.
    ///
    /// # Errors
    ///
    /// If the system refuses the thread or the rights.
    #[cfg(target_os = "linux")]
    pub fn act<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().spawn_scoped(scope, || {
                self.limit_this_thread()?;
                Ok(work())
            })?;
            thread.join().unwrap_or_else(|_| Err(io::Error::other("its thread panicked")))
        })
    }

    /// Refuses: only Linux has all the calls that this needs.
    ///
    /// # Errors
    ///
    /// Always.
    #[cfg(not(target_os = "linux"))]
    pub fn act<T: Send>(&self, _: impl FnOnce() -> T + Send) -> io::Result<T> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Gives this thread the user's rights to files, until it ends.
    #[cfg(target_os = "linux")]
    fn limit_this_thread(&self) -> io::Result<()> {
        use rustix::thread::{
            CapabilitySet, CapabilitySets, Gid, Uid, capabilities, set_capabilities, set_thread_groups,
            set_thread_res_gid, set_thread_res_uid,
        };

        let groups: Vec<Gid> = self.groups.iter().copied().map(Gid::from_raw).collect();
        set_thread_groups(&groups)?;
        set_thread_res_gid(None, Gid::from_raw(self.gid), None)?;
        set_thread_res_uid(None, Uid::from_raw(self.uid), None)?;
        // Usually the kernel has done so, but a process can forbid it.
        let sets = capabilities(None)?;
        set_capabilities(None, CapabilitySets { effective: CapabilitySet::empty(), ..sets })?;
        Ok(())
    }

    /// Variables that a login sets.
    pub(crate) fn variables(&self) -> [(OsString, OsString); 4] {
        let name = || OsString::from(&self.name);
        [
            ("HOME", self.home.clone().into()),
            ("USER", name()),
            ("LOGNAME", name()),
            ("SHELL", self.shell.clone().into()),
        ]
        .map(|(variable, value)| (variable.into(), value))
    }

    /// Makes this process, which is about to become the program, a process of the user.
    #[cfg(target_os = "linux")]
    pub(super) fn assume(&self) -> io::Result<()> {
        use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};

        self.own_output()?;
        let groups: Vec<Gid> = self.groups.iter().copied().map(Gid::from_raw).collect();
        // In this order: a process that is not root can change none of its groups.
        setgroups(&groups)?;
        setgid(Gid::from_raw(self.gid))?;
        setuid(Uid::from_raw(self.uid))?;
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn assume(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Gives the user the pipes to the host. Otherwise the program could write to them, but not open `/dev/stderr`.
    #[cfg(target_os = "linux")]
    fn own_output(&self) -> io::Result<()> {
        use rustix::fs::{FileType, Gid, Uid, fchown, fstat};
        use std::os::fd::AsFd;

        let (out, err) = (io::stdout(), io::stderr());
        for output in [out.as_fd(), err.as_fd()] {
            if FileType::from_raw_mode(fstat(output)?.st_mode) == FileType::Fifo {
                fchown(output, Some(Uid::from_raw(self.uid)), Some(Gid::from_raw(self.gid)))?;
            }
        }
        Ok(())
    }
}
