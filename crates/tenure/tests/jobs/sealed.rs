//! Encryption at rest: the store holds no plaintext, and everything reads back as it was written.

use std::sync::Arc;
use std::time::Duration;

use tenure::{
    Cause, Chance, ChangeOutcome, Condition, Draft, Durability, Edit, Error, Failed, Filter, Happening,
    JobId, JobRecord, Keyring, ManualClock, MemoryStore, Name, Output, PageAsk, QueueName, Refusal,
    RetryPolicy, Run, SealedStore, SqliteOptions, SqliteStore, StateName, Store, SystemClock, Tenure,
    TimerDraft, TimerOutcome, TimerSet, Verdict, Worker, search, when,
};
use tenure_core::Reserved;
use tenure_store::{Held, RecordsAsk, Report};

use crate::common::try_reserve;

pub(super) const K1: &str = "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
pub(super) const K2: &str = "k2:/wECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
/// The name of the first key, with another key.
const FALSE_K1: &str = "k1:/wECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// A store on a clock that is moved by hand, and programs with different keys on it.
pub(super) struct Vaulted {
    pub(super) clock: ManualClock,
    pub(super) stored: Arc<dyn Store>,
}

impl Vaulted {
    pub(super) fn new() -> Self {
        let clock = ManualClock::new();
        let stored: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
        Self { clock, stored }
    }

    /// Real time, for workers that run; its own clock moves nothing.
    pub(super) fn in_real_time() -> Self {
        Self { clock: ManualClock::new(), stored: Arc::new(MemoryStore::new(Arc::new(SystemClock))) }
    }

    /// A program with these keys; none if there are no lines.
    pub(super) fn with(&self, lines: &[&str]) -> Tenure {
        let keys =
            if lines.is_empty() { Keyring::default() } else { Keyring::parse(&lines.join("\n")).unwrap() };
        let store = SealedStore::new(Arc::clone(&self.stored), keys);
        Tenure::on(Arc::new(store), Chance::from_system())
    }

    async fn as_stored(&self, id: JobId) -> JobRecord {
        self.stored.job(id).await.unwrap().unwrap()
    }
}

pub(super) fn card(number: &str) -> Draft {
    Draft::raw("pay", &serde_json::json!({ "card": number }))
}

fn text(job: &JobRecord) -> String {
    String::from_utf8(job.args.as_bytes().to_vec()).unwrap()
}

pub(super) fn held(reserved: &Reserved) -> Held {
    let job = reserved.job();
    Held { id: job.id, seq: job.seq, fence: job.fence }
}

async fn settle(tenure: &Tenure, reserved: Reserved, verdict: Verdict) {
    let settlement = reserved.settle(verdict, &RetryPolicy::default(), 0.5);
    tenure.store().settle(vec![settlement], None).await.unwrap();
}

fn error(message: &str) -> Verdict {
    let failure = tenure::Failure::new(Cause::Error, message);
    Verdict::Retry { failure, due: Some(tenure::Due::Now) }
}

const SECRET: &str = "4111-1111";

/// Logs, makes progress and tells its secret in its result or its error.
async fn pay(run: Run<()>) -> Result<serde_json::Value, Failed> {
    let job: serde_json::Value = serde_json::from_slice(run.job().args.as_bytes())?;
    run.log(&format!("charging {job}"));
    run.progress(0.5, &format!("half of {job}"))?;
    run.place(&format!("/cards/{SECRET}"))?;
    if job["fails"] == true { Err(Failed::for_good(format!("declined {job}"))) } else { Ok(job) }
}

