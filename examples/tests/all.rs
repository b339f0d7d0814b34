//! Every example runs to its end and prints what it shows.

use std::process::Command;

/// Runs an example in an empty folder. Its output must contain these lines in this order.
fn shows(program: &str, lines: &[&str]) {
    shows_with(program, &[], lines);
}

/// The same with arguments.
fn shows_with(program: &str, args: &[&str], lines: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let run = Command::new(program).args(args).current_dir(folder.path()).env_remove("DATABASE_URL").output();
    let run = run.expect("an example can be started");
    let told = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{}: {told}{}", run.status, String::from_utf8_lossy(&run.stderr));
    let mut rest = told.lines();
    for line in lines {
        assert!(rest.any(|found| found.starts_with(line)), "`{line}` is not where it belongs in:\n{told}");
    }
}

#[test]
fn hello_greets() {
    shows(env!("CARGO_BIN_EXE_hello"), &[r#"Ok("Hello, world!")"#]);
}

#[test]
fn enqueue_later_runs_jobs_by_priority_and_by_time() {
    let names = ["Eve", "Dan", "Cleo", "Ann", "Ben", "Fay"].map(|name| format!("to {name},"));
    shows(env!("CARGO_BIN_EXE_enqueue_later"), &names.each_ref().map(String::as_str));
}

#[test]
fn retries_shows_every_way_not_to_succeed() {
    let lines = [
        "Flaky: retried, retried, succeeded after 3 attempts",
        "RateLimited: retried, succeeded after 2 attempts",
        "Missing: failed after 1 attempts",
        "  the last failure: 404: there is no such page",
        "NotReady: snoozed, snoozed, snoozed, snoozed, succeeded after 1 attempts",
        "Hopeless: retried, retried, failed after 3 attempts",
    ];
    shows(env!("CARGO_BIN_EXE_retries"), &lines);
}

#[test]
fn unique_shows_every_way_to_meet_a_second_job() {
    let lines = [
        "same args: one job",
        "debounce: shelf 1 waits",
        "debounce: shelf 3 took its place",
        "rejected: KeyHeld(",
        "own id: new",
        "own id: repeated",
        "window: the same shelf is done",
        "window: another shelf is enqueued",
    ];
    shows(env!("CARGO_BIN_EXE_unique"), &lines);
}

#[test]
fn bulk_stores_all_or_nothing() {
    let lines = [
        "10000 jobs in one transaction",
        "refused: jobs[4711].priority: 1000; expected -100 (first) to 100 (last)",
        "10000 invoice jobs queued in queue default",
    ];
    shows(env!("CARGO_BIN_EXE_bulk"), &lines);
}

#[test]
fn progress_and_cancel_ends_a_running_job_politely() {
    let lines = [
        "handler: removing half a film, because cancelled: the customer has left",
        "failure: cancelled: the customer has left",
        "log: removed what was rendered",
    ];
    shows(env!("CARGO_BIN_EXE_progress_and_cancel"), &lines);
}

#[test]
fn blocking_work_lets_others_run() {
    let lines = ["ping 1 while", "ping 2 while", "ping 3 while", "computed"];
    shows(env!("CARGO_BIN_EXE_blocking_work"), &lines);
}

#[test]
fn graceful_stop_gives_back_what_did_not_end() {
    let lines = [
        "settled 3, left unsettled 0",
        "rolls: succeeded, attempts spent 1",
        "cake: queued, attempts spent 0",
        "bread: queued, attempts spent 0",
    ];
    shows(env!("CARGO_BIN_EXE_graceful_stop"), &lines);
}

#[test]
fn told_to_end_needs_no_signal() {
    shows(env!("CARGO_BIN_EXE_told_to_end"), &["settled 1, told to stop: true"]);
}

#[test]
fn explain_names_the_reason() {
    let lines = [
        "a job before any worker is there: no live worker serves queue default",
        "a job after its first attempt: attempt 1 failed",
        "a job enqueued for tomorrow: it is due at",
        "a job in a paused queue: queue poster is paused",
        "a job of a kind that is misspelt: no live worker has a handler for kind pirnt",
        "a job in a queue that no worker serves: no live worker serves queue plotter",
    ];
    shows(env!("CARGO_BIN_EXE_explain"), &lines);
}

#[test]
fn inspect_finds_what_failed_and_does_it_again() {
    let lines = [
        "import succeeded: 23",
        "import failed: 2",
        "row 17 failed: the row has no date",
        "  log: reading row 17",
        "row 7 failed: the row has no date",
        "2 jobs run again",
        "queue default: jobs are waiting",
    ];
    shows(env!("CARGO_BIN_EXE_inspect"), &lines);
}

#[test]
fn singleton_runs_on_one_instance_at_a_time() {
    let lines = [
        "compactor runs on A under fence 1",
        "on duty: A; standing by: 1",
        "10 charges are done, of each customer one at a time",
        "compactor on A ends, because the host is shutting down",
        "compactor runs on B under fence 2",
        "no instance is on duty: true",
    ];
    shows(env!("CARGO_BIN_EXE_singleton"), &lines);
}

#[test]
fn writer_writes_in_order_from_one_instance_to_the_next() {
    let lines = [
        "no room: 5 of 5",
        "written by A",
        "written by B",
        "left: 0, parked: 1",
        "rent 100 (by A)",
        "rent 200 (by A)",
        "rent 400 (by A)",
        "rent 500 (by A)",
        "food 1 (by A)",
        "food 2 (by A)",
        "food 3 (by A)",
        "food 4 (by B)",
        "food 5 (by B)",
        "food 6 (by B)",
    ];
    shows(env!("CARGO_BIN_EXE_writer"), &lines);
}

#[test]
fn reservations_shows_three_processes_and_a_kill() {
    let lines = [
        "stock is taken under fence 1",
        "ticked twice, stored once: true",
        "two of three have a role: true",
        "the instance that had the mailer is killed",
        "the one that stood by has it now: true",
        "the next has it, fence ",
        "the first lapsed, fence ",
    ];
    shows(env!("CARGO_BIN_EXE_reservations"), &lines);
}

#[test]
fn own_effect_once_refuses_the_late_holder() {
    let lines = [
        "host B writes with fence",
        "host A writes with fence 1: TooLate",
        "host A learns: 1 result rejected",
        "on the shelf: 1 entry, by host B",
    ];
    shows(env!("CARGO_BIN_EXE_own_effect_once"), &lines);
}

#[test]
fn hold_a_lease_keeps_others_out_and_says_who_has_it() {
    let lines = [
        "held under fence 1",
        "a second time: no",
        "could not acquire lease month-end within 0.3 s: held by web-3 since",
        "web-4 has it under fence 3",
        "compacted until told: true",
        "the work stopped: it was broken",
        "fence 1: ended by broke",
        "held now: false",
    ];
    shows(env!("CARGO_BIN_EXE_hold_a_lease"), &lines);
}

#[test]
fn fenced_write_refuses_the_late_holder_in_its_own_transaction() {
    let lines = [
        "host B writes with fence ",
        "host A is rejected: the lease or job is no longer held by this owner",
        "host A learns: it expired at",
        "on the shelf: by host B",
    ];
    shows(env!("CARGO_BIN_EXE_fenced_write"), &lines);
}

#[test]
fn in_order_keeps_each_cart_in_its_order() {
    let lines = [
        "cart 7, ink: it waits for job ",
        "cart 8, ink: it waits for job ",
        "cart 7: add a pen, add ink, check out",
        "cart 8: add a pen, add ink, check out",
        "cart 9: charge failed, charge, deliver",
        "cart 10: charge failed, deliver, charge",
    ];
    shows(env!("CARGO_BIN_EXE_in_order"), &lines);
}

#[test]
fn limits_are_kept_and_used_up() {
    let lines = [
        "the third: its limit smtp has room, but 2 jobs are ahead of it",
        "a number: 2 at once",
        "a queue: 3 at once",
        "a rate: 5 jobs in no less than a fifth of a second",
        "limit smtp: set by us, 0 of it running",
    ];
    shows(env!("CARGO_BIN_EXE_limits"), &lines);
}

#[test]
fn fair_share_serves_the_small_customer_in_turn() {
    let lines = ["Ann's last: ", "in this order: a museum, Ann, a museum, Ann, a museum, Ann"];
    shows(env!("CARGO_BIN_EXE_fair_share"), &lines);
}

#[test]
fn after_jobs_runs_in_order_and_cancels_what_cannot_be_done() {
    let lines = [
        "lay out: it waits for ",
        "print: cancelled: job translate, which it depends on, failed",
        "then: lay out, tidy up",
    ];
    shows(env!("CARGO_BIN_EXE_after_jobs"), &lines);
}

#[test]
fn timers_fire_and_answer_what_they_did_and_will_do() {
    let lines = [
        "steadily: report of month 5",
        "nightly comes 3 times, first at ",
        "reminder: paused at ",
        "reminder: report of month 12",
        "a backfill would enqueue 3 jobs",
        "3 jobs so far",
        "slot 2026-01-03T01:00:00.000000Z has its job",
        "slot 2026-01-02T01:00:00.000000Z has its job",
        "nightly at 2030-03-30T01:00:00.000000Z, clocks: None",
        "nightly at 2030-03-31T01:00:00.000000Z, clocks: Some(Shifted)",
        "nightly at 2030-04-01T00:00:00.000000Z, clocks: None",
        "steadily very often: ",
        "migrated to release 7",
        "migrated to release 7",
    ];
    shows(env!("CARGO_BIN_EXE_timers"), &lines);
}

/// The output of the stars example, on any store.
const STARS: [&str; 10] = [
    "two instances of a service have one store",
    "the first is killed (kill -9) while it builds ",
    "the other one began these again: ",
    "4 stars were watched by looking again and again: all came",
    "4 stars were watched by having the answer held (Prefer: wait): all came",
    "4 stars were watched by being told each change (server-sent events): all came",
    "every place to watch answered 200 until its star was there, and then 303: true",
    "stars asked for: 12; stars in the sky: 12",
    "204 when the watcher of Sol removes it",
    "404 from then on",
];

#[test]
fn stars_are_made_once_although_an_instance_is_killed() {
    shows(env!("CARGO_BIN_EXE_stars"), &STARS);
}

#[test]
fn stars_are_made_once_on_a_database_as_well() {
    let server = own_postgres::Server::start_hasty().expect("a test has a PostgreSQL of its own");
    // The second run must not see what the first one left behind.
    for _ in 0..2 {
        shows_with(env!("CARGO_BIN_EXE_stars"), &[&server.url()], &STARS);
    }
}
