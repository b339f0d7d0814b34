//! A row that cannot be read hides no other: for every column of every table that tells of jobs.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::types::Value;
use tenure_core::{
    AfterJobs, Cause, Due, Failure, Head, IfFailed, Key, LimitKey, LogLine, Name, NewJob, OnConflict,
    OrderingKey, Output, RetryPolicy, StateName, Terms, Unique, UniqueKey, Verdict, Window,
};
use tenure_sqlite::{Options, SqliteStore, check, repair};
use tenure_store::{
    Change, ChangeOutcome, Clock, Copied, CopyRefusal, Filter, Finding, Held, Jobs, ListedBy, ManualClock,
    MemoryStore, Order, PageAsk, Report, Selection, Settled, Store, Views,
};

use crate::given::agree::assert_agrees;
use crate::given::{ask, file, host, new_job, runtime, settle};

/// Tables that tell of jobs.
const TABLES: [&str; 20] = [
    "job",
    "standing",
    "attempt",
    "log",
    "tag",
    "unique_key",
    "ready",
    "later",
    "chain",
    "chained",
    "stepped_aside",
    "limit_key",
    "limit_line",
    "dependency",
    "awaited_end",
    "share",
    "present_round",
    "fair_place",
    "lane",
    "queue",
];

/// Tables whose rows are a job's own.
const OWN: [&str; 4] = ["job", "standing", "attempt", "log"];

/// Tables whose rows several jobs share, or that tell of them. A repair takes their rows out, too.
const SHARED: [&str; 4] = ["lane", "queue", "limit_key", "unique_key"];

/// Subjects of the findings that a repair deals with.
const REPAIRED: [&str; 4] = ["unreadable", "unique key", "limits", "queues"];

const UNFINISHED: [StateName; 4] =
    [StateName::Scheduled, StateName::Queued, StateName::Blocked, StateName::Running];

/// Wrong JSON, wrong types, numbers out of range, and text that is none.
fn bad_values() -> [Value; 7] {
    [
        Value::Integer(i64::MAX),
        Value::Integer(-7),
        Value::Integer(77),
        Value::Text("{torn".to_owned()),
        Value::Text("[\"a list\"]".to_owned()),
        Value::Blob(vec![0xff]),
        Value::Null,
    ]
}

fn key(text: &str) -> Key {
    Key::new("key", text).unwrap()
}

fn on(number: u64, terms: Terms) -> NewJob {
    NewJob { terms: Arc::new(terms), ..new_job(number) }
}