#[tokio::test]
async fn a_file_holds_no_plaintext_and_everything_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("jobs.db").display());
    let open = || tenure::OpenOptions::new().keyring(Keyring::parse(K1).unwrap());
    let tenure = open().open(&url).await.unwrap();
    let args = |fails: bool| serde_json::json!({ "card": SECRET, "fails": fails });
    let good = tenure.enqueue_draft(Draft::raw("pay", &args(false))).await.unwrap().id();
    let bad = tenure.enqueue_draft(Draft::raw("pay", &args(true))).await.unwrap().id();
    let timer = TimerDraft::raw("daily", when::cron("0 3 * * *"), "pay", &args(false));
    tenure.timers().set(timer).await.unwrap();
    let worker = Worker::new(&tenure, ()).queue("default", 2).raw_job("pay", pay);
    let waits = tenure.clone();
    worker
        .run(async move {
            for id in [good, bad] {
                waits.wait(id).await.unwrap();
            }
        })
        .await
        .unwrap();
    let mut searched = 0;
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        searched += bytes.len();
        assert!(!bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes()));
    }
    assert!(searched > 50_000, "the log of the file is among them: {searched}");
    let done = tenure.jobs().get(good).await.unwrap();
    assert_eq!(text(&done), args(false).to_string());
    let output = done.output.unwrap();
    assert_eq!(output.value, args(false).to_string().into_bytes());
    assert_eq!(output.place.as_deref(), Some("/cards/4111-1111"));
    assert!(done.progress.unwrap().message.contains(SECRET));
    let lines = tenure.jobs().logs(good, (0, 0), 10).await.unwrap();
    assert!(lines[0].text.contains(SECRET), "{lines:?}");
    let failed = tenure.jobs().get(bad).await.unwrap();
    assert!(failed.failure.unwrap().message.contains(SECRET));
    let attempts = tenure.jobs().attempts(bad).await.unwrap();
    assert!(attempts[0].failure.as_ref().unwrap().message.contains(SECRET));
    let timer = tenure.timers().get("daily").await.unwrap();
    assert_eq!(timer.agreed.job.args.as_bytes(), args(false).to_string().as_bytes());
    tenure.close().await.unwrap();
}

