//! Programs in Python and Node that tests install into folders of their own, once for each build folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Installs releases from Python's package index into a virtual environment, and returns its folder of programs.
pub fn in_python(name: &str, releases: &[&str]) -> PathBuf {
    let place = installed(name, releases, |place| {
        said(Command::new("python3").args(["-m", "venv"]).arg(place));
        let options = ["install", "--quiet", "--no-compile", "--retries", "10"];
        said(Command::new(place.join("bin/pip")).args(options).args(releases));
    });
    place.join("bin")
}

/// Installs releases from the registry of Node's packages, and returns the folder that contains `node_modules`. Without npm
/// it returns `None`, except where CI has to try everything.
pub fn in_node(name: &str, releases: &[&str]) -> Option<PathBuf> {
    if Command::new("npm").arg("--version").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "npm is needed for {name}");
        eprintln!("NOT TRIED: {name}, because there is no npm here");
        return None;
    }
    Some(installed(name, releases, |place| {
        fs::create_dir_all(place).unwrap();
        fs::write(place.join("package.json"), "{\"private\":true,\"type\":\"module\"}\n").unwrap();
        let options = ["install", "--no-audit", "--no-fund", "--silent", "--fetch-retries=8"];
        said(Command::new("npm").current_dir(place).args(options).args(releases));
    }))
}

/// Returns a folder in which these releases are installed. Deletes an unfinished installation first.
pub fn installed(name: &str, releases: &[&str], install: impl FnOnce(&Path)) -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let (done, all) = (place.join("installed"), releases.join("\n"));
    if fs::read_to_string(&done).is_ok_and(|done| done == all) {
        return place;
    }
    let _ = fs::remove_dir_all(&place);
    install(&place);
    fs::write(done, all).unwrap();
    place
}

/// Returns the output of a program, which must succeed.
pub fn said(command: &mut Command) -> String {
    let ended = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = [ended.stdout, ended.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(ended.status.success(), "{command:?}: {}\n{text}", ended.status);
    text
}
