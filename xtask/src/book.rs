//! `cargo xtask book`: builds the book, with mdBook from the path or installed below `target`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::check::cargo;
use crate::failure::Failure;
use crate::files;

/// The version that is installed where none is on the path. Search is the only part of it that the book needs.
const INSTALL: &[&str] = &[
    "install",
    "mdbook@0.5.1",
    "--locked",
    "--debug",
    "--no-default-features",
    "--features",
    "search",
    "--root",
    "target/tools",
    "--target-dir",
    "target/tools/build",
];

/// Path of an mdBook that this program has installed.
const OWN: &str = "target/tools/bin/mdbook";

/// Builds the book into `target/book`.
pub fn run() -> Result<(), Failure> {
    let root = files::root();
    let mdbook = installed(&root)?;
    let built = root.join("target/book");
    let output = Command::new(mdbook)
        .args(["build", "docs", "--dest-dir"])
        .arg(&built)
        .current_dir(&root)
        .output()
        .map_err(|error| Failure::check(format!("mdbook: {error}")))?;
    let said = String::from_utf8_lossy(&output.stderr);
    print!("{said}");
    if !output.status.success() || said.contains("WARN") || said.contains("ERROR") {
        return Err(Failure::check("mdbook did not build the book without a warning"));
    }
    println!("the book is in {}", built.display());
    Ok(())
}

/// Returns true if mdBook is on the path or was installed below `target`.
pub fn finds_mdbook(root: &Path) -> bool {
    found(root).is_some()
}

fn found(root: &Path) -> Option<PathBuf> {
    let own = root.join(OWN);
    if own.is_file() {
        return Some(own);
    }
    let is_there =
        Command::new("mdbook").arg("--version").output().is_ok_and(|output| output.status.success());
    is_there.then(|| "mdbook".into())
}

fn installed(root: &Path) -> Result<PathBuf, Failure> {
    if let Some(mdbook) = found(root) {
        return Ok(mdbook);
    }
    let status = cargo(root).args(INSTALL).status();
    if status.is_ok_and(|status| status.success()) {
        return Ok(root.join(OWN));
    }
    Err(Failure::check("mdbook is missing and cargo could not install it"))
}
