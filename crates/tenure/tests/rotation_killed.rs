//! A real process rotates the encryption key of a file and is killed (-9) several times on its way.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tenure::{Draft, JobId, Keyring, Name, OpenOptions, Reseal, Tenure, Worker};
use tenure_store::RecordsAsk;

const FOLDER: &str = "TENURE_ROTATION_TEST_FOLDER";
const OLD: &str = "old:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const BOTH: &str =
    "new:/wECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\nold:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const JOBS: u64 = 3_000;
const KILLS: usize = 3;

async fn open(folder: &Path, keys: &str) -> Tenure {
    let url = format!("sqlite://{}", folder.join("jobs.db").display());
    OpenOptions::new().untended().keyring(Keyring::parse(keys).unwrap()).open(&url).await.unwrap()
}

fn worker(tenure: &Tenure) -> Worker<()> {
    Worker::new(tenure, ()).bulk_operations(1).no_timers().lease(Duration::from_secs(1))
}

/// Not a test: the process that is killed.
#[test]
fn the_process_that_rotates() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let tenure = open(&folder, BOTH).await;
        worker(&tenure).run(std::future::pending::<()>()).await.unwrap();
    });
}

fn start(folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "rotation_killed::the_process_that_rotates", "--test-threads=1"])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Returns the versions of the stored positions.
async fn positions(tenure: &Tenure) -> Vec<u64> {
    let ask = RecordsAsk::of(Name::new("shelf", "reseal").unwrap());
    tenure.store().records(ask).await.unwrap().records.iter().map(|record| record.version).collect()
}

async fn values_by_key(tenure: &Tenure) -> BTreeMap<String, u64> {
    let (mut all, mut after) = (BTreeMap::new(), None);
    loop {
        let page = tenure.count_by_encryption_key(after).await.unwrap();
        page.by_key.into_iter().for_each(|(key, values)| *all.entry(key).or_default() += values);
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
}

async fn has_ended(tenure: &Tenure, id: JobId) -> bool {
    tenure.jobs().get(id).await.unwrap().state.ended().is_some()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotation_whose_process_is_killed_continues_and_leaves_no_value_behind() {
    let folder = tempfile::tempdir().unwrap();
    let old = open(folder.path(), OLD).await;
    let jobs = (0..JOBS).map(|number| Draft::raw("pay", &serde_json::json!({ "card": number })));
    old.enqueue_all(jobs).await.unwrap();
    let tenure = open(folder.path(), BOTH).await;
    let id = tenure.rotate_encryption().unwrap().await.unwrap().id();
    let mut kills = 0;
    while kills < KILLS {
        let before = positions(&tenure).await;
        let mut child = start(folder.path());
        // The process has stored another position, and is on its way to the next one.
        while positions(&tenure).await == before {
            assert!(child.try_wait().unwrap().is_none(), "it runs until it is killed");
            tokio::task::yield_now().await;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
    }
    assert!(!has_ended(&tenure, id).await, "there must be something left to rotate");
    assert!(values_by_key(&tenure).await["old"] > 0);
    worker(&tenure).run(tenure.wait(id)).await.unwrap();
    let done = tenure.wait_for::<Reseal>(id).await.unwrap();
    assert_eq!((done.examined, done.skipped), (JOBS + 1, 0), "every page counts once");
    let values = values_by_key(&tenure).await;
    assert_eq!(values.keys().collect::<Vec<_>>(), ["new"], "{values:?}");
    old.close().await.unwrap();
    tenure.close().await.unwrap();
}
