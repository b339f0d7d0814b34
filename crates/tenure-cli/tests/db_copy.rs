//! `tenure db copy`, as a person or a script asks it.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::program;

use std::path::Path;
use std::process::Output;

use own_postgres::Server;
use tempfile::TempDir;
use tenure::{OpenOptions, Tenure};

fn copy(args: &[&str], folder: &Path) -> Output {
    let args: Vec<&str> = ["db", "copy"].into_iter().chain(args.iter().copied()).collect();
    program::run(&args, folder)
}

fn said(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn complained(output: &Output, code: i32) -> String {
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(code), &b""[..]), "{told}");
    told
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Mail {
    to: u64,
}

impl tenure::Job for Mail {
    const KIND: &'static str = "mail";
    type Output = ();
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

async fn open(folder: &TempDir, file: &str) -> Tenure {
    let url = format!("sqlite://{}", folder.path().join(file).display());
    OpenOptions::new().untended().open(&url).await.unwrap()
}

/// A file with so many jobs.
fn filled(folder: &TempDir, file: &str, jobs: u64) {
    block_on(async {
        let tenure = open(folder, file).await;
        for to in 0..jobs {
            tenure.enqueue(Mail { to }).await.unwrap();
        }
        tenure.close().await.unwrap();
    });
}

fn jobs_in(folder: &TempDir, file: &str) -> u64 {
    block_on(async {
        let tenure = open(folder, file).await;
        let counts = tenure.store().counts().await.unwrap();
        tenure.close().await.unwrap();
        counts.iter().map(|count| count.jobs).sum()
    })
}

#[test]
fn a_file_is_copied_to_a_database_and_back() {
    let (folder, server) = (TempDir::new().unwrap(), Server::start_hasty().unwrap());
    filled(&folder, "jobs.db", 12);
    let url = server.url();
    let told = said(&copy(&["--from", "jobs.db", "--to", &url], folder.path()));
    assert!(told.contains("copied 12 jobs") && told.contains("jobs.db"), "{told}");
    let again = complained(&copy(&["--from", "jobs.db", "--to", &url], folder.path()), 6);
    assert!(again.contains("--to") && again.contains("the target is not empty"), "{again}");
    let back = said(&copy(&["--from", &url, "--to", "back.db", "-o", "json"], folder.path()));
    let back: serde_json::Value = serde_json::from_str(&back).unwrap();
    assert_eq!((&back["jobs"], &back["leases"]), (&12.into(), &0.into()));
    assert_eq!(jobs_in(&folder, "back.db"), 12);
    let schema = ["--from", "jobs.db", "--to", &url, "--to-schema", "second"];
    assert!(said(&copy(&schema, folder.path())).contains("schema second"));
}

#[test]
fn what_cannot_be_copied_is_refused_by_place() {
    let folder = TempDir::new().unwrap();
    filled(&folder, "jobs.db", 1);
    let told = complained(&copy(&["--from", "no.db", "--to", "new.db"], folder.path()), 5);
    assert!(told.contains("--from: file no.db not found"), "{told}");
    assert!(!folder.path().join("no.db").exists() && !folder.path().join("new.db").exists());
    complained(&copy(&["--from", "jobs.db", "--to", "jobs.db"], folder.path()), 2);
    complained(&copy(&["--from", "jobs.db", "--to", "memory:"], folder.path()), 2);
    std::fs::write(folder.path().join("text.db"), "not a database, but long enough to be one").unwrap();
    let told = complained(&copy(&["--from", "jobs.db", "--to", "text.db"], folder.path()), 3);
    assert!(told.contains("--to") && told.contains("text.db"), "{told}");
    let url = "postgres://me:hunter2@127.0.0.1:1/jobs";
    let told = complained(&copy(&["--from", url, "--to", "new.db"], folder.path()), 3);
    assert!(told.contains("--from") && !told.contains("hunter2"), "{told}");
}

#[test]
fn a_file_that_a_host_uses_is_copied_only_if_one_insists() {
    let folder = TempDir::new().unwrap();
    filled(&folder, "jobs.db", 3);
    block_on(async {
        let tenure = open(&folder, "jobs.db").await;
        let (host, day) = (tenure::HostId::from_bytes([7; 16]), std::time::Duration::from_secs(86_400));
        tenure.store().announce(host, "web-7 (pid 4711)", 1, &[], day).await.unwrap();
        tenure.close().await.unwrap();
    });
    let told = complained(&copy(&["--from", "jobs.db", "--to", "new.db"], folder.path()), 6);
    assert!(told.contains("web-7 (pid 4711) counts as alive until 2"), "{told}");
    assert!(told.contains("--even-in-use"), "{told}");
    assert!(!folder.path().join("new.db").exists(), "what was made for the copy is gone");
    let insists = ["--from", "jobs.db", "--to", "new.db", "--even-in-use"];
    assert!(said(&copy(&insists, folder.path())).contains("copied 3 jobs"));
}

#[test]
fn a_backup_is_copied_at_once_whatever_the_source_runs() {
    let folder = TempDir::new().unwrap();
    filled(&folder, "jobs.db", 3);
    let backup = folder.path().join("backup.db");
    block_on(async {
        let tenure = open(&folder, "jobs.db").await;
        let (host, day) = (tenure::HostId::from_bytes([7; 16]), std::time::Duration::from_secs(86_400));
        tenure.store().announce(host, "web-7 (pid 4711)", 1, &[], day).await.unwrap();
        let queue = tenure::QueueName::default();
        let wants = vec![tenure::Want { queue, kinds: tenure::Kinds::All, at_most: 1 }];
        let ask = tenure::Reserve { holder: host, ttl: day, wants, at_most: 1 };
        assert_eq!(tenure.store().reserve(ask).await.unwrap().jobs.len(), 1);
        tenure.close().await.unwrap();
    });
    let output = program::run(&["db", "backup", "--db", "jobs.db", backup.to_str().unwrap()], folder.path());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(
        said(&copy(&["--from", "backup.db", "--to", "copy.db"], folder.path())).contains("copied 3 jobs")
    );
    let restored = block_on(async {
        let tenure = open(&folder, "copy.db").await;
        let hosts = tenure.hosts().await.unwrap();
        tenure.close().await.unwrap();
        hosts
    });
    assert_eq!(restored, []);
}
