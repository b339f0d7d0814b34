//! Commands on an encrypted store, whose keys are wrong, missing or in a place that they do not read.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::program;
use crate::served;

use std::path::Path;

use program::{Program, command, run};
use served::{SOON, Said, said};
use tempfile::tempdir;

const KEYS: &str = "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n";
const CARD: &str = "4111-1111";

fn own(args: &[&str], folder: &Path) -> Said {
    said(&run(args, folder))
}

/// Enqueues a job with a secret in its args.
fn pay(folder: &Path, more: &[&str]) -> Said {
    let args = format!("{{\"card\":\"{CARD}\"}}");
    own(&[&["job", "submit", "pay", &args, "--db", "jobs.db", "--write"], more].concat(), folder)
}

/// Returns true if the files of the store contain the secret.
fn is_leaked(folder: &Path) -> bool {
    let files = ["jobs.db", "jobs.db-wal"].map(|name| std::fs::read(folder.join(name)).unwrap_or_default());
    files.iter().any(|bytes| bytes.windows(CARD.len()).any(|part| part == CARD.as_bytes()))
}

/// A folder with keys, and a store in which nothing is encrypted yet.
fn made(folder: &Path) {
    std::fs::write(folder.join("keys"), KEYS).unwrap();
    assert_eq!(own(&["db", "migrate", "--db", "jobs.db"], folder).code, 0);
}

fn encrypt(folder: &Path) {
    let first = pay(folder, &["--encryption-keys", "file:keys"]);
    assert!(first.code == 0 && !is_leaked(folder), "{}", first.err);
}

#[test]
fn keys_of_the_file_in_the_working_folder_encrypt() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    made(folder);
    std::fs::write(folder.join("tenure.toml"), "[database]\nencryption_keys = \"file:keys\"\n").unwrap();
    let paid = pay(folder, &[]);
    assert!(paid.code == 0 && !is_leaked(folder), "{}", paid.err);
}

#[test]
fn a_mistake_in_a_settings_file_stores_no_plain_text() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    made(folder);
    let user = folder.join("tenure");
    std::fs::create_dir(&user).unwrap();
    std::fs::write(user.join("config.toml"), "[database]\nencryption_keys = \"file:keys\"\n[log\n").unwrap();
    let refused = pay(folder, &[]);
    assert!(refused.code == 7 && refused.err.contains("config.toml:"), "{} {}", refused.code, refused.err);
    assert!(!is_leaked(folder));
}

#[test]
fn an_encrypted_store_is_changed_with_keys_or_on_explicit_demand() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    made(folder);
    encrypt(folder);
    let is_refused = |told: &Said| {
        told.code == 6
            && ["database.encryption_keys", "--without-encryption"].iter().all(|name| told.err.contains(name))
    };
    let refused = pay(folder, &[]);
    assert!(is_refused(&refused) && !is_leaked(folder), "{} {}", refused.code, refused.err);
    let worker = own(&["worker", "--queue", "default", "--db", "jobs.db", "--exec", "true"], folder);
    assert!(is_refused(&worker), "{} {}", worker.code, worker.err);
    let serve = own(&["serve", "--db", "jobs.db", "--bind", "127.0.0.1:0"], folder);
    assert!(is_refused(&serve), "{} {}", serve.code, serve.err);
    let looks = own(&["job", "list", "--db", "jobs.db"], folder);
    assert_eq!(looks.code, 0, "{}", looks.err);
    for reads in [&["db", "check"][..], &["encryption", "status"], &["db", "status"]] {
        let read = own(&[reads, &["--db", "jobs.db"]].concat(), folder);
        assert_eq!(read.code, 0, "{reads:?}: {}", read.err);
    }
    let copied = own(&["db", "copy", "--from", "jobs.db", "--to", "copy.db"], folder);
    assert_eq!(copied.code, 0, "{}", copied.err);
    let both = pay(folder, &["--without-encryption", "--encryption-keys", "file:keys"]);
    assert_eq!(both.code, 2, "{}", both.err);
    let plain = pay(folder, &["--without-encryption"]);
    assert!(plain.code == 0 && is_leaked(folder), "{}", plain.err);
}

#[test]
fn a_server_without_keys_starts_on_explicit_demand() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    made(folder);
    encrypt(folder);
    let args = ["serve", "--db", "jobs.db", "--bind", "127.0.0.1:0", "--without-encryption"];
    let mut server = Program::start(&args, folder);
    server.line_with("http://", SOON);
    server.interrupt();
    assert_eq!(server.end(SOON), Some(0));
}

/// A worker sends args and job tokens to the service.
#[test]
fn jobs_go_to_another_machine_over_plain_http_only_on_explicit_demand() {
    let folder = tempdir().unwrap();
    let args = ["worker", "--queue", "q", "--url", "http://127.0.0.1:9", "--http", "http://192.0.2.1/jobs"];
    let refused = own(&args, folder.path());
    assert!(refused.code == 2 && refused.err.contains("--insecure-http"), "{} {}", refused.code, refused.err);
    let allowed = own(&[&args[..], &["--insecure-http", "--token-file", "missing"]].concat(), folder.path());
    assert!(allowed.err.contains("cannot read missing"), "{}", allowed.err);
}

/// The programs of a worker run as its user, and every user can read command lines.
#[test]
fn a_password_on_the_command_line_is_warned_of() {
    let folder = tempdir().unwrap();
    let warns = |args: &[&str]| {
        let mut command = command(args, folder.path());
        let told = said(&command.env("URL", "postgres://a:secret@127.0.0.1:9/jobs").output().unwrap());
        assert!(told.code != 0 && !told.err.contains("secret"), "{}", told.err);
        told.err.contains("--db env:NAME")
    };
    let url = "postgres://a:secret@127.0.0.1:9/jobs";
    assert!(warns(&["worker", "--queue", "q", "--db", url, "--exec", "true"]));
    assert!(warns(&["serve", "--bind", "127.0.0.1:0", "--db", url]));
    assert!(!warns(&["worker", "--queue", "q", "--db", "env:URL", "--exec", "true"]));
}
