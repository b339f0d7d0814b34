//! Access to files: a database holds args, results and signing keys, so only its owner may read it.

use std::fs::OpenOptions;
use std::path::Path;

use tenure_store::Caution;

/// Returns options that create a file for its owner alone, under any umask. SQLite gives its log and its shared
/// memory the permissions of the file.
pub(crate) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Returns a caution if users outside of the file's owner and group can reach and open it.
#[cfg(unix)]
pub(crate) fn cautions(path: &Path) -> Vec<Caution> {
    use std::os::unix::fs::PermissionsExt;
    let mode_of = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.permissions().mode());
    // The log and the shared memory of an older file can be wider than the file.
    let mode = ["", "-wal", "-shm"].into_iter().fold(0, |mode, end| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        mode | (mode_of(Path::new(&name)) & 0o777)
    });
    // A folder that others cannot search protects every file below it.
    let is_reachable = std::fs::canonicalize(path)
        .is_ok_and(|path| path.ancestors().skip(1).all(|folder| mode_of(folder) & 0o001 != 0));
    if mode & 0o007 == 0 || !is_reachable {
        return Vec::new();
    }
    let file = quoted(path);
    vec![Caution {
        found: format!("all users of this machine can open {} (mode {mode:o})", path.display()),
        next: format!("run `chmod o-rwx {file} {file}-*`"),
    }]
}

/// Other systems have no modes.
#[cfg(not(unix))]
pub(crate) fn cautions(_: &Path) -> Vec<Caution> {
    Vec::new()
}

/// Returns a path as one word of a shell command.
#[cfg(unix)]
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "/._-".contains(sign);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_of_a_shell_command() {
        assert_eq!(quoted(Path::new("/srv/jobs.db")), "/srv/jobs.db");
        assert_eq!(quoted(Path::new("my jobs.db")), "'my jobs.db'");
        assert_eq!(quoted(Path::new("it's.db")), r"'it'\''s.db'");
    }
}
