//! The statements that make a peer's tables, out of its own package.
//!
//! Some peers do not make their tables: whoever uses them copies statements from their packages. This looks the package
//! up that the contestant is built with, so that the statements are those of that very version.
#![forbid(unsafe_code)]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How the files end that make tables; others remove them.
const UP: &str = "up.sql";

/// Writes what makes the tables of a package, all of its files below a folder in order, to `tables.sql` in `OUT_DIR`.
/// For the build script of a contestant.
///
/// # Errors
/// The package is not among those it is built with, or has no such files.
pub fn write(package: &str, folder: &str) -> Result<(), Box<dyn Error>> {
    let mut files = Vec::new();
    collect(&home_of(package)?.join(folder), &mut files)?;
    files.sort();
    if files.is_empty() {
        return Err(format!("{package} has no {UP} below {folder}").into());
    }
    let all = files.iter().map(std::fs::read_to_string).collect::<Result<Vec<_>, _>>()?;
    let out = std::env::var_os("OUT_DIR").ok_or("only for a build script")?;
    std::fs::write(Path::new(&out).join("tables.sql"), all.join("\n"))?;
    println!("cargo::rerun-if-changed=Cargo.lock");
    Ok(())
}

/// Where the package is that the contestant in this folder is built with.
fn home_of(package: &str) -> Result<PathBuf, Box<dyn Error>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let told = Command::new(cargo).args(["metadata", "--format-version", "1", "--locked"]).output()?;
    if !told.status.success() {
        return Err(String::from_utf8_lossy(&told.stderr).into_owned().into());
    }
    let told: serde_json::Value = serde_json::from_slice(&told.stdout)?;
    let mut packages = told["packages"].as_array().into_iter().flatten();
    let manifest =
        packages.find(|known| known["name"] == package).and_then(|it| it["manifest_path"].as_str());
    let home = manifest.and_then(|manifest| Path::new(manifest).parent());
    Ok(home.ok_or_else(|| format!("{package} is not among the packages"))?.to_owned())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.to_string_lossy().ends_with(UP) {
            files.push(path);
        }
    }
    Ok(())
}
