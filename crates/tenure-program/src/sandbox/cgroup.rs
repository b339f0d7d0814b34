//! Resources of a program and all its children together, limited by a cgroup (version 2).
//!
//! The host needs a cgroup that its service manager, or the machine, has delegated to it. The host itself moves into a leaf
//! below it, because a cgroup with processes cannot limit its children. Each run gets a cgroup beside that leaf.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Resources of a program and its children together. The kernel enforces them exactly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupLimits {
    /// Bytes of memory, without swap.
    pub memory: Option<u64>,
    /// Processes and threads.
    pub tasks: Option<u64>,
    /// Thousandths of a processor.
    pub milli_cpus: Option<u64>,
}

/// A cgroup that this process may divide among its programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Groups {
    base: PathBuf,
    controllers: Vec<String>,
}

/// The cgroup of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Group {
    path: PathBuf,
    limits: GroupLimits,
}

/// Leaf of the host itself. With systemd, `DelegateSubgroup=` can name it as well.
const LEAF: &str = "tenure-host";
/// Time in which the kernel divides the processors, in microseconds.
const PERIOD: u64 = 100_000;
/// Tries to remove a cgroup whose processes were killed, and the time between two of them.
const ROUNDS: u32 = 400;
const ROUND: Duration = Duration::from_millis(5);

impl GroupLimits {
    /// Returns true if there is any limit.
    #[must_use]
    pub fn is_any(&self) -> bool {
        *self != Self::default()
    }

    /// Controllers that the kernel needs for these limits.
    fn controllers(&self) -> impl Iterator<Item = &'static str> {
        let all = [("memory", self.memory), ("pids", self.tasks), ("cpu", self.milli_cpus)];
        all.into_iter().filter_map(|(name, limit)| limit.map(|_| name))
    }

    /// Names and contents of the files that set them. A file that is optional may be missing.
    fn files(&self) -> Vec<(&'static str, String)> {
        let mut files = Vec::new();
        if let Some(bytes) = self.memory {
            // All of the program ends together, as with every other limit.
            files.extend([("memory.max", bytes.to_string()), ("memory.oom.group", "1".to_owned())]);
        }
        if let Some(most) = self.tasks {
            files.push(("pids.max", most.to_string()));
        }
        if let Some(milli) = self.milli_cpus {
            files.push(("cpu.max", format!("{} {PERIOD}", milli * PERIOD / 1000)));
        }
        files
    }
}

impl Groups {
    /// Finds the cgroup that was delegated to this process. Changes nothing.
    ///
    /// # Errors
    ///
    /// In words, why there is none, and what to do.
    pub fn find() -> Result<Self, String> {
        let none = "this process has no cgroup of version 2; run it in a systemd unit with Delegate=yes";
        let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(|_| none)?;
        let (mount, root) = mount_of(&mounts).ok_or(none)?;
        let own = fs::read_to_string("/proc/self/cgroup").map_err(|_| none)?;
        let own = own.lines().find_map(|line| line.strip_prefix("0::")).ok_or(none)?;
        let own = Path::new(own).strip_prefix(root).map_err(|_| none)?;
        let is_leaf = own.file_name().is_some_and(|name| name == LEAF);
        let own = if is_leaf { own.parent().unwrap_or(own) } else { own };
        Self::at(mount.join(own), own.as_os_str().is_empty())
    }

    fn at(base: PathBuf, is_top: bool) -> Result<Self, String> {
        // The top of what this process can see belongs to the container, and without one to the machine.
        if !is_top && !is_delegated(&base) {
            return Err(format!(
                "{} was not delegated: set Delegate=yes in the systemd unit",
                base.display()
            ));
        }
        if rustix::fs::access(&base, rustix::fs::Access::WRITE_OK).is_err() {
            return Err(format!(
                "{} is not writable: set ProtectControlGroups=no in the systemd unit",
                base.display()
            ));
        }
        let controllers = fs::read_to_string(base.join("cgroup.controllers")).unwrap_or_default();
        Ok(Self { base, controllers: controllers.split_whitespace().map(str::to_owned).collect() })
    }

    /// Prepares it for groups with these limits.
    pub(super) fn divide(&self, limits: &GroupLimits) -> Result<(), String> {
        self.can_enforce(limits)?;
        self.enable(limits).map_err(|error| {
            let why = "other processes may be in it: start this host in a service with Delegate=yes";
            format!("cannot divide {}: {error}; {why}", self.base.display())
        })
    }

