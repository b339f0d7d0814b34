//! How SQLite goes about the statements that everything waits for: never through all jobs.

use rusqlite::types::Null;
use rusqlite::{Connection, StatementStatus, params_from_iter};
use tenure_store::Order;

use crate::{
    aside, chains, check_in, dependencies, enqueue, gates, key_views, leases, ledger, limit_keys, limit_line,
    listing, listing_by_end, needs, open, place, records, reserve, settle, shares, sweep, tend, timers,
    together, views,
};

/// The plan in SQLite's words, a line a step.
fn plan(conn: &Connection, sql: &str) -> Vec<String> {
    let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let nulls = vec![Null; statement.parameter_count()];
    statement
        .query_map(params_from_iter(nulls), |row| row.get("detail"))
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

fn file() -> (tempfile::TempDir, Connection) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tenure.db");
    let conn = open::open(&path, &crate::Options::default(), |epoch| epoch).unwrap().conn;
    (directory, conn)
}

fn is_narrow(conn: &Connection, sql: &str) {
    for step in plan(conn, sql) {
        // What a query inside of it yields, and what was handed in, is bounded by itself.
        let is_bounded = ["SCAN (", "SCAN json_each", "SCAN 8-ROW VALUES", "SCAN 10-ROW VALUES"]
            .iter()
            .any(|what| step.starts_with(what));
        assert!(!step.starts_with("SCAN") || is_bounded, "{step}\nin {sql}");
        assert!(!step.contains("TEMP B-TREE"), "{step}\nin {sql}");
    }
}

/// What every job goes through.
const FOR_ALL: &[&str] = &[
    reserve::LINE,
    reserve::PLACES,
    reserve::BEGIN,
    reserve::CUT,
    reserve::LEFT,
    settle::SUCCEED,
    together::INSERT,
    together::RUNNING,
    together::SUCCEED,
    sweep::LAPSED,
    sweep::INTO_LINE,
    sweep::SINGLY,
    sweep::SHARED,
    sweep::OUT_OF_DIARY,
    aside::OUT_OF_PLACE,
    enqueue::IN_LINE,
    enqueue::IN_DIARY,
    place::IN_LINE,
    place::MANY_IN_LINE,
    place::OUT_OF_LINE,
    place::OUT_OF_DIARY,
    views::AHEAD_IN_LINE,
    views::NEXT_ROUND,
];

/// What jobs with keys go through.
const FOR_KEYS: &[&str] = &[
    gates::WAITS_FOR_JOBS,
    gates::WAITS_FOR_TURN,
    gates::WAITS_FOR_ROOM,
    chains::KEEP,
    chains::LEAVE,
    chains::STEP_BACK,
    chains::FIRST,
    chains::CUT,
    limit_keys::KEEP,
    limit_keys::BLOCKING,
    limit_line::LEAVE,
    limit_line::CUT,
    limit_line::FIRST_BEHIND,
    limit_line::LAST_UP_TO,
    limit_line::NTH_BEHIND,
    limit_line::COUNT_BETWEEN,
    limit_line::LET_MANY_IN,
    limit_keys::GROWN,
    dependencies::ENDED_IF_AWAITED,
    dependencies::WAIT_NO_MORE,
    dependencies::WAIT_NOT_FOR,
    dependencies::IS_WAITING_FOR,
    dependencies::IS_WAITING_FOR_ANOTHER,
    dependencies::RUNS_ANYWAY,
    dependencies::NOTICED_BY_ALL,
    needs::NEED,
    needs::NEED_NO_MORE,
    needs::IS_NEEDED,
    needs::KEEP_ON,
    needs::NEEDED_BY,
    shares::FIND,
    key_views::AHEAD_IN_LIMIT,
    key_views::BLOCKED,
    key_views::AHEAD_CHAINED,
    key_views::AHEAD_ASIDE,
    key_views::PAGE,
    key_views::OVERHELD,
    key_views::OVERHELD_IN_QUEUE,
];

/// What records and journals go through.
const FOR_RECORDS: &[&str] = &[
    records::PUT,
    records::REMOVE,
    records::EXPIRED,
    records::PRUNE,
    records::EXPIRED_ENTRIES,
    records::PRUNE_ENTRY,
    records::ONE,
    records::PAGE,
    records::KEPT,
    records::ALL_OLDEST,
    records::ALL_NEWEST,
    records::SUBJECT_OLDEST,
    records::SUBJECT_NEWEST,
    records::ENTRIES_KEPT,
];

