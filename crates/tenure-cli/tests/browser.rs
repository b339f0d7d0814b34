//! The dashboard in a browser: every page and every action, in both themes and as narrow as a phone.
//!
//! The test installs its tools: Debian's headless shell of Chromium, Playwright's driver from Python's package index, and
//! axe from the registry of Node's packages. The last two lie below `target/`.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::installed::{in_python, installed, said};
use crate::program;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use program::Program;
use tempfile::{TempDir, tempdir};

const SOON: Duration = Duration::from_secs(60);
/// What moves the browser: Python's package index has it.
const DRIVER: &str = "playwright==1.65.2";
/// What judges whether everybody can use a page, and the digest of what is fetched.
const AXE: &str = "https://registry.npmjs.org/axe-core/-/axe-core-4.14.1.tgz";
const AXE_SHA512: &str = "1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b734f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5";
/// The headless shell of Chromium needs three quarters of the CPU time that the whole browser needs.
const BROWSERS: [&str; 2] = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"];
/// The story of all pages takes as long as all others. Two browsers at a time keep both processors busy.
static TURNS: [Mutex<()>; 2] = [Mutex::new(()), Mutex::new(())];

/// The browser, its driver and the accessibility checker.
struct Tools {
    browser: &'static str,
    python: PathBuf,
    axe: PathBuf,
}

/// Where all of it is; none where it is not there and may not be installed, which is said, and is a mistake where everything
/// is to be tried.
static TOOLS: LazyLock<Option<Tools>> = LazyLock::new(|| {
    let Some(browser) = browser() else {
        assert!(std::env::var_os("CI").is_none(), "Chromium is needed; only root may install it");
        eprintln!("NOT TRIED: the dashboard in a browser, because there is no Chromium and this is not root");
        return None;
    };
    let driver = in_python("browser", &[DRIVER]);
    let axe = installed("axe", &[AXE], |place| {
        let archive = place.with_extension("tgz");
        let options = "--fail --silent --show-error --location --retry 10 --retry-all-errors --output";
        said(Command::new("curl").args(options.split(' ')).arg(&archive).arg(AXE));
        let digest = said(Command::new("sha512sum").arg(&archive));
        assert!(digest.starts_with(AXE_SHA512), "the download has another digest: {digest}");
        fs::create_dir_all(place).unwrap();
        said(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(place));
    });
    Some(Tools { browser, python: driver.join("python"), axe: axe.join("package/axe.min.js") })
});

/// Finds a browser. Root first installs the headless shell. The lock is that of other tests that install packages: a
/// package manager serves one at a time.
fn browser() -> Option<&'static str> {
    let lock = File::options().create(true).append(true).open(std::env::temp_dir().join("own-postgres.lock"));
    let _alone = lock.and_then(|file| file.lock().map(|()| file));
    let is_root = said(Command::new("id").arg("-u")).trim() == "0";
    if is_root && !Path::new(BROWSERS[0]).exists() {
        install_shell();
    }
    BROWSERS.into_iter().find(|path| Path::new(path).exists())
}

/// Installs the headless shell with Debian's package manager. If that fails, an installed Chromium serves as well.
fn install_shell() {
    let wait = ["-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=5"];
    let install = ["install", "-q", "-y", "--no-install-recommends", "chromium-headless-shell"];
    for args in [&["update", "-q"][..], &install] {
        let status =
            Command::new("apt-get").args(wait).args(args).env("DEBIAN_FRONTEND", "noninteractive").status();
        println!("apt-get {}: {status:?}", args[0]);
    }
}

/// A store that is filled: the past of a shop takes longer to happen than to be copied.
static FILLED: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempdir().unwrap();
    let (mut dev, _) = started(folder.path());
    dev.interrupt();
    assert_eq!(dev.end(SOON), Some(0));
    folder
});

/// A server on what is in a folder, which is filled if nothing is in it.
fn started(folder: &Path) -> (Program, String) {
    let mut dev = Program::start(&["dev", "--seed", "--verbose", "--db", "dev.db", "--port", "0"], folder);
    let line = dev.line_with("http://", SOON);
    let address = line.split("http://").nth(1).unwrap().split([';', ' ']).next().unwrap().to_owned();
    // What it is filled with is there before the first job of its own.
    dev.line_with("enqueued", SOON);
    (dev, address)
}

/// Has a story played in the browser, on a server that is filled. It tells what it has seen.
fn played(story: &str) {
    let Some(tools) = &*TOOLS else { return };
    let turn = &TURNS[usize::from(story == "pages")];
    let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempdir().unwrap();
    for file in fs::read_dir(FILLED.path()).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
    }
    let (mut dev, address) = started(folder.path());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/main.py");
    let told = said(
        Command::new(&tools.python)
            .arg("-B")
            .arg(script)
            .args([story, &format!("http://{address}"), tools.browser])
            .arg(&tools.axe)
            .arg(tools.axe.with_file_name("shots"))
            .env("TENURE", env!("CARGO_BIN_EXE_tenure")),
    );
    assert!(told.contains("all of it"), "{told}");
    println!("{told}");
    dev.interrupt();
    assert_eq!(dev.end(SOON), Some(0));
}

#[test]
fn every_page_can_be_used_by_everybody_in_both_themes_and_on_a_phone() {
    played("pages");
}

#[test]
fn whatever_can_be_done_is_done_by_a_form() {
    played("forms");
}

#[test]
fn a_keyboard_is_enough() {
    played("keyboard");
}

#[test]
fn what_is_hostile_is_text() {
    played("hostile");
}

#[test]
fn a_stranger_finds_what_he_wants_in_three_clicks() {
    played("tasks");
}

#[test]
fn what_is_shown_is_what_is() {
    played("live");
}

#[test]
fn whoever_signs_in_sees_and_does_what_his_token_may() {
    played("rights");
}
