//! Clients that somebody else's program has written from the description of the interface, and clients that only know what
//! long-running operations have in common: what they do is right, without a line by hand.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::installed::{in_node, in_python, said};
use crate::served;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use served::{ask, served};
use tempfile::tempdir;

/// What Python's package index has.
const PYTHON: [&str; 3] = ["openapi-python-client==0.29.1", "azure-core==1.41.0", "requests==2.34.2"];
/// What the index of Node's packages has. The generator does not know a later TypeScript.
const NODE: [&str; 4] =
    ["openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3", "@azure/core-lro@3.3.1"];

const DOCUMENTS: [&str; 2] = ["openapi.json", "openapi-3.0.json"];

/// The folder with the Python programs.
static IN_PYTHON: LazyLock<PathBuf> = LazyLock::new(|| in_python("python-clients", &PYTHON));

/// The folder that contains `node_modules`; `None` without npm.
static IN_NODE: LazyLock<Option<PathBuf>> = LazyLock::new(|| in_node("typescript-clients", &NODE));

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name)
}

/// What a server says of itself, in a file of this folder.
pub fn described(address: &str, document: &str, folder: &Path) -> PathBuf {
    let (status, _, text) = ask(address, "GET", &format!("/{document}"), "", "");
    assert_eq!(status, 200);
    let file = folder.join(document);
    fs::write(&file, text).unwrap();
    file
}

#[test]
fn a_client_in_python_that_was_generated_does_all_that_it_is_for() {
    // Version 3.0 is left out: the generator ignores `nullable` beside a type.
    for document in &DOCUMENTS[..1] {
        let folder = tempdir().unwrap();
        let (_server, address) = served(folder.path());
        let description = described(&address, document, folder.path());
        let path = std::env::join_paths(
            [IN_PYTHON.clone()].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
        );
        let told = said(
            Command::new(IN_PYTHON.join("openapi-python-client"))
                .env("PATH", path.unwrap())
                .args(["generate", "--meta", "none", "--path"])
                .arg(description)
                .arg("--output-path")
                .arg(folder.path().join("tenure_client")),
        );
        // It leaves out what it does not understand, and says so in passing only.
        // The one thing is a batch as lines, which may be sent as JSON as well.
        let (odd, lines) =
            (told.matches("WARNING").count(), told.matches("WARNING parsing POST /v1/jobs/batch").count());
        assert!(odd == 1 && lines == 1 && !told.contains("Unable"), "{document}: {told}");
        let told = said(
            Command::new(IN_PYTHON.join("python"))
                .env("PYTHONPATH", folder.path())
                .arg(script("generated.py"))
                .arg(format!("http://{address}")),
        );
        assert!(told.contains("all of it"), "{document}: {told}");
    }
}

#[test]
fn a_client_in_typescript_whose_types_were_generated_is_checked_and_does_all_that_it_is_for() {
    let Some(place) = &*IN_NODE else { return };
    for document in DOCUMENTS {
        let folder = tempdir().unwrap();
        let (_server, address) = served(folder.path());
        let description = described(&address, document, folder.path());
        let tool = |name: &str| {
            let mut command = Command::new(place.join("node_modules/.bin").join(name));
            command.current_dir(folder.path());
            command
        };
        std::os::unix::fs::symlink(place.join("node_modules"), folder.path().join("node_modules")).unwrap();
        fs::copy(place.join("package.json"), folder.path().join("package.json")).unwrap();
        fs::copy(script("generated.ts"), folder.path().join("generated.ts")).unwrap();
        // As a source, because the declarations of libraries are not checked: those of the browser take seconds.
        said(tool("openapi-typescript").arg(description).args(["-o", "tenure.ts"]));
        let strictly =
            ["--strict", "--noUncheckedIndexedAccess", "--exactOptionalPropertyTypes", "--skipLibCheck"];
        let as_now = ["--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom"];
        said(tool("tsc").args(strictly).args(as_now).arg("generated.ts"));
        let told = said(
            Command::new("node")
                .current_dir(folder.path())
                .arg("generated.js")
                .arg(format!("http://{address}")),
        );
        assert!(told.contains("all of it"), "{document}: {told}");
    }
}

/// A table of what such clients do was measured before this server was: what it came to is what it answers.
#[test]
fn clients_of_long_running_operations_wait_until_the_end_and_get_what_was_made() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let mut python = Command::new(IN_PYTHON.join("python"));
    let told = said(python.arg(script("pollers.py")).arg(format!("http://{address}")));
    assert!(told.contains("all of it"), "{told}");
}

#[test]
fn the_poller_in_javascript_gets_what_was_made_or_the_result() {
    let Some(place) = &*IN_NODE else { return };
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    std::os::unix::fs::symlink(place.join("node_modules"), folder.path().join("node_modules")).unwrap();
    fs::copy(script("pollers.mjs"), folder.path().join("pollers.mjs")).unwrap();
    let mut node = Command::new("node");
    let told = said(node.current_dir(folder.path()).arg("pollers.mjs").arg(format!("http://{address}")));
    assert!(told.contains("all of it"), "{told}");
}

#[test]
fn the_page_shows_what_was_tried() {
    let page = include_str!("../../../docs/guide/clients.md");
    let tried = [include_str!("clients/generated.py"), include_str!("clients/generated.ts")];
    let mut shown = 0;
    for (language, source) in ["python", "ts"].into_iter().zip(tried) {
        for block in page.split(&format!("```{language}\n")).skip(1) {
            for line in block.split("```").next().unwrap().lines().filter(|line| !line.trim().is_empty()) {
                assert!(source.contains(line.trim()), "{language}: nobody has tried `{line}`");
                shown += 1;
            }
        }
    }
    assert!(shown >= 10, "the page shows code");
    for release in PYTHON.iter().chain(&NODE) {
        let tool = release.rsplit_once(['=', '@']).unwrap().0.trim_end_matches('=');
        assert!(page.contains(tool), "the page does not speak of {tool}");
    }
}