/// A file with jobs in every state and with every key, and its clock.
async fn fill(path: &Path, clock: &ManualClock) -> usize {
    let store = SqliteStore::open(path, Options::default(), Arc::new(clock.clone())).unwrap();
    let retry = Some(RetryPolicy { max_attempts: 2, ..RetryPolicy::default() });
    let tags = vec![Name::new("tag", "red").unwrap()];
    let share = Some(key("tenant"));
    let ends = Terms { retry: retry.clone(), tags: tags.clone(), ..Terms::default() };
    store.enqueue((1..=4).map(|number| on(number, ends.clone())).collect()).await.unwrap();
    let mut granted = store.reserve(ask(host(1), 4)).await.unwrap().jobs.into_iter();
    let mut next = || granted.next().unwrap();
    let (succeeds, fails, retries, runs) = (next(), next(), next(), next());
    for reserved in [&succeeds, &fails, &retries, &runs] {
        let held = Held { id: reserved.job().id, seq: reserved.job().seq, fence: reserved.job().fence };
        let line = LogLine { delivery: 1, number: LogLine::NEXT, at: clock.now(), text: "said".to_owned() };
        store.report(vec![Report { held, progress: None, lines: vec![line] }]).await.unwrap();
    }
    let output = Output { value: b"{}".to_vec(), place: None };
    let failure = || Failure::new(Cause::Error, "no");
    store
        .settle(
            vec![
                settle(succeeds, Verdict::Succeeded(Some(output))),
                settle(fails, Verdict::Failed(failure())),
                settle(retries, Verdict::Retry { failure: failure(), due: None }),
            ],
            None,
        )
        .await
        .unwrap();
    let ordering = |order: &str, head| Some(OrderingKey { key: key(order), head });
    let limit = Some(LimitKey { key: key("smtp"), most: Some(1) });
    let after = Some(AfterJobs { jobs: vec![new_job(4).id], if_failed: IfFailed::Cancel });
    let unique = Some(Unique {
        key: UniqueKey([7; 16]),
        window: Window::WhileUnfinished,
        on_conflict: OnConflict::Reject,
    });
    let later = Due::In(Duration::from_secs(3_600));
    let some = [
        on(5, Terms { unique, tags, ..Terms::default() }),
        NewJob { due: later, ..new_job(6) },
        on(7, Terms { ordering: ordering("cart", Head::Block), ..Terms::default() }),
        on(8, Terms { ordering: ordering("cart", Head::Block), ..Terms::default() }),
        on(9, Terms { ordering: ordering("box", Head::StepAside), ..Terms::default() }),
        NewJob {
            due: later,
            ..on(10, Terms { ordering: ordering("box", Head::StepAside), ..Terms::default() })
        },
        on(11, Terms { limit: limit.clone(), ..Terms::default() }),
        on(12, Terms { limit: limit.clone(), ..Terms::default() }),
        NewJob { due: later, ..on(13, Terms { limit, ..Terms::default() }) },
        on(14, Terms { after, ..Terms::default() }),
        on(15, Terms { share: share.clone(), ..Terms::default() }),
        on(16, Terms { share, ..Terms::default() }),
    ];
    let jobs = 4 + some.len();
    store.enqueue(some.to_vec()).await.unwrap();
    store.close().await.unwrap();
    jobs
}

/// The numbers of the jobs that are listed, and of those that are marked as unreadable.
async fn listed(store: &SqliteStore, order: Order, by: ListedBy) -> Result<[BTreeSet<u64>; 2], String> {
    let (mut jobs, mut odd, mut after) = (BTreeSet::new(), BTreeSet::new(), None);
    // As small a page as may be: cursors have to go past what cannot be read.
    for _ in 0..100 {
        let ask = PageAsk { order, by, after, at_most: 2, ..PageAsk::default() };
        let page = store.jobs(ask).await.map_err(|fault| fault.to_string())?;
        jobs.extend(page.jobs.iter().map(|job| job.seq));
        odd.extend(page.unreadable.iter().map(|job| job.seq));
        after = page.next;
        if after.is_none() {
            return Ok([jobs, odd]);
        }
    }
    Err("a listing without an end".to_owned())
}

/// Columns of a table, those of its key first.
fn columns(conn: &Connection, table: &str) -> (Vec<String>, Vec<String>) {
    let mut info = conn.prepare(&format!("PRAGMA table_info({table})")).unwrap();
    let columns: Vec<(String, i64)> =
        info.query_map([], |row| Ok((row.get(1)?, row.get(5)?))).unwrap().map(Result::unwrap).collect();
    let keys = columns.iter().filter(|(_, key)| *key > 0).map(|(name, _)| name.clone()).collect();
    (keys, columns.into_iter().map(|(name, _)| name).collect())
}

/// Puts a bad value into the first row that has one there; `false` if the file refuses it.
fn spoil(conn: &Connection, table: &str, column: &str, bad: &Value, as_text: bool) -> bool {
    let (keys, _) = columns(conn, table);
    let keys = keys.join(", ");
    let value = if as_text { "CAST(?1 AS TEXT)" } else { "?1" };
    let sql = format!(
        "UPDATE {table} SET {column} = {value} WHERE ({keys}) = (SELECT {keys} FROM {table}
             ORDER BY {column} IS NULL, {keys} LIMIT 1)"
    );
    conn.execute(&sql, [bad]).is_ok_and(|changed| changed == 1)
}

