//! A row that cannot be read hides no other: for every column of every table that tells of jobs.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use own_postgres::Server;
use tenure_core::{
    AfterJobs, Cause, Due, Failure, Head, IfFailed, Key, LimitKey, LogLine, NewJob, OnConflict, OrderingKey,
    RetryPolicy, StateName, Terms, Unique, UniqueKey, Verdict, Window,
};
use tenure_postgres::{Options, PostgresStore, check, repair};
use tenure_store::{
    Change, ChangeOutcome, Clock, Copied, CopyRefusal, Enqueued, Fault, FaultCause, Filter, Jobs, ListedBy,
    ManualClock, MemoryStore, Order, PageAsk, Report, Selection, Settled, Store, Views, copy,
};
use tokio_postgres::Client;

use crate::given::jobs::{ask, held, new_job, settle};
use crate::given::{host, options, schema, server, user};

/// Tables that tell of jobs, and nothing of others.
const TABLES: [&str; 12] = [
    "job",
    "standing",
    "attempt",
    "log",
    "granted",
    "receipt",
    "ready",
    "later",
    "keyed",
    "tag",
    "unique_key",
    "dependency",
];
/// Tables whose rows make a job unreadable.
const OWN: [&str; 6] = ["job", "standing", "attempt", "log", "granted", "receipt"];

/// Tables whose rows several jobs share, or that tell of them.
const SHARED: [&str; 4] = ["lane", "queue", "limit_key", "unique_key"];
/// Subjects of the findings that a repair deals with.
const REPAIRED: [&str; 4] = ["unreadable", "unique key", "limits", "queues"];

fn key(text: &str) -> Key {
    Key::new("key", text).unwrap()
}

fn on(number: u64, terms: Terms) -> NewJob {
    NewJob { terms: Arc::new(terms), ..new_job(number) }
}

async fn open(url: &str, clock: &ManualClock) -> Arc<PostgresStore> {
    PostgresStore::open(url, Options::default(), Some(Arc::new(clock.clone()))).await.unwrap()
}

/// Jobs in every state and with every key.
async fn fill(url: &str, clock: &ManualClock) -> usize {
    let store = open(url, clock).await;
    let retry = Some(RetryPolicy { max_attempts: 2, ..RetryPolicy::default() });
    let ends = Terms { retry, ..Terms::default() };
    store.enqueue((1..=4).map(|number| on(number, ends.clone())).collect()).await.unwrap();
    let mut granted = store.reserve(ask(host(1), 4)).await.unwrap().jobs.into_iter();
    let mut next = || granted.next().unwrap();
    let (succeeds, fails, retries, _runs) = (next(), next(), next(), next());
    for reserved in [&fails, &retries] {
        let line = LogLine { delivery: 1, number: LogLine::NEXT, at: clock.now(), text: "said".to_owned() };
        let report = Report { held: held(reserved), progress: None, lines: vec![line] };
        store.report(vec![report]).await.unwrap();
    }
    let failure = || Failure::new(Cause::Error, "no");
    let verdicts = vec![
        settle(succeeds, Verdict::Succeeded(None)),
        settle(fails, Verdict::Failed(failure())),
        settle(retries, Verdict::Retry { failure: failure(), due: None }),
    ];
    store.settle(verdicts, None).await.unwrap();
    let ordering = |order: &str| Some(OrderingKey { key: key(order), head: Head::Block });
    let limit = Some(LimitKey { key: key("smtp"), most: Some(1) });
    let after = Some(AfterJobs { jobs: vec![new_job(4).id], if_failed: IfFailed::Cancel });
    let unique = Some(Unique {
        key: UniqueKey([7; 16]),
        window: Window::WhileUnfinished,
        on_conflict: OnConflict::Reject,
    });
    let some = [
        on(5, Terms { unique, ..Terms::default() }),
        NewJob { due: Due::In(Duration::from_secs(3_600)), ..new_job(6) },
        on(7, Terms { ordering: ordering("cart"), ..Terms::default() }),
        on(8, Terms { ordering: ordering("cart"), ..Terms::default() }),
        on(9, Terms { limit: limit.clone(), ..Terms::default() }),
        on(10, Terms { limit, ..Terms::default() }),
        on(11, Terms { after, ..Terms::default() }),
    ];
    let jobs = 4 + some.len();
    store.enqueue(some.to_vec()).await.unwrap();
    store.close().await.unwrap();
    jobs
}

