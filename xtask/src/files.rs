//! The files of this repository.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

/// A text file: where it is, relative to the root and with forward slashes, and what it says.
#[derive(Debug, Clone)]
pub struct TextFile {
    /// Relative to the root, with forward slashes on every system.
    pub path: String,
    /// What it says.
    pub text: String,
}

/// The root of the repository.
pub fn root() -> PathBuf {
    let manifest_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest_dir.parent().unwrap_or(manifest_dir).to_path_buf()
}

/// Every file that is in the repository or could be added to it, sorted.
///
/// Git knows best. A copy without its history, such as an unpacked archive, is walked instead.
pub fn all(root: &Path) -> io::Result<Vec<String>> {
    let mut paths = match by_git(root) {
        Some(paths) => paths,
        None => {
            let mut paths = Vec::new();
            walk(root, "", &mut paths)?;
            paths
        }
    };
    // Git still lists a file that was deleted and not yet committed.
    paths.retain(|path| root.join(path).is_file());
    paths.sort();
    Ok(paths)
}

/// Every text file among [`all`]; a file that is not UTF-8 is not text.
pub fn texts(root: &Path) -> io::Result<Vec<TextFile>> {
    let mut texts = Vec::new();
    for path in all(root)? {
        if let Ok(text) = String::from_utf8(fs::read(root.join(&path))?) {
            texts.push(TextFile { path, text });
        }
    }
    Ok(texts)
}

fn by_git(root: &Path) -> Option<Vec<String>> {
    // An unpacked archive inside of somebody else's repository must not be asked about that repository.
    if !root.join(".git").exists() {
        return None;
    }
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let list = String::from_utf8(output.stdout).ok()?;
    Some(list.split('\0').filter(|path| !path.is_empty()).map(String::from).collect())
}

fn walk(root: &Path, folder: &str, found: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() && !["target", ".git", ".tenure"].contains(&name.as_str()) {
            walk(root, &path, found)?;
        } else if kind.is_file() || (kind.is_symlink() && root.join(&path).is_file()) {
            found.push(path);
        }
    }
    Ok(())
}

/// Whether the path is Rust source that is compiled into a crate: `crates/*/src/**.rs`.
pub fn is_crate_source(path: &str) -> bool {
    path.ends_with(".rs") && in_source_of_a_crate(path)
}

fn in_source_of_a_crate(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.next() == Some("crates") && parts.next().is_some() && parts.next() == Some("src")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walking_finds_what_git_lists() {
        let root = root();
        let mut walked = Vec::new();
        walk(&root, "", &mut walked).expect("the repository can be read");
        for path in all(&root).expect("the repository can be read") {
            assert!(walked.contains(&path), "{path} was not walked to");
        }
    }

    #[test]
    fn tests_and_manifests_are_not_crate_source() {
        assert!(is_crate_source("crates/tenure/src/worker/plan.rs"));
        assert!(!is_crate_source("crates/tenure/tests/worker.rs"));
        assert!(!is_crate_source("crates/tenure-sqlite/src/schema.sql"));
        assert!(!is_crate_source("xtask/src/main.rs"));
    }
}