/// Returns the problems of a store with this damage.
async fn problems(path: &Path, clock: &ManualClock, table: &str, jobs: usize) -> Vec<String> {
    let mut wrong = Vec::new();
    let store = match SqliteStore::open(path, Options::default(), Arc::new(clock.clone())) {
        Ok(store) => store,
        Err(fault) => return vec![format!("cannot be opened: {fault}")],
    };
    let mut odd = 0;
    for order in [Order::NewestFirst, Order::OldestFirst] {
        match listed(&store, order, ListedBy::Acceptance).await {
            Err(fault) => wrong.push(format!("list: {fault}")),
            Ok([read, unreadable]) => {
                odd = unreadable.len();
                let most = if OWN.contains(&table) { 1 } else { jobs };
                if read.len() + odd != jobs || odd > most {
                    wrong.push(format!("list: {} jobs and {odd} unreadable ones", read.len()));
                }
            }
        }
        if let Err(fault) = listed(&store, order, ListedBy::End).await {
            wrong.push(format!("list by end: {fault}"));
        }
    }
    let delete = store.change(Change::Delete, Selection::Ids((1..=16).map(|n| new_job(n).id).collect()));
    if OWN.contains(&table) {
        match delete.await {
            Err(fault) => wrong.push(format!("delete: {fault}")),
            Ok(changed) => {
                let refused =
                    |(_, outcome): &&(_, ChangeOutcome)| *outcome == ChangeOutcome::RefusedUnreadable;
                let refused = changed.outcomes.iter().filter(refused).count();
                if refused > odd {
                    wrong.push(format!("delete: {refused} unreadable"));
                }
            }
        }
    }
    store.close().await.unwrap();
    wrong
}

/// Returns the problems of a damaged file once it is repaired.
async fn repaired(path: &Path, clock: &ManualClock) -> Vec<String> {
    let options = Options::default();
    let unreadable = |path: &Path| {
        let found = check(path, &options).map_err(|fault| fault.to_string())?;
        let is_repaired = |finding: &&Finding| REPAIRED.contains(&finding.about.as_str());
        Ok::<_, String>(found.iter().filter(is_repaired).count())
    };
    let before = unreadable(path);
    let planned = repair(path, &options, clock, true).unwrap().moved.len();
    if before != Ok(planned) {
        return vec![format!("check: {before:?}, but {planned} to repair")];
    }
    let moved = match repair(path, &options, clock, false) {
        Ok(repaired) => repaired.moved,
        Err(fault) => return vec![format!("repair: {fault}")],
    };
    let has_row = |what: &str| !what.contains("counted again") && !what.contains("is not there");
    if moved.len() != planned || moved.iter().any(|moved| has_row(&moved.what) && moved.rows == 0) {
        return vec![format!("repair: {moved:?}")];
    }
    let mut wrong = Vec::new();
    if planned > 0 && unreadable(path) != Ok(0) {
        wrong.push(format!("check after the repair: {:?}", check(path, &options)));
    }
    if planned > 0 {
        let agrees = std::panic::catch_unwind(|| assert_agrees(&Connection::open(path).unwrap()));
        wrong.extend(agrees.err().map(|why| format!("repair: {:?}", why.downcast_ref::<String>())));
        wrong.extend(drained(path, clock).await.err());
    }
    wrong
}