/// The numbers of the jobs that are listed, and of those that are marked as unreadable.
async fn listed(store: &PostgresStore, order: Order, by: ListedBy) -> Result<[BTreeSet<u64>; 2], String> {
    let (mut jobs, mut odd, mut after) = (BTreeSet::new(), BTreeSet::new(), None);
    // As small a page as may be: cursors have to go past what cannot be read.
    for _ in 0..100 {
        let ask = PageAsk { order, by, after, at_most: 3, ..PageAsk::default() };
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

/// Bad values for a column of this type, as SQL.
fn bad_values(data_type: &str) -> &'static [&'static str] {
    match data_type {
        "bigint" => &["9223372036854775807", "-7"],
        "integer" => &["2147483647", "-7"],
        "smallint" => &["32767", "-7", "77"],
        "text" => &["'{torn'", "'[\"a list\"]'", "''"],
        "bytea" => &["'\\xff'"],
        "uuid" => &["'00000000-0000-0000-0000-000000000000'"],
        _ => &[],
    }
}

async fn columns(client: &Client, table: &str) -> Vec<(String, String)> {
    let sql = "SELECT column_name::text, data_type::text FROM information_schema.columns
        WHERE table_schema = current_schema() AND table_name = $1 ORDER BY ordinal_position";
    client.query(sql, &[&table]).await.unwrap().iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// Puts a bad value into the first row that has one there. Answers the statement that undoes it, or `None` if the database
/// refuses the value.
async fn spoil(client: &Client, table: &str, column: &str, bad: &str) -> Option<String> {
    let find = format!(
        "SELECT ctid::text, quote_nullable({column}::text) FROM {table} ORDER BY {column} IS NULL, ctid LIMIT 1"
    );
    let (at, good): (String, String) = {
        let row = client.query_opt(&find, &[]).await.unwrap()?;
        (row.get(0), row.get(1))
    };
    let update = format!(
        "UPDATE {table} SET {column} = {bad} WHERE ctid = '{at}' AND {column} IS DISTINCT FROM {bad} RETURNING ctid::text"
    );
    let now: String = client.query_opt(&update, &[]).await.ok()??.get(0);
    let kind = format!("(SELECT {column} FROM {table} WHERE false)");
    Some(format!("UPDATE {table} SET {column} = coalesce({kind}, {good}) WHERE ctid = '{now}'"))
}

/// Returns the problems of a store with this damage, and the number of jobs that it marks.
async fn problems(store: &PostgresStore, table: &str, jobs: usize) -> (Vec<String>, usize) {
    let (mut wrong, mut odd) = (Vec::new(), 0);
    for order in [Order::NewestFirst, Order::OldestFirst] {
        match listed(store, order, ListedBy::Acceptance).await {
            Err(fault) => wrong.push(format!("list: {fault}")),
            Ok([read, unreadable]) => {
                odd = unreadable.len();
                let most = usize::from(OWN.contains(&table));
                if read.len() + odd != jobs || odd > most {
                    wrong.push(format!("list: {} jobs and {odd} unreadable ones", read.len()));
                }
            }
        }
        if let Err(fault) = listed(store, order, ListedBy::End).await {
            wrong.push(format!("list by end: {fault}"));
        }
    }
    (wrong, odd)
}

async fn unreadable(url: &str) -> Result<usize, String> {
    let found = check(url, Options::default()).await.map_err(|fault| fault.to_string())?;
    Ok(found.iter().filter(|finding| REPAIRED.contains(&finding.about.as_str())).count())
}

/// Returns the problems of a damaged database once it is repaired.
async fn repaired(url: &str) -> Vec<String> {
    let before = unreadable(url).await;
    let planned = repair(url, Options::default(), true).await.unwrap().moved.len();
    let moved = match repair(url, Options::default(), false).await {
        Ok(repaired) => repaired.moved,
        Err(fault) => return vec![format!("repair: {fault}")],
    };
    let has_row = |what: &str| !what.contains("counted again") && !what.contains("is not there");
    let has_none = moved.iter().any(|moved| has_row(&moved.what) && moved.rows == 0);
    if before != Ok(planned) || moved.len() != planned || has_none {
        return vec![format!("check: {before:?}, planned {planned}, repaired {moved:?}")];
    }
    if planned == 0 {
        return Vec::new();
    }
    let left = check(url, Options::default()).await.unwrap();
    if left.is_empty() { Vec::new() } else { vec![format!("check after the repair: {left:?}")] }
}

/// T078, KD-4, KD-9: one value in ten of those in [`a_bad_value_in_any_column_hides_no_other_job`].
#[tokio::test]
async fn a_bad_value_hides_no_other_job() {
    hides_no_other_job(10).await;
}

/// T078, KD-4, KD-9.
#[tokio::test]
#[ignore = "takes a minute: `cargo xtask test --long`"]
async fn a_bad_value_in_any_column_hides_no_other_job() {
    hides_no_other_job(1).await;
}

/// Tries one value in so many.
async fn hides_no_other_job(one_in: usize) {
    let (server, clock) = (Server::start_hasty().unwrap(), ManualClock::new());
    let admin = user(&server.url()).await;
    let of = |database: &str| format!("{}/{database}", server.url().rsplit_once('/').unwrap().0);
    admin.batch_execute("CREATE DATABASE base").await.unwrap();
    let jobs = fill(&of("base"), &clock).await;
    let mut all = Vec::new();
    {
        let client = user(&of("base")).await;
        client.batch_execute("SET search_path = tenure").await.unwrap();
        for table in TABLES {
            // A job with another number, or in a lane that does not exist, is in no list. The check finds it.
            let is_listed =
                |(name, _): &(String, String)| table != "job" || (name != "seq" && name != "lane");
            let columns = columns(&client, table).await.into_iter().filter(is_listed).collect::<Vec<_>>();
            let bad = |(column, kind): &(String, String)| {
                let most = if OWN.contains(&table) { usize::MAX } else { 1 };
                bad_values(kind)
                    .iter()
                    .chain([&"NULL"])
                    .take(most)
                    .map(|bad| (table, column.clone(), *bad))
                    .collect::<Vec<_>>()
            };
            all.extend(columns.iter().flat_map(bad));
        }
    }
    admin.batch_execute("CREATE DATABASE work TEMPLATE base").await.unwrap();
    let client = user(&of("work")).await;
    client.batch_execute("SET search_path = tenure").await.unwrap();
    let store = open(&of("work"), &clock).await;
    let (mut wrong, mut tried, mut marked) = (Vec::new(), 0, 0);
    let mut to_repair: Vec<(&str, String, &str)> = Vec::new();
    for (table, column, bad) in all.into_iter().step_by(one_in) {
        let Some(undo) = spoil(&client, table, &column, bad).await else { continue };
        tried += 1;
        let (found, odd) = problems(&store, table, jobs).await;
        client.batch_execute(&undo).await.unwrap();
        marked += odd;
        let is_new = !to_repair.iter().any(|(of, name, _)| (*of, name) == (table, &column));
        if OWN.contains(&table) && is_new && (odd > 0 || table == "attempt" || table == "log") {
            to_repair.push((table, column.clone(), bad));
        }
        wrong.extend(found.into_iter().map(|what| format!("{table}.{column} = {bad}: {what}")));
    }
    store.close().await.unwrap();
    for (table, column, bad) in to_repair {
        admin.batch_execute("DROP DATABASE IF EXISTS damaged WITH (FORCE)").await.unwrap();
        admin.batch_execute("CREATE DATABASE damaged TEMPLATE base").await.unwrap();
        let client = user(&of("damaged")).await;
        client.batch_execute("SET search_path = tenure").await.unwrap();
        spoil(&client, table, &column, bad).await.unwrap();
        let found = repaired(&of("damaged")).await;
        wrong.extend(found.into_iter().map(|what| format!("{table}.{column} = {bad}: {what}")));
    }
    assert!(
        tried > 100 / one_in && marked > 30 / one_in,
        "{tried} values were tried, {marked} made a job unreadable"
    );
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
}

const UNFINISHED: [StateName; 4] =
    [StateName::Scheduled, StateName::Queued, StateName::Blocked, StateName::Running];

/// Runs all jobs of a repaired database, and jobs that share the keys of those that are gone: nothing is held for good.
async fn drained(url: &str, clock: &ManualClock) -> Result<(), String> {
    let failed = |fault: Fault| format!("drain: {fault}");
    let options = Options::default();
    let store = PostgresStore::open(url, options, Some(Arc::new(clock.clone()))).await.map_err(failed)?;
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
            if !matches!(enqueued, Enqueued::Stored(_)) {
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

/// Tries one value in five of those in [`any_bad_value_in_a_row_that_jobs_share_is_found_and_repaired`].
#[tokio::test]
async fn a_bad_value_in_a_row_that_jobs_share_is_found_and_repaired() {
    is_found_and_repaired(5).await;
}

#[tokio::test]
#[ignore = "takes a minute: `cargo xtask test --long`"]
async fn any_bad_value_in_a_row_that_jobs_share_is_found_and_repaired() {
    is_found_and_repaired(1).await;
}

/// Tries one value in so many.
async fn is_found_and_repaired(one_in: usize) {
    let (server, clock) = (Server::start_hasty().unwrap(), ManualClock::new());
    let admin = user(&server.url()).await;
    let of = |database: &str| format!("{}/{database}", server.url().rsplit_once('/').unwrap().0);
    admin.batch_execute("CREATE DATABASE base").await.unwrap();
    fill(&of("base"), &clock).await;
    let mut all = Vec::new();
    {
        let client = user(&of("base")).await;
        client.batch_execute("SET search_path = tenure").await.unwrap();
        for table in SHARED {
            // Most texts are keys of limits.
            let most = if table == "limit_key" { 3 } else { 1 };
            for (column, kind) in columns(&client, table).await {
                all.extend(bad_values(&kind).iter().take(most).map(|bad| (table, column.clone(), *bad)));
            }
        }
    }
    let (mut wrong, mut mended) = (Vec::new(), 0);
    for (table, column, bad) in all.into_iter().step_by(one_in) {
        admin.batch_execute("DROP DATABASE IF EXISTS damaged WITH (FORCE)").await.unwrap();
        admin.batch_execute("CREATE DATABASE damaged TEMPLATE base").await.unwrap();
        let client = user(&of("damaged")).await;
        client.batch_execute("SET search_path = tenure").await.unwrap();
        if spoil(&client, table, &column, bad).await.is_none() || unreadable(&of("damaged")).await == Ok(0) {
            continue;
        }
        mended += 1;
        let mut found = repaired(&of("damaged")).await;
        // A repair goes by the clock of the server, and the copy is another database to it: jobs would wait for hours.
        client.execute("UPDATE meta SET value = 0 WHERE name = 'bar'", &[]).await.unwrap();
        found.extend(drained(&of("damaged"), &clock).await.err());
        wrong.extend(found.into_iter().map(|what| format!("{table}.{column} = {bad}: {what}")));
    }
    assert!(mended > 10 / one_in, "{mended} values were found");
    assert!(wrong.is_empty(), "{} of {mended}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Nothing is written into the target.
#[tokio::test]
async fn a_database_with_unreadable_rows_is_not_copied_and_names_them() {
    let (server, clock) = (Server::start_hasty().unwrap(), ManualClock::new());
    let store = open(&server.url(), &clock).await;
    store.enqueue((1..=6).map(new_job).collect()).await.unwrap();
    let client = user(&server.url()).await;
    client.execute("UPDATE tenure.job SET terms = '{torn' WHERE seq BETWEEN 2 AND 5", &[]).await.unwrap();
    let target = MemoryStore::new(Arc::new(clock.clone()));
    let copied = copy(&*store, &target, true, &mut |_, _| {}).await.unwrap();
    let Copied::Refused(why @ CopyRefusal::Unreadable { count: 4, is_all: true, .. }) = copied else {
        panic!("{copied:?}");
    };
    let told = why.to_string();
    assert!(told.starts_with("4 rows of this store cannot be read") && told.contains("tenure db repair"));
    assert!(told.contains(&new_job(2).id.to_string()), "{told}");
    assert_eq!(target.counts().await.unwrap(), []);
    store.close().await.unwrap();
    repair(&server.url(), Options::default(), false).await.unwrap();
    let store = open(&server.url(), &clock).await;
    let copied = copy(&*store, &target, true, &mut |_, _| {}).await.unwrap();
    assert!(matches!(copied, Copied::Whole(totals) if totals.jobs == 2), "{copied:?}");
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_job_without_a_lane_hides_no_other_job_and_is_found() {
    let (server, clock) = (Server::start_hasty().unwrap(), ManualClock::new());
    let store = open(&server.url(), &clock).await;
    store.enqueue((1..=5).map(new_job).collect()).await.unwrap();
    let client = user(&server.url()).await;
    client.execute("UPDATE tenure.job SET lane = 77 WHERE seq = 3", &[]).await.unwrap();
    let [read, _] = listed(&store, Order::NewestFirst, ListedBy::Acceptance).await.unwrap();
    assert_eq!(read, BTreeSet::from([1, 2, 4, 5]));
    store.close().await.unwrap();
    let found = check(&server.url(), Options::default()).await.unwrap();
    assert!(found.iter().any(|finding| finding.what.contains("column lane.queue")), "{found:?}");
    let moved = repair(&server.url(), Options::default(), false).await.unwrap().moved;
    assert_eq!((moved.len(), moved[0].job.as_str()), (1, new_job(3).id.to_string().as_str()));
    assert_eq!(check(&server.url(), Options::default()).await.unwrap(), []);
}

/// More of them than one page names: the next page names the following ones, and the jobs between are not lost.
#[tokio::test]
async fn pages_go_past_any_number_of_unreadable_jobs() {
    let (server, clock) = (Server::start_hasty().unwrap(), ManualClock::new());
    let store = open(&server.url(), &clock).await;
    store.enqueue((1..=250).map(new_job).collect()).await.unwrap();
    let client = user(&server.url()).await;
    client.execute("UPDATE tenure.job SET terms = '{torn' WHERE seq BETWEEN 11 AND 240", &[]).await.unwrap();
    for order in [Order::NewestFirst, Order::OldestFirst] {
        let [read, odd] = listed(&store, order, ListedBy::Acceptance).await.unwrap();
        assert_eq!((read.len(), odd.len()), (20, 230));
    }
    let page = store.jobs(PageAsk { at_most: 1000, ..PageAsk::default() }).await.unwrap();
    assert_eq!((page.jobs.len(), page.unreadable.len()), (10, 100));
    let first = &page.unreadable[0];
    assert_eq!((first.seq, first.id), (240, Some(new_job(240).id)));
    assert!(first.reason.starts_with("column job.terms: "), "{}", first.reason);
    let outcomes = store.change(Change::Delete, Selection::Ids(vec![new_job(10).id, new_job(11).id])).await;
    let outcomes: Vec<ChangeOutcome> = outcomes.unwrap().outcomes.into_iter().map(|(_, it)| it).collect();
    assert_eq!(outcomes, [ChangeOutcome::Done, ChangeOutcome::RefusedUnreadable]);
    let everything = Selection::Matching { filter: Filter::default(), after: None };
    let mut changed = store.change(Change::Delete, everything).await.unwrap();
    let mut done = changed.outcomes.len();
    while let Some(after) = changed.next {
        let rest = Selection::Matching { filter: Filter::default(), after: Some(after) };
        changed = store.change(Change::Delete, rest).await.unwrap();
        done += changed.outcomes.len();
    }
    assert_eq!(done, 19);
    let fault = store.job(new_job(11).id).await.unwrap_err();
    assert_eq!(fault.cause(), Some(FaultCause::UnreadableData));
    store.close().await.unwrap();
}

/// A worker that settles several jobs at once loses none of the others.
#[tokio::test]
async fn a_running_job_that_cannot_be_read_keeps_no_other_from_being_settled() {
    let (server, clock) = (Server::start_hasty().unwrap(), ManualClock::new());
    let store = open(&server.url(), &clock).await;
    store.enqueue((1..=2).map(new_job).collect()).await.unwrap();
    let granted = store.reserve(ask(host(1), 2)).await.unwrap().jobs;
    let client = user(&server.url()).await;
    client.execute("UPDATE tenure.job SET terms = '{torn' WHERE seq = 1", &[]).await.unwrap();
    let failure = || Failure::new(Cause::Error, "no");
    let settlements = granted.into_iter().map(|job| settle(job, Verdict::Failed(failure()))).collect();
    let settled = store.settle(settlements, None).await.unwrap().settled;
    assert_eq!(settled, [Settled::Fenced, Settled::Done(StateName::Failed)]);
    store.close().await.unwrap();
}

/// Its turn, its room and its unique key become free, and jobs that wait for it go on.
#[tokio::test]
async fn a_repaired_job_lets_go_of_all_that_it_holds() {
    let (server, clock) = (Server::start_hasty().unwrap(), ManualClock::new());
    let url = server.url();
    let unique = Some(Unique {
        key: UniqueKey([7; 16]),
        window: Window::WhileUnfinished,
        on_conflict: OnConflict::Reject,
    });
    let ordering = Some(OrderingKey { key: key("cart"), head: Head::Block });
    let limit = Some(LimitKey { key: key("smtp"), most: Some(1) });
    let all = Terms { unique, ordering: ordering.clone(), limit: limit.clone(), ..Terms::default() };
    let after = Some(AfterJobs { jobs: vec![new_job(1).id], if_failed: IfFailed::Run });
    let store = open(&url, &clock).await;
    store.enqueue(vec![on(1, all.clone())]).await.unwrap();
    let rest = [
        on(2, Terms { ordering, ..Terms::default() }),
        on(3, Terms { limit, ..Terms::default() }),
        on(4, Terms { after, ..Terms::default() }),
    ];
    store.enqueue(rest.to_vec()).await.unwrap();
    store.close().await.unwrap();
    let client = user(&url).await;
    client.execute("UPDATE tenure.job SET terms = '{torn' WHERE seq = 1", &[]).await.unwrap();
    let moved = repair(&url, Options::default(), false).await.unwrap().moved;
    assert_eq!(moved.len(), 1);
    assert_eq!(moved[0].job, new_job(1).id.to_string());
    assert_eq!(check(&url, Options::default()).await.unwrap(), []);
    let kept = client.query_one("SELECT content FROM tenure.quarantine WHERE source = 'job'", &[]).await;
    let kept: String = kept.unwrap().get(0);
    assert!(kept.contains("{torn"), "{kept}");
    let store = open(&url, &clock).await;
    store.enqueue(vec![on(5, all)]).await.unwrap();
    let granted = store.reserve(ask(host(1), 9)).await.unwrap().jobs;
    let granted: BTreeSet<u64> = granted.iter().map(|reserved| reserved.job().seq).collect();
    assert_eq!(granted, BTreeSet::from([2, 3, 4]), "5 waits for its turn and for room");
    store.close().await.unwrap();
}

/// Times and priorities that a statement can write and the library cannot read: in the diary, and in line.
#[tokio::test]
async fn a_job_with_an_unreadable_place_stops_no_claim_and_is_repaired() {
    const FAR: i64 = 568_971_820_800_000_000;
    const OLD: i64 = -315_619_200_000_000;
    for (column, bad, table) in [
        ("due", FAR, "later"),
        ("due", i64::MAX, "later"),
        ("due", OLD, "later"),
        ("due", FAR, "ready"),
        ("due", OLD, "ready"),
        ("priority", 32_767, "ready"),
        ("priority", -32_768, "later"),
    ] {
        let told = format!("{column} {bad} in {table}");
        let (s, clock) = (schema(), ManualClock::new());
        let (url, options) = (server().url(), options(&s));
        let open =
            async || PostgresStore::open(&url, options.clone(), Some(Arc::new(clock.clone()))).await.unwrap();
        let store = open().await;
        let due = if table == "later" { Due::In(Duration::from_secs(3_600)) } else { Due::Now };
        store.enqueue(vec![NewJob { due, ..new_job(1) }, new_job(2)]).await.unwrap();
        let client = user(&url).await;
        let plant = format!(
            "UPDATE {s}.job SET {column} = {bad} WHERE seq = 1; UPDATE {s}.{table} SET {column} = {bad} WHERE seq = 1"
        );
        client.batch_execute(&plant).await.unwrap();
        let granted = store.reserve(ask(host(1), 1)).await.unwrap_or_else(|fault| panic!("{told}: {fault}"));
        // A job in line whose place comes first is granted, and set aside.
        let first = granted.jobs.len();
        let again = store.reserve(ask(host(1), 9)).await.unwrap_or_else(|fault| panic!("{told}: {fault}"));
        assert_eq!(first + again.jobs.len(), 1, "{told}");
        store.close().await.unwrap();
        let moved =
            repair(&url, options.clone(), false).await.unwrap_or_else(|fault| panic!("{told}: {fault}"));
        assert_eq!(moved.moved.len(), 1, "{told}: {moved:?}");
        assert_eq!(check(&url, options.clone()).await.unwrap(), [], "{told}");
        let kept = format!("SELECT content FROM {s}.quarantine WHERE source = 'job'");
        let kept: String = client.query_one(&kept, &[]).await.unwrap().get(0);
        assert!(kept.contains(&bad.to_string()), "{told}: {kept}");
        let store = open().await;
        store.enqueue(vec![new_job(3)]).await.unwrap();
        clock.advance(Duration::from_secs(7_200));
        assert!(!store.reserve(ask(host(1), 9)).await.unwrap().jobs.is_empty(), "{told}");
        store.close().await.unwrap();
    }
}

/// As above, before any claim: then the job still waits in line.
#[tokio::test]
async fn a_job_that_waits_in_line_since_an_unreadable_time_is_repaired() {
    let (s, clock) = (schema(), ManualClock::new());
    let (url, options) = (server().url(), options(&s));
    let store = PostgresStore::open(&url, options.clone(), Some(Arc::new(clock.clone()))).await.unwrap();
    store.enqueue((1..=4).map(new_job).collect()).await.unwrap();
    let client = user(&url).await;
    for (seq, set) in
        [(1, "due = -315619200000000"), (2, "priority = 32767"), (3, "due = 9223372036854775807")]
    {
        let plant = format!(
            "UPDATE {s}.job SET {set} WHERE seq = {seq}; UPDATE {s}.ready SET {set} WHERE seq = {seq}"
        );
        client.batch_execute(&plant).await.unwrap();
    }
    let moved = repair(&url, options.clone(), false).await.unwrap().moved;
    assert_eq!(moved.len(), 3, "{moved:?}");
    assert_eq!(check(&url, options.clone()).await.unwrap(), []);
    let granted = store.reserve(ask(host(1), 9)).await.unwrap().jobs;
    assert_eq!(granted.iter().map(|job| job.job().seq).collect::<Vec<_>>(), [4]);
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_lane_that_cannot_be_read_stops_no_claim_of_another() {
    let (s, clock) = (schema(), ManualClock::new());
    let (url, options) = (server().url(), options(&s));
    let open =
        async || PostgresStore::open(&url, options.clone(), Some(Arc::new(clock.clone()))).await.unwrap();
    let (store, other) = (open().await, open().await);
    let client = user(&url).await;
    client
        .batch_execute(&format!(
            "INSERT INTO {s}.lane (queue, kind) VALUES ('a b', 'x'), ('default', 'a\tb')"
        ))
        .await
        .unwrap();
    store.enqueue(vec![new_job(1), new_job(2)]).await.unwrap();
    assert_eq!(other.reserve(ask(host(1), 1)).await.unwrap().jobs.len(), 1);
    store.enqueue(vec![on(3, Terms { share: Some(key("a")), ..Terms::default() })]).await.unwrap();
    assert_eq!(other.reserve(ask(host(2), 9)).await.unwrap().jobs.len(), 2);
    assert_eq!(listed(&other, Order::NewestFirst, ListedBy::Acceptance).await.unwrap()[0].len(), 3);
    store.close().await.unwrap();
    other.close().await.unwrap();
}