    /// Looks whether the kernel has all controllers for these limits.
    fn can_enforce(&self, limits: &GroupLimits) -> Result<(), String> {
        let missing: Vec<&str> = limits.controllers().filter(|name| !self.has(name)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(format!(
            "cannot enforce limits: cgroup version 2 lacks {} in {}",
            missing.join(", "),
            self.base.display()
        ))
    }

    fn has(&self, name: &str) -> bool {
        self.controllers.iter().any(|known| known == name)
    }

    /// Describes the limits that it can enforce.
    pub(super) fn words(&self) -> String {
        let all = [("total_memory", "memory"), ("tasks", "pids"), ("cpus", "cpu")];
        let limits: Vec<&str> =
            all.into_iter().filter(|(_, it)| self.has(it)).map(|(limit, _)| limit).collect();
        match limits.is_empty() {
            true => format!("none (cgroup version 2 lacks memory, pids, cpu in {})", self.base.display()),
            false => limits.join(", "),
        }
    }

    /// Lets the children of this cgroup use these controllers.
    fn enable(&self, limits: &GroupLimits) -> io::Result<()> {
        let wanted: String = limits.controllers().map(|name| format!("+{name} ")).collect();
        let enable = || fs::write(self.base.join("cgroup.subtree_control"), wanted.trim_end());
        if wanted.is_empty() {
            return Ok(());
        }
        match enable() {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                let leaf = self.base.join(LEAF);
                create(&leaf)?;
                enter(&leaf)?;
                enable()
            }
            other => other,
        }
    }
}

impl Group {
    /// Creates the cgroup of a run.
    pub(super) fn create(name: &OsStr, limits: GroupLimits) -> Result<Self, String> {
        let groups = Groups::find()?;
        groups.divide(&limits)?;
        let group = Self { path: groups.base.join(name), limits };
        group.set_up().map_err(|error| {
            // Nothing is in it.
            let _ = fs::remove_dir(&group.path);
            format!("cannot set the limits of {}: {error}", group.path.display())
        })?;
        Ok(group)
    }

    fn set_up(&self) -> io::Result<()> {
        create(&self.path)?;
        // A program must not hide processes in a group below.
        fs::write(self.path.join("cgroup.max.descendants"), "0")?;
        self.limits.files().iter().try_for_each(|(file, value)| fs::write(self.path.join(file), value))?;
        if self.limits.memory.is_some() {
            // Missing where the kernel has no swap.
            let _ = fs::write(self.path.join("memory.swap.max"), "0");
        }
        Ok(())
    }

    /// The cgroup that a run with this name had, if it is still there.
    pub(crate) fn left(name: &OsStr) -> Option<Self> {
        let path = Groups::find().ok()?.base.join(name);
        path.is_dir().then_some(Self { path, limits: GroupLimits::default() })
    }

    /// Moves this process into it.
    pub(super) fn join(&self) -> io::Result<()> {
        enter(&self.path)
    }

    /// Number of processes in it.
    pub(crate) fn count(&self) -> u32 {
        let processes = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        u32::try_from(processes.lines().count()).unwrap_or(u32::MAX)
    }

    /// Kills all processes in it at once.
    pub(crate) fn kill(&self) {
        // Before Linux 5.14 there is no such file. Then the processes are found one by one.
        let _ = fs::write(self.path.join("cgroup.kill"), "1");
    }

    /// Returns the limit that ended the program, in words.
    pub(crate) fn reached(&self, has_failed: bool) -> Option<String> {
        let happened = |file: &str, key: &str| {
            let text = fs::read_to_string(self.path.join(file)).unwrap_or_default();
            count(&text, key) > 0
        };
        let memory = self.limits.memory.filter(|_| happened("memory.events", "oom_kill"));
        let tasks = self.limits.tasks.filter(|_| has_failed && happened("pids.events", "max"));
        match (memory, tasks) {
            (Some(bytes), _) => Some(format!("reaching its memory limit of {}", size(bytes))),
            (None, Some(most)) => Some(format!("reaching its limit of {most} tasks")),
            (None, None) => None,
        }
    }

    /// Kills all that is left in it, and removes it.
    pub(crate) fn close(&self) {
        let (_open, never) = std::sync::mpsc::channel::<()>();
        for _ in 0..ROUNDS {
            self.kill();
            match fs::remove_dir(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
                // A group that stays is empty, and costs little.
                Ok(()) | Err(_) => return,
            }
            let _ = never.recv_timeout(ROUND);
        }
    }
}