/// Runs all jobs of a repaired file, and jobs that share the keys of those that are gone: nothing is held for good.
async fn drained(path: &Path, clock: &ManualClock) -> Result<(), String> {
    let store = SqliteStore::open(path, Options::default(), Arc::new(clock.clone()))
        .map_err(|fault| format!("cannot be opened: {fault}"))?;
    let failed = |fault: tenure_store::Fault| format!("drain: {fault}");
    // The settings of a queue are lost with its row.
    for queue in store.queues().await.map_err(failed)? {
        store.set_paused(&queue.name, false).await.map_err(failed)?;
    }
    for round in 0..2 {
        for _ in 0..8 {
            clock.advance(Duration::from_secs(3_600));
            store.tend().await.map_err(failed)?;
            let granted = store.reserve(ask(host(2), 50)).await.map_err(failed)?.jobs;
            let ends = granted.into_iter().map(|job| settle(job, Verdict::Succeeded(None))).collect();
            store.settle(ends, None).await.map_err(failed)?;
        }
        let left = store.counts().await.map_err(failed)?;
        if let Some(left) = left.iter().find(|count| UNFINISHED.contains(&count.state)) {
            return Err(format!("drain, round {round}: {} jobs are {}", left.jobs, left.state));
        }
        if round == 0 {
            let enqueued = store.enqueue(sharing().to_vec()).await.map_err(failed)?;
            if !matches!(enqueued, tenure_store::Enqueued::Stored(_)) {
                return Err(format!("drain: {enqueued:?}"));
            }
        }
    }
    store.close().await.map_err(failed)
}

/// Jobs that have the keys of those of [`fill`].
fn sharing() -> [NewJob; 4] {
    let ordering = Some(OrderingKey { key: key("cart"), head: Head::Block });
    let limit = Some(LimitKey { key: key("smtp"), most: Some(1) });
    let unique = Some(Unique {
        key: UniqueKey([7; 16]),
        window: Window::WhileUnfinished,
        on_conflict: OnConflict::Reject,
    });
    [
        on(31, Terms { unique, ..Terms::default() }),
        on(32, Terms { ordering, ..Terms::default() }),
        on(33, Terms { limit: limit.clone(), ..Terms::default() }),
        on(34, Terms { limit, ..Terms::default() }),
    ]
}

/// T078, KD-4, KD-9.
#[test]
#[ignore = "takes a minute: `cargo xtask test --long`"]
fn a_bad_value_in_any_column_hides_no_other_job() {
    hides_no_other_job(1);
}

/// T078, KD-4, KD-9: fewer values, and each of them in many columns.
#[test]
fn a_bad_value_in_a_column_hides_no_other_job() {
    hides_no_other_job(5);
}

/// Tries one value in so many.
fn hides_no_other_job(one_in: usize) {
    let (directory, base) = file();
    let clock = ManualClock::new();
    let runtime = runtime();
    let jobs = runtime.block_on(fill(&base, &clock));
    let conn = Connection::open(&base).unwrap();
    conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let (mut wrong, mut seen, mut tried) = (Vec::new(), 0_usize, 0);
    for table in TABLES {
        // A job with another number is another job to all other tables; `a_job_without_a_place_hides_no_other_job_and_is_found` tells of it.
        for column in
            columns(&conn, table).1.into_iter().filter(|name| (table, name.as_str()) != ("job", "seq"))
        {
            for (bad, as_text) in
                bad_values().iter().map(|bad| (bad, false)).chain([(&Value::Blob(vec![0xff]), true)])
            {
                seen += 1;
                if !seen.is_multiple_of(one_in) {
                    continue;
                }
                let path = directory.path().join("damaged.db");
                std::fs::copy(&base, &path).unwrap();
                if !spoil(&Connection::open(&path).unwrap(), table, &column, bad, as_text) {
                    continue;
                }
                tried += 1;
                // A lane of another queue is no damage that shows.
                let is_moved =
                    (table, column.as_str()) == ("lane", "queue") && matches!(bad, Value::Integer(_));
                if OWN.contains(&table) || (SHARED.contains(&table) && !is_moved) {
                    wrong.extend(
                        runtime
                            .block_on(repaired(&copy(&path, "repaired.db"), &clock))
                            .into_iter()
                            .map(|what| format!("{table}.{column} = {bad:?}: {what}")),
                    );
                }
                let found = runtime.block_on(problems(&path, &clock, table, jobs));
                wrong.extend(found.into_iter().map(|what| format!("{table}.{column} = {bad:?}: {what}")));
            }
        }
    }
    assert!(tried > 300 / one_in, "{tried} values were tried");
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
}

