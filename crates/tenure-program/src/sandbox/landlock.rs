//! Files and ports of a program, restricted by Landlock.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Enforcement;

/// Files and ports that a program may use. It can neither read nor write other files. Landlock does not prevent changes to
/// the mode, owner and times of files that belong to the program's user. For programs that you do not trust, use another
/// user as well.
///
/// Programs and libraries of the system, its devices without content, `/proc` and `/sys` are readable. Landlock also prevents the program
/// from tracing processes outside its sandbox and, from Linux 6.12 on, from sending them signals.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// Reaction if the kernel cannot enforce it.
    pub enforcement: Enforcement,
    /// Files and folders that it may read and execute.
    pub read: Vec<PathBuf>,
    /// Files and folders that it may also read and execute. Those that do not exist when it starts are left out, and so are
    /// paths with symbolic links.
    pub read_if_there: Vec<PathBuf>,
    /// Files and folders that it may also change.
    pub write: Vec<PathBuf>,
    /// TCP ports that it may connect to. All of them if `None`.
    pub connect: Option<Vec<u16>>,
    /// TCP ports that it may bind. All of them if `None`.
    pub bind: Option<Vec<u16>>,
}

impl Sandbox {
    /// Also lets the program read this file or folder.
    #[must_use]
    pub fn and_read(mut self, path: &Path) -> Self {
        self.read.push(path.to_owned());
        self
    }

    /// Also lets the program change this file or folder.
    #[must_use]
    pub fn and_write(mut self, path: &Path) -> Self {
        self.write.push(path.to_owned());
        self
    }

    /// Returns the path that has this path in it and that the program may read: one of the sandbox, or one such as `/usr`,
    /// which every sandbox can read. Landlock can only add paths, so a sandbox cannot hide this one. Follows links; parts of the
    /// path may be missing.
    #[must_use]
    pub fn shows(&self, path: &Path) -> Option<&Path> {
        let real = real_path(path);
        let holds = |above: &&Path| above.canonicalize().is_ok_and(|above| real.starts_with(above));
        let listed = self.read.iter().chain(&self.read_if_there).chain(&self.write).map(PathBuf::as_path);
        readable().into_iter().chain(listed).find(holds)
    }

    fn has_ports(&self) -> bool {
        self.connect.is_some() || self.bind.is_some()
    }
}

/// Returns a path as absolute and without links. Parts of it may be missing.
#[must_use]
pub fn real_path(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let there = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    let rest = |(above, real): (&Path, PathBuf)| match path.strip_prefix(above).ok()? {
        // With a slash at its end, a file would become a folder.
        rest if rest.as_os_str().is_empty() => Some(real),
        rest => Some(real.join(rest)),
    };
    there.and_then(rest).unwrap_or_else(|| path.clone())
}

#[cfg(target_os = "linux")]
pub(super) use linux::{apply, level, missing};

/// Returns the paths that every sandbox can read.
#[cfg(target_os = "linux")]
fn readable() -> Vec<&'static Path> {
    linux::READABLE.into_iter().map(Path::new).collect()
}

#[cfg(not(target_os = "linux"))]
fn readable() -> Vec<&'static Path> {
    Vec::new()
}

#[cfg(target_os = "linux")]
mod linux {
    use landlock::{
        ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath, Ruleset,
        RulesetAttr, RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
    };
    use std::os::fd::OwnedFd;
    use std::path::PathBuf;

    use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
    use rustix::thread::{
        CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
        remove_capability_from_bounding_set, set_capabilities,
    };

    use super::super::Enforcement;
    use super::Sandbox;

    /// First version with all file rights. Without them, a program could truncate any file.
    const FILES: ABI = ABI::V3;
    const PORTS: ABI = ABI::V4;
    /// The newest version that the tests have run on. A newer one may restrict more.
    const TESTED: ABI = ABI::V7;

    /// Files that most programs need. `/etc` as a whole is not here, because it also has secrets.
    pub(super) const READABLE: [&str; 42] = [
        "/usr",
        "/bin",
        "/sbin",
        "/lib",
        "/lib32",
        "/lib64",
        "/opt",
        "/nix/store",
        "/gnu/store",
        "/proc",
        "/sys",
        "/etc/alternatives",
        "/etc/ca-certificates",
        "/etc/crypto-policies",
        "/etc/fonts",
        "/etc/gai.conf",
        "/etc/group",
        "/etc/host.conf",
        "/etc/hostname",
        "/etc/hosts",
        "/etc/inputrc",
        "/etc/ld.so.cache",
        "/etc/ld.so.conf",
        "/etc/ld.so.conf.d",
        "/etc/ld.so.preload",
        "/etc/locale.alias",
        "/etc/localtime",
        "/etc/magic",
        "/etc/mime.types",
        "/etc/nsswitch.conf",
        "/etc/os-release",
        "/etc/passwd",
        "/etc/pki/ca-trust",
        "/etc/pki/tls/certs",
        "/etc/protocols",
        "/etc/resolv.conf",
        "/etc/services",
        "/etc/ssl/cert.pem",
        "/etc/ssl/certs",
        "/etc/ssl/openssl.cnf",
        "/etc/terminfo",
        "/etc/timezone",
    ];
    const DEVICES: [&str; 6] =
        ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

