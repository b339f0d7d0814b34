//! Fuzz target of zip packages: no package changes a file outside of its folder.

use std::fs;
use std::path::{Path, PathBuf};

use tenure_fuzz::Target;

use super::links::first_outward;
use super::unpack::unpack;

/// Bytes that a package of a few kilobytes can become: deflate makes a thousand of one.
const MOST_BYTES: u64 = 64 << 20;

/// Returns the files and folders below a folder, without following links, and the bytes of the files.
fn contents(root: &Path) -> (Vec<PathBuf>, u64) {
    let (mut folders, mut found, mut bytes) = (vec![root.to_owned()], Vec::new(), 0);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            bytes += if kind.is_file() { entry.metadata().unwrap().len() } else { 0 };
            if kind.is_dir() {
                folders.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found.sort();
    (found, bytes)
}

#[test]
fn a_package_changes_nothing_beyond_its_folder() {
    let words = &[
        "PK\x03\x04",
        "PK\x01\x02",
        "PK\x05\x06",
        "PK\x06\x06",
        "PK\x06\x07",
        "../",
        "..\\",
        "/",
        "C:",
        "\0",
        "a/b",
        "\x08\0",
        "\0\0\u{a1}",
        "\u{ff}\u{ff}",
        "\u{7ff}",
    ];
    Target::new(env!("CARGO_MANIFEST_DIR"), "zip").words(words).check(|input| {
        let root = tempfile::tempdir().unwrap();
        let (zip, around) = (root.path().join("package.zip"), root.path().join("around"));
        let to = around.join("a/b/c/to");
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::write(&zip, input).unwrap();
        let outcome = unpack(&zip, &to);
        let (found, bytes) = contents(&around);
        let beyond: Vec<_> =
            found.iter().filter(|path| !path.starts_with(&to) && !to.starts_with(path)).collect();
        assert!(beyond.is_empty(), "{beyond:?}");
        assert!(bytes <= MOST_BYTES, "{bytes} bytes");
        match outcome {
            Ok(()) => {
                assert_eq!(first_outward(&to).unwrap(), None);
                format!("{} files", found.len())
            }
            Err(error) => {
                let told = error.to_string();
                told.rsplit(": ").next().unwrap_or_default().to_owned()
            }
        }
    });
}