fn copy(path: &Path, name: &str) -> std::path::PathBuf {
    let to = path.with_file_name(name);
    for suffix in ["", "-wal", "-shm"] {
        let beside = |path: &Path| std::path::PathBuf::from(format!("{}{suffix}", path.display()));
        let _ = std::fs::remove_file(beside(&to));
        if beside(path).exists() {
            std::fs::copy(beside(path), beside(&to)).unwrap();
        }
    }
    to
}

/// No cursor can name its place, so no list shows it. The check does.
#[test]
fn a_job_without_a_place_hides_no_other_job_and_is_found() {
    let (_directory, path) = file();
    let clock = ManualClock::new();
    runtime().block_on(async {
        let store = SqliteStore::open(&path, Options::default(), Arc::new(clock.clone())).unwrap();
        store.enqueue((1..=5).map(new_job).collect()).await.unwrap();
        Connection::open(&path).unwrap().execute("UPDATE job SET seq = -7 WHERE seq = 3", []).unwrap();
        for order in [Order::NewestFirst, Order::OldestFirst] {
            let [read, _] = listed(&store, order, ListedBy::Acceptance).await.unwrap();
            assert_eq!(read, BTreeSet::from([1, 2, 4, 5]));
        }
        store.close().await.unwrap();
    });
    let found = check(&path, &Options::default()).unwrap();
    assert!(found.iter().any(|finding| finding.what.contains("column job.seq: seq -7")), "{found:?}");
    let moved = repair(&path, &Options::default(), &clock, false).unwrap().moved;
    assert_eq!((moved.len(), moved[0].job.as_str()), (1, new_job(3).id.to_string().as_str()));
}

/// More of them than one page names: the next page names the following ones, and the jobs between are not lost.
#[test]
fn pages_go_past_any_number_of_unreadable_jobs() {
    let (_directory, path) = file();
    let clock = ManualClock::new();
    runtime().block_on(async {
        let store = SqliteStore::open(&path, Options::default(), Arc::new(clock.clone())).unwrap();
        store.enqueue((1..=250).map(new_job).collect()).await.unwrap();
        let other = Connection::open(&path).unwrap();
        other.execute("UPDATE job SET terms = '{torn' WHERE seq BETWEEN 11 AND 240", []).unwrap();
        for order in [Order::NewestFirst, Order::OldestFirst] {
            let [read, odd] = listed(&store, order, ListedBy::Acceptance).await.unwrap();
            assert_eq!((read.len(), odd.len()), (20, 230));
        }
        let ask = PageAsk { at_most: 1000, ..PageAsk::default() };
        let page = store.jobs(ask).await.unwrap();
        assert_eq!((page.jobs.len(), page.unreadable.len()), (10, 100));
        let first = &page.unreadable[0];
        assert_eq!((first.seq, first.id), (240, Some(new_job(240).id)));
        assert!(first.reason.starts_with("column job.terms: "), "{}", first.reason);
        // A filter by another kind rules them out; one by a state does not.
        let other_kind =
            Filter { kinds: vec![tenure_core::Kind::new("other").unwrap()], ..Filter::default() };
        let page = store.jobs(PageAsk { filter: other_kind, ..PageAsk::default() }).await.unwrap();
        assert_eq!((page.jobs.len(), page.unreadable.len()), (0, 0));
        // A bulk change goes on behind them.
        let everything = Selection::Matching { filter: Filter::default(), after: None };
        let mut changed = store.change(Change::Delete, everything).await.unwrap();
        let mut done = changed.outcomes.len();
        while let Some(after) = changed.next {
            let rest = Selection::Matching { filter: Filter::default(), after: Some(after) };
            changed = store.change(Change::Delete, rest).await.unwrap();
            done += changed.outcomes.len();
        }
        assert_eq!(done, 20);
        let fault = store.job(new_job(11).id).await.unwrap_err();
        assert_eq!(fault.cause(), Some(tenure_store::FaultCause::UnreadableData));
        store.close().await.unwrap();
    });
}