#[test]
fn what_records_and_journals_do_scans_and_sorts_nothing() {
    let (_directory, conn) = file();
    FOR_RECORDS.iter().for_each(|sql| is_narrow(&conn, sql));
}

/// What timers go through.
const FOR_TIMERS: &[&str] = &[
    timers::RIPE,
    timers::FIRST_WAKES,
    timers::PROGRESS,
    timers::ASIDE,
    timers::BY_NAME,
    timers::AGREE,
    timers::STAND,
    timers::REVISION,
    timers::PAGE,
    timers::RECORD,
    timers::ALL_OLDEST,
    timers::ALL_NEWEST,
    timers::OF_ONE_OLDEST,
    timers::OF_ONE_NEWEST,
    timers::FIRST_KEPT,
    timers::PRUNE,
];

#[test]
fn what_timers_do_scans_and_sorts_nothing() {
    let (_directory, conn) = file();
    for sql in FOR_TIMERS {
        is_narrow(&conn, sql);
    }
    // Which timers are ripe is told by an index alone, and in the order in which they fire.
    assert_eq!(plan(&conn, timers::RIPE), ["SEARCH timer_standing USING COVERING INDEX timer_wake (wake<?)"]);
    for sql in [timers::OF_ONE_OLDEST, timers::OF_ONE_NEWEST] {
        assert!(plan(&conn, sql)[0].contains("timer_slot_timer (timer=? AND "), "{:?}", plan(&conn, sql));
    }
}

#[test]
fn what_jobs_go_through_scans_and_sorts_nothing() {
    let (_directory, conn) = file();
    for sql in FOR_ALL.iter().chain(FOR_KEYS).chain(&[tend::EXPIRED, tend::FREE_KEYS]) {
        is_narrow(&conn, sql);
    }
}

/// SQLite does so, silently, where a value that is bound could make a partial index or a bound of use. It
/// costs more than the statement itself.
#[test]
fn no_statement_is_prepared_anew_for_another_value() {
    let (_directory, conn) = file();
    for sql in FOR_ALL.iter().chain(FOR_KEYS).chain(FOR_TIMERS) {
        let mut statement = conn.prepare(sql).unwrap();
        for value in 1..4 {
            let mut rows =
                statement.query(params_from_iter(vec![value; statement.parameter_count()])).unwrap();
            // It may well meet a constraint: the tables are empty, and the values mean nothing.
            while let Ok(Some(_)) = rows.next() {}
        }
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0, "{sql}");
    }
}

/// What scans or sorts all the same, each time no more than a bound allows.
#[test]
fn what_does_scan_or_sort_has_a_bound() {
    let (_directory, conn) = file();
    let steps = |sql: &str| -> Vec<String> {
        let wide = |step: &String| step.starts_with("SCAN") || step.contains("TEMP B-TREE");
        plan(&conn, sql).into_iter().filter(wide).collect()
    };
    // It turns round what the query inside it yields: as many rows as a sweep may move.
    assert_eq!(steps(sweep::LAST_DUE), ["SCAN (subquery-1)", "USE TEMP B-TREE FOR ORDER BY"]);
    assert!(sweep::LAST_DUE.contains("ORDER BY due, seq LIMIT ?2 + 0)"));
    // It groups the rows up to the last one found by the statement before: again those of one sweep.
    assert_eq!(steps(sweep::COUNT_DUE), ["USE TEMP B-TREE FOR GROUP BY"]);
    // The next two go through ended jobs that others wait for and no turn has noticed, as many as they are
    // told, or until one is found.
    assert_eq!(steps(dependencies::OVER), ["SCAN e"]);
    assert!(dependencies::OVER.contains("ORDER BY e.seq, d.seq LIMIT ?2"));
    assert!(steps(dependencies::IS_NEWS).contains(&"SCAN awaited_end".to_owned()));
    // It reads the limits that block jobs.
    assert_eq!(steps(key_views::BLOCKING), ["SCAN limit_key USING INDEX limit_key_blocks"]);
    // They read the next shares, as many as they are told.
    assert_eq!(steps(shares::MEANINGLESS), ["SCAN s"]);
    assert!(shares::MEANINGLESS.contains("WHERE id > ?1 ORDER BY id LIMIT ?2"));
    // It sorts what runs under one limit.
    assert_eq!(steps(key_views::RUNNING), ["USE TEMP B-TREE FOR ORDER BY", "SCAN s"]);
    assert!(steps(key_views::AWAITED).is_empty());
    // They read what is blocked from its start, as many rows as they are told.
    for sql in listing::BLOCKED {
        assert!(steps(sql).iter().all(|step| step.starts_with("SCAN")), "{sql}");
        assert!(sql.contains("LIMIT"));
    }
    // They read the diary from its start, as many rows as they are told.
    assert!(steps(listing::IN_DIARY).iter().all(|step| step.starts_with("SCAN later")));
    assert!(listing::IN_DIARY.contains("LIMIT"));
    assert_eq!(steps(views::AHEAD_IN_DIARY), ["SCAN (subquery-1)"]);
    assert!(views::AHEAD_IN_DIARY.contains("ORDER BY due LIMIT"));
    // It looks through the hosts that have announced themselves lately, not through jobs.
    assert_eq!(steps(tend::GONE_HOSTS), ["SCAN host", "SCAN host", "USE TEMP B-TREE FOR ORDER BY"]);
}

