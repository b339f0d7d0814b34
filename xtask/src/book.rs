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

fn installed(root: &Path) -> Result<PathBuf, Failure> {
    let own = root.join("target/tools/bin/mdbook");
    if own.is_file() {
        return Ok(own);
    }
    if Command::new("mdbook").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return Ok("mdbook".into());
    }
    let status = cargo(root).args(INSTALL).status();
    if status.is_ok_and(|status| status.success()) {
        return Ok(own);
    }
    Err(Failure::check("mdbook is missing and cargo could not install it"))
}