/// A worker that settles several jobs at once loses none of the others.
#[test]
fn a_running_job_that_cannot_be_read_keeps_no_other_from_being_settled() {
    let (_directory, path) = file();
    runtime().block_on(async {
        let clock = Arc::new(ManualClock::new());
        let store = SqliteStore::open(&path, Options::default(), clock).unwrap();
        store.enqueue((1..=2).map(new_job).collect()).await.unwrap();
        let granted = store.reserve(ask(host(1), 2)).await.unwrap().jobs;
        Connection::open(&path).unwrap().execute("UPDATE job SET terms = '{torn' WHERE seq = 1", []).unwrap();
        let failure = || Failure::new(Cause::Error, "no");
        let settlements = granted.into_iter().map(|job| settle(job, Verdict::Failed(failure()))).collect();
        let settled = store.settle(settlements, None).await.unwrap().settled;
        assert_eq!(settled, [Settled::Fenced, Settled::Done(StateName::Failed)]);
        store.close().await.unwrap();
    });
}

/// Nothing is written into the target.
#[test]
fn a_file_with_unreadable_rows_is_not_copied_and_names_them() {
    let (_directory, path) = file();
    let clock = ManualClock::new();
    runtime().block_on(async {
        let store = SqliteStore::open(&path, Options::default(), Arc::new(clock.clone())).unwrap();
        store.enqueue((1..=6).map(new_job).collect()).await.unwrap();
        let other = Connection::open(&path).unwrap();
        other.execute("UPDATE job SET terms = '{torn' WHERE seq BETWEEN 2 AND 5", []).unwrap();
        let target = MemoryStore::new(Arc::new(clock.clone()));
        let copied = tenure_store::copy(&*store, &target, true, &mut |_, _| {}).await.unwrap();
        let Copied::Refused(why @ CopyRefusal::Unreadable { count: 4, is_all: true, .. }) = copied else {
            panic!("{copied:?}");
        };
        let told = why.to_string();
        assert!(told.starts_with("4 rows of this store cannot be read") && told.contains("tenure db repair"));
        let named = |number: u64| told.contains(&new_job(number).id.to_string());
        assert_eq!([1, 2, 3, 4, 5].map(named), [false, true, true, true, false], "{told}");
        assert_eq!(target.counts().await.unwrap(), []);
        store.close().await.unwrap();
        repair(&path, &Options::default(), &clock, false).unwrap();
        let store = SqliteStore::open(&path, Options::default(), Arc::new(clock.clone())).unwrap();
        let copied = tenure_store::copy(&*store, &target, true, &mut |_, _| {}).await.unwrap();
        assert!(matches!(copied, Copied::Whole(totals) if totals.jobs == 2), "{copied:?}");
        store.close().await.unwrap();
    });
}

