//! What a worker waits for finds its rows by an index, also by a plan that was made while the tables were empty.

use own_postgres::Server;

use super::{aside, claim, renew, succeed};
use crate::link::Link;
use crate::plans::{fresh, plan_of, vacuumed};
use crate::{hosts, keyed, rows, sheet, sweep, tend};

/// Tables that grow with the jobs that are kept or run.
const GROWING: [&str; 9] =
    ["granted", "receipt", "standing", "attempt", "job", "ready", "later", "keyed", "dependency"];

/// The table that a line of a plan is about, if that grows.
fn growing(line: &str) -> Option<&'static str> {
    let table = line.split_once(" on ").and_then(|(_, about)| about.split_whitespace().next())?;
    GROWING.into_iter().find(|growing| *growing == table)
}

#[tokio::test]
async fn no_statement_of_a_worker_reads_all_jobs_or_all_that_is_told_of_them() {
    let server = Server::start_hasty().unwrap();
    assert_reads_few(&mut fresh(&server).await).await;
    assert_reads_few(&mut vacuumed(&server).await).await;
}

/// Fails for a statement of a worker that reads a growing table, or an index from its beginning.
async fn assert_reads_few(link: &mut Link) {
    let statements = claim::STATEMENTS.into_iter().chain(succeed::STATEMENTS).chain(renew::STATEMENTS);
    let statements = statements.chain(rows::STATEMENTS).chain(sheet::STATEMENTS).chain(aside::STATEMENTS);
    let statements = statements
        .chain(sweep::STATEMENTS)
        .chain(tend::STATEMENTS)
        .chain([keyed::AROUND])
        .chain(keyed::NEEDS)
        .chain(keyed::WAITS)
        .chain(keyed::LIMITS)
        .chain(hosts::STATEMENTS);
    let mut looked_at = 0;
    for (number, sql) in statements.enumerate() {
        let plan = plan_of(link, number, sql).await;
        let whole = || format!("{sql}\n{}", plan.join("\n"));
        for (at, line) in plan.iter().enumerate() {
            let writes = ["Insert on", "Update on", "Delete on"].iter().any(|write| line.contains(write));
            if writes || growing(line).is_none() {
                continue;
            }
            looked_at += 1;
            assert!(line.contains("Index") || line.contains("Tid Scan"), "{line}\n{}", whole());
            // Or it reads the first of an index, and no more.
            let is_bounded = at > 0 && plan[at - 1].contains("Limit");
            let next = plan.get(at + 1).map_or("", String::as_str);
            assert!(
                is_bounded || next.contains("Index Cond") || next.contains("TID Cond"),
                "{line}\n{}",
                whole()
            );
        }
    }
    assert!(looked_at > 30, "{looked_at}");
}

/// What a claim passes without looking at it, its index passes, too: a condition that each entry is asked about would be no mark.
#[tokio::test]
async fn a_look_behind_a_mark_begins_there() {
    let server = Server::start_hasty().unwrap();
    assert_begins_behind_marks(&mut fresh(&server).await).await;
    assert_begins_behind_marks(&mut vacuumed(&server).await).await;
}

/// Fails for a claim that reads an index from before its mark.
async fn assert_begins_behind_marks(link: &mut Link) {
    for (number, sql) in claim::STATEMENTS.into_iter().chain(aside::STATEMENTS).enumerate() {
        let plan = plan_of(link, number, sql).await;
        let begins = |line: &String| {
            line.contains("Index Cond: ((lane = ") && line.contains("ROW(priority, round, due, seq)")
        };
        assert!(plan.iter().any(begins), "{sql}\n{}", plan.join("\n"));
    }
}