fn create(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

fn enter(path: &Path) -> io::Result<()> {
    fs::write(path.join("cgroup.procs"), "0")
}

/// Returns true if systemd says so, or the cgroup belongs to a user other than root: then root has handed it over.
fn is_delegated(base: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;

    let says = |name: &str| {
        let mut value = [0; 8];
        rustix::fs::getxattr(base, name, &mut value[..]).is_ok_and(|bytes| value[..bytes] == *b"1")
    };
    let me = rustix::process::geteuid();
    let is_mine = !me.is_root() && base.metadata().is_ok_and(|found| found.uid() == me.as_raw());
    is_mine || says("user.delegate") || says("trusted.delegate")
}

/// Returns the mount point of version 2 cgroups, and the cgroup that is its root.
fn mount_of(mounts: &str) -> Option<(PathBuf, PathBuf)> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(3);
        let (root, mount) = (fields.next()?, fields.next()?);
        after.starts_with("cgroup2 ").then(|| (PathBuf::from(mount), PathBuf::from(root)))
    })
}

/// The number behind this key in a file of events.
fn count(text: &str, key: &str) -> u64 {
    let value = |line: &str| line.strip_prefix(key)?.strip_prefix(' ')?.parse().ok();
    text.lines().find_map(value).unwrap_or(0)
}

fn size(bytes: u64) -> String {
    match bytes % (1 << 20) {
        0 => format!("{} MiB", bytes >> 20),
        _ => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: GroupLimits =
        GroupLimits { memory: Some(512 << 20), tasks: Some(40), milli_cpus: Some(1_500) };

    #[test]
    fn the_mount_of_version_2_is_found_beside_that_of_version_1() {
        let mounts = "25 20 0:22 / /sys/fs/cgroup/memory rw shared:1 - cgroup cgroup rw,memory\n\
                      30 20 0:26 /top /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw\n";
        assert_eq!(mount_of(mounts), Some(("/sys/fs/cgroup/unified".into(), "/top".into())));
        assert_eq!(mount_of(mounts.lines().next().unwrap()), None);
    }

    #[test]
    fn limits_are_written_as_the_kernel_reads_them() {
        let folder = tempfile::tempdir().unwrap();
        let group = Group { path: folder.path().join("run"), limits: ALL };
        group.set_up().unwrap();
        let read = |file: &str| fs::read_to_string(group.path.join(file)).unwrap();
        assert_eq!(read("memory.max"), (512 << 20).to_string());
        assert_eq!([read("memory.swap.max"), read("memory.oom.group")], ["0", "1"]);
        assert_eq!(
            [read("pids.max"), read("cpu.max"), read("cgroup.max.descendants")],
            ["40", "150000 100000", "0"]
        );
    }

    #[test]
    fn a_limit_that_was_reached_is_the_cause() {
        let folder = tempfile::tempdir().unwrap();
        let group = Group { path: folder.path().to_owned(), limits: ALL };
        assert_eq!(group.reached(true), None);
        fs::write(folder.path().join("pids.events"), "max 3\nmax.imposed 9\n").unwrap();
        assert_eq!(group.reached(false), None, "the program coped with it");
        assert_eq!(group.reached(true).unwrap(), "reaching its limit of 40 tasks");
        fs::write(folder.path().join("memory.events"), "low 0\noom 1\noom_kill 0\n").unwrap();
        assert_eq!(group.reached(true).unwrap(), "reaching its limit of 40 tasks");
        fs::write(folder.path().join("memory.events"), "oom 1\noom_kill 2\noom_group_kill 1\n").unwrap();
        assert_eq!(group.reached(true).unwrap(), "reaching its memory limit of 512 MiB");
    }

    #[test]
    fn a_limit_without_its_controller_is_refused_by_name() {
        let groups = Groups { base: "/cg".into(), controllers: vec!["cpu".to_owned()] };
        let refused = groups.can_enforce(&ALL).unwrap_err();
        assert!(refused.contains("lacks memory, pids in /cg"), "{refused}");
        assert_eq!(
            groups.can_enforce(&GroupLimits { milli_cpus: Some(100), ..GroupLimits::default() }),
            Ok(())
        );
        assert_eq!(groups.words(), "cpus");
    }

    #[test]
    fn a_cgroup_that_was_not_delegated_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let refused = Groups::at(folder.path().to_owned(), false).unwrap_err();
        assert!(refused.contains("set Delegate=yes"), "{refused}");
        assert!(Groups::at(folder.path().to_owned(), true).is_ok());
    }
}