#[test]
fn the_first_of_an_index_is_read_from_its_end() {
    let (_directory, conn) = file();
    // SQLite calls it a scan, which ends with the first entry.
    assert_eq!(plan(&conn, sweep::FIRST_LAPSE), ["SCAN standing USING COVERING INDEX standing_lapse"]);
    assert_eq!(plan(&conn, sweep::FIRST_LATER), ["SCAN later"]);
    let first_grows = plan(&conn, limit_keys::FIRST_GROWS);
    assert_eq!(first_grows, ["SEARCH limit_key USING COVERING INDEX limit_key_grows (grows>?)"]);
}

#[test]
fn a_listing_follows_an_index_in_both_orders() {
    let (_directory, conn) = file();
    for order in [Order::OldestFirst, Order::NewestFirst] {
        for sql in [listing::ALL, listing::BY_TAG, listing::BY_LANE, listing::BY_TROUBLE] {
            is_narrow(&conn, &listing::directed(sql, order));
        }
        let trouble = plan(&conn, &listing::directed(listing::BY_TROUBLE, order));
        assert!(trouble.iter().any(|step| step.contains("standing_trouble")), "{trouble:?}");
    }
    for sql in [listing_by_end::FIRST_ENDED, listing_by_end::LAST_ENDED] {
        is_narrow(&conn, sql);
        let steps = plan(&conn, sql);
        assert!(steps.iter().all(|step| step.contains("standing_ended")), "{steps:?}");
    }
    let running = plan(&conn, listing::RUNNING);
    assert!(running.iter().all(|step| step.contains("standing_lapse")), "{running:?}");
}

/// Not through all that has ever run.
#[test]
fn what_runs_is_found_among_what_runs() {
    let (_directory, conn) = file();
    for sql in [views::BUSY, views::AT_WORK] {
        let steps = plan(&conn, sql);
        assert!(steps.iter().any(|step| step.contains("standing_lapse")), "{steps:?}");
    }
}

#[test]
fn wishes_about_leases_and_looks_at_them_scan_and_sort_nothing() {
    let (_directory, conn) = file();
    for sql in [
        leases::BY_NAME,
        leases::PROLONG,
        leases::LINE,
        leases::SIT,
        leases::STAND_UP,
        leases::GONE,
        leases::INFO,
        leases::PAGE,
        ledger::TOLD,
        ledger::PAST,
        ledger::OLD,
        ledger::PRUNE,
        ledger::ENTRY,
        ledger::BY_TIME,
        check_in::CHECK_LEASE_SQL,
        check_in::CHECK_JOB_SQL,
    ] {
        is_narrow(&conn, sql);
    }
    for order in [Order::OldestFirst, Order::NewestFirst] {
        is_narrow(&conn, &ledger::directed(ledger::ALL, order));
        is_narrow(&conn, &ledger::directed(ledger::BY_LEASE, order));
    }
}

/// A line has at most so many places that a count of them is bounded, and what lapsed at one instant is put
/// in order by name.
#[test]
fn lapsed_leases_are_found_by_their_instants() {
    let (_directory, conn) = file();
    let expected =
        ["SEARCH lease USING INDEX lease_until (until<?)", "USE TEMP B-TREE FOR LAST TERM OF ORDER BY"];
    assert_eq!(plan(&conn, leases::LAPSED), expected);
}

/// Not through all names, nor through those that were forgotten.
#[test]
fn a_page_of_leases_follows_the_names_that_are_shown() {
    let (_directory, conn) = file();
    let steps = plan(&conn, leases::PAGE);
    assert!(steps[0].contains("lease_shown (name>? AND name<?)"), "{steps:?}");
}