    /// Capabilities that a program may keep: those for users and signals, for ports, and for files that Landlock lets it reach. With
    /// others, it could create devices, read the memory of others, send packets past the list of ports, or change the machine.
    /// Landlock checks no change of a file's owner or mode, so a program does not keep the capabilities for those.
    const KEPT: CapabilitySet = CapabilitySet::DAC_OVERRIDE
        .union(CapabilitySet::KILL)
        .union(CapabilitySet::SETGID)
        .union(CapabilitySet::SETUID)
        .union(CapabilitySet::SETPCAP)
        .union(CapabilitySet::NET_BIND_SERVICE);

    /// Returns true if the kernel enforces everything up to this version.
    fn has(abi: ABI) -> bool {
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        let ruleset = ruleset.handle_access(AccessFs::from_all(abi));
        let ruleset = match abi >= PORTS {
            true => ruleset.and_then(|ruleset| ruleset.handle_access(AccessNet::from_all(abi))),
            false => ruleset,
        };
        let ruleset = match abi >= ABI::V6 {
            true => ruleset.and_then(|ruleset| ruleset.scope(Scope::from_all(abi))),
            false => ruleset,
        };
        ruleset.is_ok()
    }

    /// Describes the level that the kernel can enforce.
    pub(in super::super) fn level() -> String {
        let parts = [("files", FILES), ("TCP ports", PORTS), ("signals", ABI::V6)];
        let enforced: Vec<&str> =
            parts.into_iter().filter(|(_, abi)| has(*abi)).map(|(name, _)| name).collect();
        match (enforced.is_empty(), has(ABI::V1)) {
            (false, _) => format!("Landlock for {}", enforced.join(", ")),
            (true, true) => "Landlock without truncation of files; needs Linux 6.2".to_owned(),
            (true, false) => "none (no Landlock in this kernel)".to_owned(),
        }
    }

    /// Returns what the kernel lacks for this sandbox, in words.
    pub(in super::super) fn missing(sandbox: &Sandbox) -> Option<String> {
        if !has(ABI::V1) {
            return Some(
                "cannot enforce the sandbox: this kernel has no Landlock, or it is off (see `lsm=`)"
                    .to_owned(),
            );
        }
        if !has(FILES) {
            return Some("cannot enforce the sandbox fully: upgrade to Linux 6.2 or newer".to_owned());
        }
        (sandbox.has_ports() && !has(PORTS))
            .then(|| "cannot enforce the ports of the sandbox: upgrade to Linux 6.7 or newer".to_owned())
    }

    /// Restricts this process and all that it starts.
    pub(in super::super) fn apply(sandbox: &Sandbox) -> Result<(), String> {
        for path in sandbox.read.iter().chain(&sandbox.write) {
            // Without this a misspelled path would go unnoticed.
            path.metadata()
                .map_err(|error| format!("cannot open {} for the sandbox: {error}", path.display()))?;
        }
        lose_capabilities().map_err(|error| format!("cannot drop capabilities for the sandbox: {error}"))?;
        restrict(sandbox).map_err(|error| format!("cannot enter the sandbox: {error}"))
    }

    /// Drops all capabilities of the program except those that it may keep.
    ///
    /// A program of root begins with the bounding and the inheritable set. Any other one begins with the ambient set, which is always a
    /// part of the inheritable one.
    fn lose_capabilities() -> rustix::io::Result<()> {
        let sets = capabilities(None)?;
        set_capabilities(None, CapabilitySets { inheritable: sets.inheritable & KEPT, ..sets })?;
        if !rustix::process::geteuid().is_root() {
            return Ok(());
        }
        let each = (0..u64::BITS).map(|bit| CapabilitySet::from_bits_retain(1 << bit));
        for capability in each.filter(|capability| !KEPT.contains(*capability)) {
            // The kernel does not know all of them.
            if capability_is_in_bounding_set(capability).unwrap_or(false) {
                remove_capability_from_bounding_set(capability)?;
            }
        }
        Ok(())
    }

