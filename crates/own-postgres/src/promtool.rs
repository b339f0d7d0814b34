//! What tests rules for Prometheus: the program alone, without a server.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;
use crate::binaries::{apt, one_at_a_time};

/// Where Debian puts it.
const INSTALLED: [&str; 2] = ["/usr/bin/promtool", "/usr/local/bin/promtool"];
/// Where it is in the package.
const WITHIN: &str = "usr/bin/promtool";

/// Where `promtool` is. If it is not installed Debian's package `prometheus` is fetched and unpacked aside: installed, it
/// would start a server, and nobody wants that one.
///
/// # Errors
/// It is not there, and could not be fetched.
pub fn promtool() -> Result<PathBuf, Error> {
    let aside = std::env::temp_dir().join("own-promtool");
    let find = || {
        let installed = INSTALLED.iter().map(PathBuf::from);
        installed.chain([aside.join(WITHIN)]).find(|place| place.exists())
    };
    let _alone = one_at_a_time()?;
    if let Some(found) = find() {
        return Ok(found);
    }
    // Whoever looks meanwhile finds all of it or nothing.
    let making = std::env::temp_dir().join(format!("own-promtool-{}", std::process::id()));
    let made = fetch(&making).and_then(|()| {
        std::fs::rename(&making, &aside)
            .or_else(|error| if aside.exists() { Ok(()) } else { Err(failed(&error)) })
    });
    // It has moved, or is of no use.
    let _ = std::fs::remove_dir_all(&making);
    made?;
    find().ok_or_else(|| Error::NotInstalled("the package brought no promtool".to_owned()))
}

fn fetch(into: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(into).map_err(|error| failed(&error))?;
    let download = || {
        run(Command::new("apt-get")
            .args(["download", "-q", "-o", "Acquire::Retries=5", "prometheus"])
            .current_dir(into))
    };
    if download().is_err() {
        // Nothing is known of any package, or of an older one.
        apt(&["update", "-q"])?;
        download()?;
    }
    let entries = std::fs::read_dir(into).map_err(|error| failed(&error))?;
    let package = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"));
    let package = package.ok_or_else(|| Error::NotInstalled("no package was fetched".to_owned()))?;
    run(Command::new("dpkg").arg("-x").arg(package).arg(into))
}

fn run(command: &mut Command) -> Result<(), Error> {
    match command.output() {
        Ok(said) if said.status.success() => Ok(()),
        Ok(said) => Err(Error::NotInstalled(String::from_utf8_lossy(&said.stderr).trim().to_owned())),
        Err(error) => Err(failed(&error)),
    }
}

fn failed(error: &std::io::Error) -> Error {
    Error::NotInstalled(format!("promtool: {error}"))
}
