//! Symbolic links in folders that others have packed.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Links that one link may lead through, as Linux has it.
const MOST_LINKS: usize = 40;

/// Returns true if a link below `root` leads out of it, or through too many other links. Follows the links on disk, because
/// a harmless-looking path can pass through a second link.
pub(super) fn leads_out(root: &Path, link: &Path) -> bool {
    let Ok(place) = link.strip_prefix(root) else { return true };
    // The parts that are left stand in reverse: the next one is the last.
    let parts_of =
        |path: &Path| path.components().rev().map(|part| PathBuf::from(part.as_os_str())).collect();
    let (mut at, mut left, mut links): (_, Vec<PathBuf>, _) = (PathBuf::new(), parts_of(place), 0);
    while let Some(part) = left.pop() {
        match part.components().next() {
            None | Some(Component::CurDir) => {}
            Some(Component::Prefix(_) | Component::RootDir) => return true,
            Some(Component::ParentDir) => {
                if !at.pop() {
                    return true;
                }
            }
            Some(Component::Normal(name)) => match fs::read_link(root.join(&at).join(name)) {
                Ok(_) if links == MOST_LINKS => return true,
                Ok(target) => {
                    links += 1;
                    left.append(&mut parts_of(&target));
                }
                // No link; perhaps there is nothing of that name.
                Err(_) => at.push(name),
            },
        }
    }
    false
}

/// Returns the first link below `root` that leads out of it.
pub(super) fn first_outward(root: &Path) -> io::Result<Option<PathBuf>> {
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_symlink() && leads_out(root, &path) {
                return Ok(Some(path));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn tree(links: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, target) in links {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(target, path).unwrap();
        }
        root
    }

    #[test]
    fn a_link_leads_out_where_it_goes_above_the_top() {
        for (path, target, is_out) in [
            ("a", "x", false),
            ("a", "../x", true),
            ("d/a", "../x", false),
            ("d/a", "../../x", true),
            ("a", "x/../../y", true),
            ("a", "./x/../y", false),
            ("d/e/f/g/h/a", "/etc/passwd", true),
            ("a", "a", true),
        ] {
            let root = tree(&[(path, target)]);
            assert_eq!(leads_out(root.path(), &root.path().join(path)), is_out, "{path} to {target}");
            assert_eq!(first_outward(root.path()).unwrap().is_some(), is_out, "{path} to {target}");
        }
    }

    #[test]
    fn a_link_is_followed_through_other_links() {
        let up = ("d/e/f/g/up", "../../../..");
        for (target, is_out) in [
            ("d/e/f/g/up/../../../../x", true),
            ("d/e/f/g/up/../x", true),
            ("d/e/f/g/up/x", false),
            ("d/e/f/g/up/d/e/f/g/up/x", false),
            ("d/e/f/g/up/d/e/../../../x", true),
        ] {
            let root = tree(&[up, ("leak", target)]);
            assert!(!leads_out(root.path(), &root.path().join(up.0)));
            assert_eq!(leads_out(root.path(), &root.path().join("leak")), is_out, "{target}");
        }
    }
}
