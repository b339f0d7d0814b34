//! Folders in which no other user can replace anything.
//!
//! A host that runs as root creates folders by path and gives them to the user of a program. If that user could replace a
//! folder on the path by a link, the host would give away the target of the link.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::process::geteuid;

/// Links that a path may lead through, as Linux has it.
const MOST_LINKS: usize = 40;
/// Write permission of the group and of others. With an access control list, the group's bits are its mask.
const WRITABLE: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// Checks that no user but root and this process's own can replace a file in this folder, the folder, or any folder or link
/// on the way to it. If the folder does not exist yet, checks the existing part of the way.
///
/// # Errors
///
/// If another user can, or what the system says.
pub(super) fn check(path: &Path) -> io::Result<()> {
    let parts = |path: &Path| -> Vec<OsString> {
        path.components().rev().map(|part| part.as_os_str().to_owned()).collect()
    };
    // The next part is the last.
    let mut left = parts(&std::path::absolute(path)?);
    let (mut at, mut links) = (PathBuf::new(), 0);
    while let Some(part) = left.pop() {
        match Path::new(&part).components().next() {
            None | Some(Component::CurDir | Component::Prefix(_)) => continue,
            // The parents of a folder without links have been checked.
            Some(Component::ParentDir) => {
                at.pop();
                continue;
            }
            Some(Component::RootDir) => at = PathBuf::from("/"),
            Some(Component::Normal(name)) => at.push(name),
        }
        let found = match at.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found?,
        };
        if found.uid() != 0 && found.uid() != geteuid().as_raw() {
            return refuse(&at, &format!("belongs to user {}", found.uid()));
        }
        if found.is_symlink() {
            links += 1;
            if links > MOST_LINKS {
                return refuse(&at, "leads through too many links");
            }
            left.append(&mut parts(&at.read_link()?));
            at.pop();
            continue;
        }
        // In a sticky folder, only its owner can replace the next part.
        refuse_writable(&at, found.mode(), found.mode() & STICKY == 0)?;
    }
    // Files of this folder may not exist yet, and any user could create them.
    refuse_writable(&at, at.symlink_metadata()?.mode(), true)
}

fn refuse_writable(at: &Path, mode: u32, is_replaceable: bool) -> io::Result<()> {
    if mode & WRITABLE == 0 || !is_replaceable {
        return Ok(());
    }
    refuse(at, &format!("is writable by other users (mode {:o})", mode & 0o7777))
}

fn refuse<T>(at: &Path, why: &str) -> io::Result<T> {
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "{} {why}, so a program of another user could replace the host's files. Pass --state with a folder that only \
             root can change, such as /var/lib/tenure",
            at.display()
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};

    fn refused(path: &Path) -> String {
        check(path).map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_refused_wherever_it_is_on_the_way() {
        let root = tempfile::tempdir().unwrap();
        let (top, state) = (root.path().join("top"), root.path().join("top/state"));
        fs::create_dir_all(&state).unwrap();
        let mode = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        for (folder, its_mode, is_refused) in [
            (&top, 0o755, false),
            (&top, 0o775, true),
            (&top, 0o757, true),
            (&top, 0o1777, false),
            (&state, 0o775, true),
            (&state, 0o1777, true),
        ] {
            mode(&top, 0o755);
            mode(&state, 0o755);
            mode(folder, its_mode);
            let words = refused(&state);
            assert_eq!(words.contains("--state"), is_refused, "{its_mode:o}: {words}");
            assert_eq!(words.contains(folder.to_str().unwrap()), is_refused, "{words}");
        }
        mode(&state, 0o755);
        assert_eq!(refused(&state.join("not/there/yet")), "");
        mode(&state, 0o777);
        assert!(refused(&state.join("not/there/yet")).contains("writable by other users"));
    }

    #[test]
    fn a_link_is_followed_and_must_not_belong_to_another_user() {
        let root = tempfile::tempdir().unwrap();
        let [state, open, link] = ["state", "open", "link"].map(|name| root.path().join(name));
        fs::create_dir(&state).unwrap();
        fs::create_dir_all(open.join("below")).unwrap();
        fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
        symlink("state", &link).unwrap();
        assert_eq!(refused(&link.join("data")), "");
        symlink("state/../open/below", root.path().join("other")).unwrap();
        assert!(refused(&root.path().join("other")).contains("open is writable"));
        symlink("itself", root.path().join("itself")).unwrap();
        assert!(refused(&root.path().join("itself")).contains("too many links"));
        if geteuid().is_root() {
            lchown(&link, Some(65534), None).unwrap();
            assert!(refused(&link.join("data")).contains("link belongs to user 65534"));
            lchown(&state, Some(65534), None).unwrap();
            assert!(refused(&state.join("data")).contains("state belongs to user 65534"));
        }
    }
}
