//! Rights of a program: privileges that it may gain, and descriptors of its host.

use std::ffi::OsStr;
use std::fmt;
use std::io;

/// Rights of a program. By default, it may do all that its host may.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rights {
    /// Whether neither the program nor what it starts can get more rights than it has, by `sudo` for one. On Linux only; elsewhere
    /// such a program does not begin.
    pub no_new_privs: bool,
    /// Close the descriptors that the host inherited and would pass on, such as the sockets of its service manager. Standard
    /// input, output and error stay.
    pub closes_descriptors: bool,
}

/// The words for each right that is taken, and for the right that stays.
const PRIVS: [&str; 2] = ["bound", "any"];
const DESCRIPTORS: [&str; 2] = ["closed", "open"];

impl Rights {
    /// Reads the word that one process of ours passes to another.
    pub(crate) fn read(word: &OsStr) -> Option<Self> {
        let (privs, descriptors) = word.to_str()?.split_once(',')?;
        let is_taken =
            |word: &str, words: [&str; 2]| Some(words.iter().position(|known| *known == word)? == 0);
        Some(Self {
            no_new_privs: is_taken(privs, PRIVS)?,
            closes_descriptors: is_taken(descriptors, DESCRIPTORS)?,
        })
    }

    /// Takes from this process, which is about to become the program, what it may not become.
    pub(crate) fn bind_this_process(self) -> io::Result<()> {
        if self.no_new_privs { set_no_new_privs() } else { Ok(()) }
    }

    /// Closes the descriptors that this supervisor inherited. Call it before the supervisor opens any file.
    pub(crate) fn close_descriptors(self) -> io::Result<()> {
        if self.closes_descriptors { close_descriptors() } else { Ok(()) }
    }
}

/// Closes all descriptors above standard error. Our own are close-on-exec; those of shells and service managers are not.
fn close_descriptors() -> io::Result<()> {
    const STANDARD_ERROR: i32 = 2;
    const OPEN: &str = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };
    let names = std::fs::read_dir(OPEN)?.map(|entry| Ok(entry?.file_name()));
    let names: Vec<_> = names.collect::<io::Result<_>>()?;
    for descriptor in names.iter().filter_map(|name| name.to_str()?.parse::<i32>().ok()) {
        if descriptor > STANDARD_ERROR {
            // The list had one as well, which is closed by now.
            let _ = nix::unistd::close(descriptor);
        }
    }
    Ok(())
}

/// Prevents processes of the same user from reading this process's environment, memory and descriptors.
///
/// Otherwise a program could read its host's credentials. The setting also prevents core dumps of this process. On systems
/// other than Linux, and for root, nothing changes.
pub fn hide_this_process() {
    // A sandbox may refuse the call. Programs run anyway, because separate users are the first line of defense.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

#[cfg(target_os = "linux")]
fn set_no_new_privs() -> io::Result<()> {
    rustix::thread::set_no_new_privs(true).map_err(io::Error::from)
}

#[cfg(not(target_os = "linux"))]
fn set_no_new_privs() -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "not supported by this system"))
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |words: [&'static str; 2], is_taken: bool| words[usize::from(!is_taken)];
        let (privs, descriptors) =
            (word(PRIVS, self.no_new_privs), word(DESCRIPTORS, self.closes_descriptors));
        write!(f, "{privs},{descriptors}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_go_from_process_to_process_as_they_are() {
        for (no_new_privs, closes_descriptors) in [(true, true), (true, false), (false, true), (false, false)]
        {
            let rights = Rights { no_new_privs, closes_descriptors };
            assert_eq!(Rights::read(OsStr::new(&rights.to_string())), Some(rights));
        }
        for bad in ["", "any", "any,", "none,open", "any,open,"] {
            assert_eq!(Rights::read(OsStr::new(bad)), None, "{bad}");
        }
    }
}
