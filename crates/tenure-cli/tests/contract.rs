//! The description of the interface is true: a program that only knows it asks for everything, in every way that it allows
//! and in many that it does not.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::installed::{in_python, said};
use crate::program;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use program::{Program, run};
use tempfile::tempdir;

const SOON: Duration = Duration::from_secs(60);
/// What asks: a release of schemathesis, which Python's package index has.
const RELEASE: &str = "schemathesis==4.32.5";

const ALL_PHASES: &str = "examples,coverage,fuzzing,stateful";

/// Installs schemathesis, and returns the path of its program.
fn schemathesis() -> PathBuf {
    in_python("schemathesis", &[RELEASE]).join("schemathesis")
}

/// What a program says on standard output, if it ends well.
fn said_apart(ended: std::process::Output) -> String {
    assert!(ended.status.success(), "{ended:?}");
    String::from_utf8_lossy(&ended.stdout).trim().to_owned()
}

fn asked(document: &str, phases: &str, examples: &str) {
    let folder = tempdir().unwrap();
    let make = ["token", "create", "--db", "jobs.db", "--name", "contract", "--scope", "admin"];
    let token = said_apart(run(&make, folder.path()));
    // It guesses a token at every route, all within a minute.
    let guesses = ["--unknown-tokens-per-minute", "100000"];
    let serve =
        [&["serve", "--db", "jobs.db", "--bind", "127.0.0.1:0", "--auth", "tokens"], &guesses[..]].concat();
    let mut server = Program::start(&serve, folder.path());
    let line = server.line_with("http://", SOON);
    let address = line.split("http://").nth(1).unwrap().split(',').next().unwrap().to_owned();
    let settings = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/contract.toml");
    let told = said(
        Command::new(schemathesis())
            .current_dir(folder.path())
            .arg("--config-file")
            .arg(settings)
            .args(["run", &format!("http://{address}/{document}"), "--checks", "all", "--seed", "8368"])
            .args(["--header", &format!("Authorization: Bearer {token}")])
            .args(["--phases", phases, "--max-examples", examples, "--request-timeout", "60"]),
    );
    assert!(told.contains(" passed"), "nothing was asked: {told}");
    server.interrupt();
    assert_eq!(server.end(SOON), Some(0));
}

#[test]
fn every_route_answers_as_its_description_says_whatever_it_is_asked() {
    asked("openapi.json", "examples,fuzzing", "2");
}

#[test]
#[ignore = "many more requests: `cargo xtask test --long`"]
fn every_route_answers_as_its_description_says_whatever_else_it_is_asked() {
    // Each limit and each kind of value, sequences of requests, and more requests at random.
    asked("openapi.json", ALL_PHASES, "15");
    // OpenAPI 3.0 describes the same server for client generators.
    asked("openapi-3.0.json", ALL_PHASES, "1");
}