#[tokio::test]
async fn a_job_whose_key_is_missing_is_listed_does_not_run_and_keeps_its_attempts() {
    let store = Vaulted::new();
    let id = store.with(&[K1]).enqueue_draft(card(SECRET)).await.unwrap().id();
    for lines in [&[K2][..], &[]] {
        let other = store.with(lines);
        let page = other.jobs().page(PageAsk::default()).await.unwrap();
        assert_eq!(text(&page.jobs[0]), "\"(encrypted: key k1 is not loaded)\"");
        store.clock.advance(Duration::from_secs(3_600));
        assert!(try_reserve(&other).await.is_empty());
        let job = other.jobs().get(id).await.unwrap();
        assert_eq!((job.state.name(other.now()), job.attempt), (StateName::Scheduled, 0));
        assert!(job.failure.unwrap().message.contains("key k1 is not loaded"));
    }
    let right = store.with(&[K2, K1]);
    assert!(try_reserve(&right).await.is_empty(), "it waits before it is tried again");
    store.clock.advance(Duration::from_secs(120));
    let mut claimed = try_reserve(&right).await;
    assert_eq!((text(claimed[0].job()), claimed[0].job().attempt), (r#"{"card":"4111-1111"}"#.to_owned(), 1));
    settle(&right, claimed.remove(0), Verdict::Succeeded(None)).await;
}

#[tokio::test]
async fn a_claim_gets_the_jobs_that_can_run_beside_one_that_cannot() {
    let store = Vaulted::new();
    store.with(&[K1]).enqueue_draft(card("1")).await.unwrap();
    let other = store.with(&[K2]);
    let mine = other.enqueue_draft(card("2")).await.unwrap().id();
    let claimed = try_reserve(&other).await;
    assert_eq!(claimed.iter().map(|claimed| claimed.job().id).collect::<Vec<_>>(), [mine]);
}

#[tokio::test]
async fn a_wrong_key_of_the_same_name_neither_runs_nor_fails_a_job() {
    let store = Vaulted::new();
    let id = store.with(&[K1]).enqueue_draft(card("1")).await.unwrap().id();
    let wrong = store.with(&[FALSE_K1]);
    assert!(try_reserve(&wrong).await.is_empty());
    let job = wrong.jobs().get(id).await.unwrap();
    assert_eq!(job.state.name(wrong.now()), StateName::Scheduled);
    assert!(text(&job).contains("another key named k1"), "{}", text(&job));
}

#[tokio::test]
async fn args_that_were_moved_from_another_job_or_cut_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.db");
    let url = format!("sqlite://{}", path.display());
    let open = || tenure::OpenOptions::new().untended().keyring(Keyring::parse(K1).unwrap()).open(&url);
    let tenure = open().await.unwrap();
    let cheap = tenure.enqueue_draft(card("1")).await.unwrap().id();
    let dear = tenure.enqueue_draft(card("2")).await.unwrap().id();
    let cut = tenure.enqueue_draft(card("3")).await.unwrap().id();
    tenure.close().await.unwrap();
    let file = tenure::rusqlite::Connection::open(&path).unwrap();
    let of = |id: JobId| id.as_bytes().to_vec();
    file.execute(
        "UPDATE job SET args = (SELECT args FROM job WHERE id = ?2) WHERE id = ?1",
        (of(cheap), of(dear)),
    )
    .unwrap();
    file.execute("UPDATE job SET args = substr(args, 1, length(args) - 40) WHERE id = ?1", [of(cut)])
        .unwrap();
    drop(file);
    let tenure = open().await.unwrap();
    let claimed = try_reserve(&tenure).await;
    assert_eq!(claimed.iter().map(|claimed| claimed.job().id).collect::<Vec<_>>(), [dear]);
    for (id, why) in [(cheap, "damaged or moved"), (cut, "damaged")] {
        let job = tenure.jobs().get(id).await.unwrap();
        assert!(text(&job).contains(why) && !text(&job).contains("card"), "{}", text(&job));
    }
    tenure.close().await.unwrap();
}

#[tokio::test]
async fn a_repeated_job_is_recognized_under_the_same_key_another_key_and_none() {
    let store = Vaulted::new();
    let id = store.with(&[]).new_id();
    store.with(&[]).enqueue_draft(card("1").id(id)).await.unwrap();
    for lines in [&[K1][..], &[K2, K1]] {
        let tenure = store.with(lines);
        let other = tenure.new_id();
        tenure.enqueue_all([card("1").id(id), card("2").id(other)]).await.unwrap();
        assert!(store.as_stored(other).await.args.as_bytes().starts_with(b"{\"$sealed\":\""));
        let again = store.with(&[K2, K1]).enqueue_all([card("2").id(other), card("1").id(id)]).await.unwrap();
        assert_eq!(again, [tenure::Accepted::Repeated(other), tenure::Accepted::Repeated(id)]);
        let refused = tenure.enqueue_draft(card("9").id(other)).await.unwrap_err();
        assert!(matches!(refused, Error::Refused { refusal: Refusal::IdTaken(_), .. }), "{refused}");
    }
}

#[tokio::test]
async fn errors_progress_and_logs_are_encrypted_in_the_store_and_in_events() {
    let store = Vaulted::new();
    let tenure = store.with(&[K1]);
    let mut events = tenure.events();
    let id = tenure.enqueue_draft(card("1")).await.unwrap().id();
    let claimed = try_reserve(&tenure).await.remove(0);
    let progress = tenure::Progress::new(0.5, &format!("charging {SECRET}")).unwrap();
    let lines = vec![tenure::LogLine::new(1, 1, tenure.now(), SECRET)];
    let report = Report { held: held(&claimed), progress: Some(progress), lines };
    tenure.store().report(vec![report]).await.unwrap();
    settle(&tenure, claimed, error(&format!("declined {SECRET}"))).await;
    let stored = store.as_stored(id).await;
    assert!(!format!("{stored:?}").contains(SECRET), "{stored:?}");
    assert!(!format!("{:?}", store.stored.logs(id, (0, 0), 9).await.unwrap()).contains(SECRET));
    assert!(!format!("{:?}", store.stored.attempts(id).await.unwrap()).contains(SECRET));
    assert_eq!(tenure.jobs().logs(id, (0, 0), 9).await.unwrap()[0].text, SECRET);
    let mut told = Vec::new();
    while told.len() < 2 {
        match events.recv().await.unwrap().what.clone() {
            Happening::Progressed { message, .. } => told.push(message),
            Happening::Became { failure, .. } => told.extend(failure),
            Happening::Enqueued | Happening::Started { .. } | Happening::AskedToStop | Happening::Deleted => {
            }
        }
    }
    assert_eq!(told, ["charging 4111-1111", "declined 4111-1111"]);
}

#[tokio::test]
async fn values_that_were_stored_before_stay_readable_and_look_alikes_stay_as_they_are() {
    let store = Vaulted::new();
    let plain = store.with(&[]);
    let looks = serde_json::json!({ "$sealed": "VE5" });
    let (old, odd) = (
        plain.enqueue_draft(card("1")).await.unwrap().id(),
        plain.enqueue_draft(Draft::raw("pay", &looks)).await.unwrap().id(),
    );
    let tenure = store.with(&[K1]);
    assert_eq!(text(&tenure.jobs().get(old).await.unwrap()), r#"{"card":"1"}"#);
    assert_eq!(text(&tenure.jobs().get(odd).await.unwrap()), looks.to_string());
    assert_eq!(try_reserve(&tenure).await.len(), 2);
    let sealed = store.with(&[K1]).enqueue_draft(card("2")).await.unwrap().id();
    let envelope: serde_json::Value = serde_json::from_str(&text(&store.as_stored(sealed).await)).unwrap();
    for tenure in [&plain, &tenure] {
        // It would wait for a key forever, and workers would claim it in vain.
        let refused = tenure.enqueue_draft(Draft::raw("pay", &envelope)).await.unwrap_err();
        assert!(refused.to_string().contains("the form of encrypted args"), "{refused}");
    }
}

#[tokio::test]
async fn a_search_of_encrypted_values_is_refused_with_the_fields_to_use() {
    let store = Vaulted::new();
    let tenure = store.with(&[K1]);
    for words in ["args.card:1", "error:declined", "-args.card:1", "(kind:a or args.card:1)"] {
        let Ok(filter) = search(words, tenure.now()) else { continue };
        let told = tenure.jobs().page(PageAsk { filter: filter.clone(), ..PageAsk::default() }).await;
        let told = told.unwrap_err().to_string();
        assert!(told.contains("encrypted; use kind, queue, tags or time instead"), "{words}: {told}");
        assert!(tenure.jobs().meant(&filter).await.is_err());
        assert!(tenure.bulk(tenure::BulkAct::Retry, filter.clone()).await.is_err());
        assert!(tenure.jobs().delete_all(filter).await.is_err());
    }
    let arg = Condition::Arg { path: vec!["card".into()], value: "1".into() };
    let filter = Filter { conditions: vec![arg], ..Filter::default() };
    assert!(store.with(&[]).jobs().page(PageAsk { filter, ..PageAsk::default() }).await.is_ok());
    let by_kind = search("kind:pay", tenure.now()).unwrap();
    assert!(tenure.jobs().page(PageAsk { filter: by_kind, ..PageAsk::default() }).await.is_ok());
}

#[tokio::test]
async fn an_edit_of_a_job_as_it_was_seen_finds_it_unchanged() {
    let store = Vaulted::new();
    let id = store.with(&[K1]).enqueue_draft(card("1")).await.unwrap().id();
    let tenure = store.with(&[K2, K1]);
    let seen = Some(Box::new(tenure.jobs().get(id).await.unwrap()));
    let edit = Edit { seen: seen.clone(), attempts: Some(3), ..Edit::default() };
    assert_eq!(tenure.jobs().edit(id, edit).await.unwrap(), ChangeOutcome::Done);
    let late = Edit { seen, queue: Some(QueueName::new("other").unwrap()), ..Edit::default() };
    assert_eq!(tenure.jobs().edit(id, late).await.unwrap(), ChangeOutcome::RefusedChanged);
}

#[tokio::test]
async fn a_schedule_that_is_set_again_under_another_key_has_not_changed_and_its_jobs_run() {
    let store = Vaulted::new();
    let timer = |card: &str| {
        TimerDraft::raw(
            "hourly",
            when::every(Duration::from_secs(3_600)),
            "pay",
            &serde_json::json!({ "card": card }),
        )
    };
    assert_eq!(store.with(&[K1]).timers().set(timer(SECRET)).await.unwrap(), TimerSet::New);
    let tenure = store.with(&[K2, K1]);
    assert_eq!(tenure.timers().set(timer(SECRET)).await.unwrap(), TimerSet::Same);
    store.clock.advance(Duration::from_secs(3_700));
    tenure.store().fire(10).await.unwrap();
    let claimed = try_reserve(&tenure).await.remove(0);
    assert!(text(claimed.job()).contains(SECRET));
    settle(&tenure, claimed, Verdict::Succeeded(Some(Output::new(b"7".to_vec(), None).unwrap()))).await;
    let asked =
        tenure.timers().trigger("hourly").raw_args(&serde_json::json!({ "card": "x" })).await.unwrap();
    let TimerOutcome::Triggered(id) = asked else { panic!("{asked:?}") };
    assert!(!text(&store.as_stored(id).await).contains("card"));
    assert_eq!(text(&tenure.jobs().get(id).await.unwrap()), r#"{"card":"x"}"#);
}

/// Runs bulk operations until `stop` is done.
pub(super) async fn operate<T>(tenure: &Tenure, stop: impl Future<Output = T>) {
    let worker = Worker::new(tenure, ()).bulk_operations(1).no_timers().finish_within(Duration::ZERO);
    worker.run(stop).await.unwrap();
}

#[tokio::test]
async fn a_rotation_moves_every_value_to_the_current_key_and_no_other_key_is_needed() {
    let store = Vaulted::in_real_time();
    let plain = store.with(&[]).enqueue_draft(card("plain")).await.unwrap().id();
    let first = store.with(&[K1]);
    let id = first.enqueue_draft(card("1")).await.unwrap().id();
    let timer = TimerDraft::raw("daily", when::cron("0 3 * * *"), "pay", &serde_json::json!({ "card": "t" }));
    first.timers().set(timer).await.unwrap();
    for verdict in [error("declined"), Verdict::Succeeded(Some(Output::new(b"7".to_vec(), None).unwrap()))] {
        for claimed in try_reserve(&first).await {
            let progress = tenure::Progress::new(0.5, "half").unwrap();
            let lines = vec![tenure::LogLine::new(claimed.job().delivery, 1, first.now(), "line")];
            let report = Report { held: held(&claimed), progress: Some(progress), lines };
            first.store().report(vec![report]).await.unwrap();
            settle(&first, claimed, verdict.clone()).await;
        }
    }
    let both = store.with(&[K2, K1]);
    let before = both.count_by_encryption_key(None).await.unwrap();
    assert!(before.plain == 1 && before.by_key["k1"] > 10, "{before:?}");
    let rotation = both.rotate_encryption().unwrap().await.unwrap().id();
    operate(&both, both.wait(rotation)).await;
    let done = both.wait_for::<tenure::Reseal>(rotation).await.unwrap();
    assert_eq!((done.examined, done.skipped), (4, 0), "three jobs and a schedule");
    let only = store.with(&[K2]);
    let after = only.count_by_encryption_key(None).await.unwrap();
    assert_eq!(
        (after.plain, after.by_key.keys().map(String::as_str).collect::<Vec<_>>()),
        (0, vec!["k2"]),
        "{after:?}"
    );
    assert_eq!(text(&only.jobs().get(plain).await.unwrap()), r#"{"card":"plain"}"#);
    let job = only.jobs().get(id).await.unwrap();
    assert_eq!((text(&job).as_str(), job.output.unwrap().value), (r#"{"card":"1"}"#, b"7".to_vec()));
    assert_eq!(only.jobs().logs(id, (0, 0), 9).await.unwrap()[1].text, "line");
    let attempts = only.jobs().attempts(id).await.unwrap();
    assert_eq!(attempts[0].failure.as_ref().unwrap().message, "declined");
    let timer = only.timers().get("daily").await.unwrap();
    assert_eq!(timer.agreed.job.args.as_bytes(), br#"{"card":"t"}"#);
    let again = only.store().extras().encryption.unwrap().rotate_jobs(None).await.unwrap();
    assert_eq!(
        (again.encrypted, again.skipped, again.next),
        (0, 0, None),
        "repeating a page changes nothing"
    );
}

#[tokio::test]
async fn a_rotation_that_was_cut_off_continues_where_it_was() {
    const JOBS: u64 = 3_000;
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions { durability: Durability::Normal, ..SqliteOptions::default() };
    let file = SqliteStore::open(folder.path().join("jobs.db"), options, Arc::new(SystemClock)).unwrap();
    let store = Vaulted { clock: ManualClock::new(), stored: file };
    store.with(&[K1]).enqueue_all((0..JOBS).map(|number| card(&number.to_string()))).await.unwrap();
    let both = store.with(&[K2, K1]);
    let id = both.rotate_encryption().unwrap().await.unwrap().id();
    let begun = async {
        let ask = RecordsAsk::of(Name::new("shelf", "reseal").unwrap());
        while both.store().records(ask.clone()).await.unwrap().records.is_empty() {}
    };
    operate(&both, begun).await;
    assert_eq!(both.jobs().get(id).await.unwrap().state.ended(), None, "it was cut off");
    operate(&both, both.wait(id)).await;
    let done = both.wait_for::<tenure::Reseal>(id).await.unwrap();
    assert_eq!(done.examined, JOBS + 1, "no job was examined twice");
    assert_eq!(done.encrypted, JOBS);
}

#[tokio::test]
async fn a_rotation_needs_a_key_and_counts_the_values_that_it_cannot_decrypt() {
    let store = Vaulted::in_real_time();
    store.with(&[K1]).enqueue_draft(card("1")).await.unwrap();
    assert!(store.with(&[]).rotate_encryption().unwrap_err().to_string().contains("--encryption-keys"));
    let second = store.with(&[K2]);
    let id = second.rotate_encryption().unwrap().await.unwrap().id();
    operate(&second, second.wait(id)).await;
    let done = second.wait_for::<tenure::Reseal>(id).await.unwrap();
    assert_eq!((done.examined, done.encrypted, done.skipped), (2, 0, 1));
}

#[tokio::test]
async fn a_copy_has_the_same_envelopes_and_needs_the_same_keys() {
    let (store, copy) = (Vaulted::new(), Vaulted::new());
    let id = store.with(&[K1]).enqueue_draft(card(SECRET)).await.unwrap().id();
    store.with(&[]).copy_to(&copy.with(&[]), false, &mut |_, _| {}).await.unwrap();
    assert_eq!(copy.as_stored(id).await.args, store.as_stored(id).await.args);
    assert_eq!(text(&copy.with(&[K1]).jobs().get(id).await.unwrap()), r#"{"card":"4111-1111"}"#);
}

/// Before, a program that had lost its keys stored plain text in an encrypted store without a warning.
#[tokio::test]
async fn an_encrypted_store_is_not_opened_without_keys_unless_that_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.db");
    let url = format!("sqlite://{}", path.display());
    let open = || tenure::OpenOptions::new().untended();
    let keys = || Keyring::parse(K1).unwrap();
    open().open(&url).await.unwrap().close().await.unwrap();
    open().open(&url).await.expect("a plain store needs no keys").close().await.unwrap();
    let encrypted = open().keyring(keys()).open(&url).await.unwrap();
    let id = encrypted.enqueue_draft(card(SECRET)).await.unwrap().id();
    encrypted.close().await.unwrap();

    let refused = open().open(&url).await.unwrap_err();
    assert!(matches!(refused, Error::NoKeys), "{refused}");
    assert!(refused.to_string().contains("OpenOptions::keyring"), "{refused}");
    let other = open().keyring(Keyring::parse(K2).unwrap()).open(&url).await;
    other.expect("another key encrypts as well").close().await.unwrap();
    let looking = open().allow_plaintext().open(&url).await.unwrap();
    assert!(text(&looking.jobs().get(id).await.unwrap()).contains("key k1 is not loaded"));
    looking.close().await.unwrap();
    assert!(!std::fs::read(&path).unwrap().windows(SECRET.len()).any(|part| part == SECRET.as_bytes()));
}

/// A backup of a store is as encrypted as the store.
#[tokio::test]
async fn a_copy_of_an_encrypted_store_is_not_opened_without_keys_either() {
    let folder = tempfile::tempdir().unwrap();
    let url = |name: &str| format!("sqlite://{}", folder.path().join(name).display());
    let open = || tenure::OpenOptions::new().untended();
    let encrypted = open().keyring(Keyring::parse(K1).unwrap()).open(&url("a.db")).await.unwrap();
    encrypted.enqueue_draft(card(SECRET)).await.unwrap();
    encrypted.close().await.unwrap();
    let source = open().allow_plaintext().open(&url("a.db")).await.unwrap();
    let target = open().allow_plaintext().open(&url("b.db")).await.unwrap();
    let copied = source.copy_to(&target, true, &mut |_, _| {}).await.unwrap();
    assert!(matches!(copied, tenure::Copied::Whole(_)), "{copied:?}");
    source.close().await.unwrap();
    target.close().await.unwrap();
    assert!(matches!(open().open(&url("b.db")).await, Err(Error::NoKeys)));
}