    fn restrict(sandbox: &Sandbox) -> Result<(), RulesetError> {
        let strict = match sandbox.enforcement {
            Enforcement::Required => CompatLevel::HardRequirement,
            Enforcement::BestEffort => CompatLevel::BestEffort,
        };
        let mut ruleset =
            Ruleset::default().set_compatibility(strict).handle_access(AccessFs::from_all(FILES))?;
        for (access, ports) in
            [(AccessNet::ConnectTcp, &sandbox.connect), (AccessNet::BindTcp, &sandbox.bind)]
        {
            if ports.is_some() {
                ruleset = ruleset.handle_access(access)?;
            }
        }
        let (read, all) = (AccessFs::from_read(TESTED), AccessFs::from_all(TESTED));
        // A new device node would bypass the path rules of the existing devices.
        let write = all & !(AccessFs::MakeBlock | AccessFs::MakeChar);
        let ruleset = ruleset.set_compatibility(CompatLevel::BestEffort);
        let ruleset = ruleset.handle_access(all)?.scope(Scope::from_all(TESTED))?;
        ruleset
            .create()?
            .add_rules(path_beneath_rules(READABLE, read))?
            .add_rules(path_beneath_rules(DEVICES, write))?
            .add_rules(path_beneath_rules(&sandbox.read, read))?
            .add_rules(rules_without_links(&sandbox.read_if_there, read))?
            .add_rules(path_beneath_rules(&sandbox.write, write))?
            .add_rules(ports(&sandbox.connect, AccessNet::ConnectTcp))?
            .add_rules(ports(&sandbox.bind, AccessNet::BindTcp))?
            .restrict_self()
            .map(drop)
    }

    /// Returns rules for the paths that can be opened without following a link. A folder may have become a link since its path
    /// was checked.
    fn rules_without_links(
        paths: &[PathBuf],
        access: BitFlags<AccessFs>,
    ) -> impl Iterator<Item = Result<PathBeneath<OwnedFd>, RulesetError>> {
        paths.iter().filter_map(move |path| {
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let open = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).ok()?;
            let is_folder = FileType::from_raw_mode(fstat(&open).ok()?.st_mode).is_dir();
            // The kernel refuses the rights of a folder for a file.
            let access = if is_folder { access } else { access & AccessFs::from_file(TESTED) };
            Some(Ok(PathBeneath::new(open, access)))
        })
    }

    fn ports(
        ports: &Option<Vec<u16>>,
        access: AccessNet,
    ) -> impl Iterator<Item = Result<NetPort, RulesetError>> {
        let access: BitFlags<AccessNet> = access.into();
        ports.iter().flatten().map(move |port| Ok(NetPort::new(*port, access)))
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn level() -> String {
    "none (needs Linux)".to_owned()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn missing(_: &Sandbox) -> Option<String> {
    Some("cannot enforce the sandbox: it needs Linux".to_owned())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn apply(_: &Sandbox) -> Result<(), String> {
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_a_sandbox_can_read_is_found_through_links() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        std::os::unix::fs::symlink("/usr", at("link")).unwrap();
        for (path, above) in [
            (at("state"), None),
            (at("link"), Some("/usr")),
            (at("link/not/there"), Some("/usr")),
            (at("link/../not/there"), None),
            ("/usr/lib".into(), Some("/usr")),
            ("/etc/hosts".into(), Some("/etc/hosts")),
            ("/etc/shadow".into(), None),
            ("/usrs".into(), None),
        ] {
            assert_eq!(Sandbox::default().shows(&path), above.map(Path::new), "{}", path.display());
        }
        std::fs::create_dir(at("own")).unwrap();
        std::os::unix::fs::symlink("own", at("other")).unwrap();
        for sandbox in [Sandbox::default().and_read(&at("other")), Sandbox::default().and_write(&at("other"))]
        {
            assert_eq!(sandbox.shows(&at("own/not/there")), Some(at("other").as_path()));
            assert_eq!(sandbox.shows(&at("own-not")), None);
        }
    }

    /// Landlock restricts the thread that asks for it, and those that it starts later.
    #[test]
    fn a_path_that_is_missing_or_has_a_link_is_left_out() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for folder in ["own", "secret"] {
            std::fs::create_dir(at(folder)).unwrap();
            std::fs::write(at(folder).join("file"), "").unwrap();
        }
        std::fs::write(at("alone"), "").unwrap();
        std::os::unix::fs::symlink("secret", at("link")).unwrap();
        let all = ["own", "alone", "missing", "link", "link/file"].map(at);
        let mut sandbox = Sandbox { read_if_there: all.to_vec(), ..Sandbox::default() };
        if let Some(why) = missing(&sandbox) {
            println!("skipped: {why}");
            return;
        }
        let reads = |sandbox: &Sandbox| {
            std::thread::scope(|scope| {
                let confined = scope.spawn(|| {
                    apply(sandbox)?;
                    let files = ["own/file", "alone", "secret/file", "link/file"];
                    Ok::<_, String>(files.map(|name| std::fs::File::open(at(name)).is_ok()))
                });
                confined.join().unwrap()
            })
        };
        assert_eq!(reads(&sandbox).unwrap(), [true, true, false, false]);
        sandbox.read.push(at("missing"));
        assert!(reads(&sandbox).unwrap_err().contains("missing"), "a listed path must exist");
    }
}
