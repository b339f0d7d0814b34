//! The identity of a folder of programs: two folders never share a set, and copies of one folder do.
//!
//! A file in the folder holds the identity, so it moves and is deployed with the programs. A set belongs to the first
//! identity that claims it.

use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tenure::Error;

use crate::exit::Failure;

/// The file in a folder of programs.
const FILE: &str = "tenure.id";
/// Characters of an identity.
const LONGEST: usize = 64;
/// Of these, how many come from the folder's name.
const OF_NAME: usize = 40;
/// Of these, how many are random.
const RANDOM: usize = 8;
/// Prefix of the file's temporary name.
const BEGUN: &str = ".tenure-id-";

/// Returns the identity of the folder, and gives it one if it has none.
///
/// `set` is the set that the operator named, if any.
pub(super) fn of(folder: &Path, set: Option<&str>) -> Result<String, Failure> {
    if let Some(identity) = read(folder)? {
        return Ok(identity);
    }
    match (write(folder), set) {
        (Ok(identity), _) => identity,
        // An image that cannot be written to has the identity that its operator names.
        (Err(_), Some(set)) => Ok(format!("set-{set}")),
        (Err(source), None) => Err(unwritable(folder, &source)),
    }
}

/// Says what to do if the set belongs to another folder.
pub(super) fn explained(error: Error, folder: &Path, identity: &str) -> Failure {
    let Error::AppTaken { by, .. } = error else { return error.into() };
    let (set, other, file) = (&by.app, &by.program, folder.join(FILE));
    Failure::Conflict(format!(
        "set {set} belongs to another folder, {other} (last seen {}); this folder is {identity}. For other programs on \
         this database, pass --set with another name. If this is a copy of that folder, write {other} into {}",
        by.seen,
        file.display()
    ))
}

fn unwritable(folder: &Path, source: &io::Error) -> Failure {
    let path = folder.join(FILE);
    Failure::Invalid(format!(
        "cannot write {}: {source}. Hosts tell folders apart by this file: create it with a name of your choice before \
         you deploy the folder, or pass --set NAME",
        path.display()
    ))
}

/// The identity that stands in the folder.
fn read(folder: &Path) -> Result<Option<String>, Failure> {
    let path = folder.join(FILE);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(Failure::Input { path, source }),
    };
    let identity = text.trim();
    let is_known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !(1..=LONGEST).contains(&identity.len()) || !identity.chars().all(is_known) {
        return Err(Failure::Invalid(format!(
            "invalid identity in {}: expected 1 to {LONGEST} letters, digits, '-', '_' and '.'; \
             delete the file to get a new identity",
            path.display()
        )));
    }
    Ok(Some(identity.to_owned()))
}

/// Writes a new identity, unless another host of this folder was faster; then that one's counts.
fn write(folder: &Path) -> io::Result<Result<String, Failure>> {
    let mut file = tempfile::Builder::new().prefix(BEGUN).rand_bytes(RANDOM).tempfile_in(folder)?;
    // Hosts of other users read it, too.
    file.as_file().set_permissions(Permissions::from_mode(0o644))?;
    let name = file.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let identity = format!("{}{}", named(folder), name.trim_start_matches(BEGUN));
    writeln!(file, "{identity}")?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(folder.join(FILE)) {
        Ok(_) => Ok(Ok(identity)),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
            Ok(read(folder).map(|there| there.unwrap_or(identity)))
        }
        Err(error) => Err(error.error),
    }
}

/// The beginning of an identity: the folder's name, for people.
fn named(folder: &Path) -> String {
    let path = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = name.chars().take(OF_NAME).map(plain).collect();
    match name.trim_matches('-') {
        "" => String::new(),
        name => format!("{name}-"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_stays_with_its_folder_and_another_folder_has_another() {
        let root = tempfile::tempdir().unwrap();
        let [one, other] = ["My Jobs", "other"].map(|name| root.path().join(name));
        for folder in [&one, &other] {
            std::fs::create_dir(folder).unwrap();
        }
        let identity = of(&one, None).unwrap();
        assert!(identity.starts_with("my-jobs-") && identity.len() == 8 + RANDOM, "{identity}");
        assert_ne!(of(&other, None).unwrap(), identity);
        let moved = root.path().join("moved");
        std::fs::rename(&one, &moved).unwrap();
        assert_eq!(of(&moved, Some("billing")).unwrap(), identity);
        std::fs::copy(moved.join(FILE), other.join(FILE)).unwrap();
        assert_eq!(of(&other, None).unwrap(), identity, "a copy on purpose");
        std::fs::write(other.join(FILE), "two words\n").unwrap();
        let refused = of(&other, None).unwrap_err().to_string();
        assert!(refused.contains("invalid identity") && refused.contains("delete the file"), "{refused}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_folder_that_cannot_be_written_to_needs_the_file_or_a_set() {
        // Not even root can write here.
        let folder = Path::new("/proc/self/attr");
        let refused = of(folder, None).unwrap_err().to_string();
        assert!(refused.contains("cannot write /proc/self/attr/tenure.id"), "{refused}");
        assert!(refused.contains("pass --set NAME"), "{refused}");
        assert_eq!(of(folder, Some("billing")).unwrap(), "set-billing");
    }
}