/// Its turn, its room and its unique key become free, and jobs that wait for it go on.
#[test]
fn a_repaired_job_lets_go_of_all_that_it_holds() {
    let (_directory, path) = file();
    let clock = ManualClock::new();
    let open = || SqliteStore::open(&path, Options::default(), Arc::new(clock.clone())).unwrap();
    let runtime = runtime();
    let unique = Some(Unique {
        key: UniqueKey([7; 16]),
        window: Window::WhileUnfinished,
        on_conflict: OnConflict::Reject,
    });
    let ordering = Some(OrderingKey { key: key("cart"), head: Head::Block });
    let limit = Some(LimitKey { key: key("smtp"), most: Some(1) });
    let all = Terms { unique, ordering: ordering.clone(), limit: limit.clone(), ..Terms::default() };
    runtime.block_on(async {
        let store = open();
        let after = Some(AfterJobs { jobs: vec![new_job(1).id], if_failed: IfFailed::Run });
        store.enqueue(vec![on(1, all.clone())]).await.unwrap();
        let rest = [
            on(2, Terms { ordering, ..Terms::default() }),
            on(3, Terms { limit, ..Terms::default() }),
            on(4, Terms { after, ..Terms::default() }),
        ];
        store.enqueue(rest.to_vec()).await.unwrap();
        store.close().await.unwrap();
    });
    Connection::open(&path).unwrap().execute("UPDATE job SET terms = '{torn' WHERE seq = 1", []).unwrap();
    let moved = repair(&path, &Options::default(), &clock, false).unwrap().moved;
    assert_eq!(moved.len(), 1);
    assert_eq!(moved[0].job, new_job(1).id.to_string());
    assert_agrees(&Connection::open(&path).unwrap());
    assert_eq!(check(&path, &Options::default()).unwrap(), []);
    let kept: String = Connection::open(&path)
        .unwrap()
        .query_row("SELECT content FROM quarantine WHERE source = 'job'", [], |row| row.get(0))
        .unwrap();
    assert!(kept.contains("{torn") && kept.contains("\"seq\":1"), "{kept}");
    runtime.block_on(async {
        let store = open();
        store.enqueue(vec![NewJob { id: new_job(5).id, ..on(5, all) }]).await.unwrap();
        let granted = store.reserve(ask(host(1), 9)).await.unwrap().jobs;
        let granted: BTreeSet<u64> = granted.iter().map(|reserved| reserved.job().seq).collect();
        assert_eq!(granted, BTreeSet::from([2, 3, 4]), "5 waits for its turn and for room");
        let running = store.counts().await.unwrap();
        assert!(running.iter().any(|count| count.state == StateName::Running && count.jobs == 3));
        store.close().await.unwrap();
    });
}

/// Times that a statement can write and the library cannot read.
#[test]
fn a_job_with_an_unreadable_time_stops_no_claim_and_is_repaired() {
    for (bad, table) in [
        (568_971_820_800_000_000_i64, "later"),
        (i64::MAX, "later"),
        (-315_619_200_000_000, "later"),
        (-315_619_200_000_000, "ready"),
    ] {
        let ((_directory, path), clock) = (file(), ManualClock::new());
        runtime().block_on(async {
            let open = || SqliteStore::open(&path, Options::default(), Arc::new(clock.clone())).unwrap();
            let store = open();
            let due = if table == "later" { Due::In(Duration::from_secs(3_600)) } else { Due::Now };
            store.enqueue(vec![NewJob { due, ..new_job(1) }, new_job(2)]).await.unwrap();
            store.close().await.unwrap();
            let conn = Connection::open(&path).unwrap();
            for table in ["job", table] {
                let plant = format!("UPDATE {table} SET due = {bad} WHERE seq = 1");
                assert_eq!(conn.execute(&plant, []).unwrap(), 1);
            }
            drop(conn);
            let store = open();
            let granted =
                store.reserve(ask(host(1), 9)).await.unwrap_or_else(|fault| panic!("{bad}: {fault}"));
            assert_eq!(granted.jobs.iter().map(|job| job.job().seq).collect::<Vec<_>>(), [2], "{bad}");
            store.close().await.unwrap();
            let moved = repair(&path, &Options::default(), &clock, false).unwrap().moved;
            // A claim met the old time, and set the job aside with a new one.
            assert_eq!(moved.len(), usize::from(bad > 0), "{bad}: {moved:?}");
            assert_eq!(check(&path, &Options::default()).unwrap(), [], "{bad}");
        });
    }
}
