//! Looking for what must never be. All of it is seen at one moment, in stretches: however large a table is, no statement
//! takes long, and nothing is repaired.

use std::collections::BTreeMap;

use tenure_core::StateName;
use tenure_store::{Fault, Finding};

use super::database;
use super::probes::{COUNTS, PROBES, Probe, TALLIES};
use crate::Options;
use crate::connection::Connection;
use crate::fault::Effect;
use crate::query::Query;
use crate::{repair, schema};

/// Pages of a table that one statement looks at: 32 MiB.
const STRETCH: i64 = 4096;
/// So many findings of one sort are told.
const MOST: usize = 20;
/// Where the sum of all places of a lane is kept.
const ALL: usize = StateName::ALL.len();

const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
const PAGES: &str = "SELECT pg_relation_size(c.oid) / current_setting('block_size')::bigint FROM pg_class c
     WHERE c.relnamespace = to_regnamespace(current_schema()::text) AND c.relname = $1";

const CORRECT: &str = "INSERT INTO tally (lane, scheduled, queued, blocked, running, succeeded, failed, cancelled)
     VALUES ($1, ($2::int[])[1], ($2::int[])[2], ($2::int[])[3], ($2::int[])[4], ($2::int[])[5], ($2::int[])[6],
         ($2::int[])[7])";

/// Jobs of a lane in each state, and of all of them.
type Places = [i64; ALL + 1];

/// Looks for what must never be; answers what it found, a bounded number of each sort.
///
/// # Errors
/// A URL that is not understood, a server that cannot be used, or a schema that is not up to date.
pub async fn check(url: &str, options: Options) -> Result<Vec<Finding>, Fault> {
    let database = database(url, options)?;
    let connection = &mut database.connect(None).await?;
    schema::demand_current(connection, &database.options.schema).await?;
    connection.in_transaction = true;
    connection.run(&[Query::new(BEGIN)], Effect::None).await?;
    let mut findings = repair::findings(connection, MOST).await?;
    findings.extend(tallies(connection).await?);
    for probe in PROBES {
        findings.extend(ask(connection, probe).await?);
    }
    connection.run(&[Query::new("ROLLBACK")], Effect::None).await?;
    connection.in_transaction = false;
    Ok(findings)
}

/// Asks each stretch of a table until there are enough findings.
async fn ask(connection: &mut Connection, probe: &Probe) -> Result<Vec<Finding>, Fault> {
    let mut findings = Vec::new();
    for stretch in stretches(connection, probe.table).await? {
        let left = i64::try_from(MOST - findings.len()).unwrap_or(0);
        for row in connection.read(of(probe.sql, stretch).with(left)).await? {
            findings.push(Finding { about: probe.about.to_owned(), what: row.get(0) });
        }
        if findings.len() >= MOST {
            findings.push(Finding {
                about: probe.about.to_owned(),
                what: "there may be more findings".to_owned(),
            });
            break;
        }
    }
    Ok(findings)
}

/// A lane with what its tallies say and what was counted.
struct Counted {
    lane: i32,
    name: String,
    places: Places,
    told: [i64; ALL],
}

/// Counts all jobs. Answers the lanes, and the findings about jobs in none of them.
async fn count(connection: &mut Connection) -> Result<(Vec<Counted>, Vec<Finding>), Fault> {
    let mut counted: BTreeMap<i32, Places> = BTreeMap::new();
    for (table, sql) in COUNTS {
        for stretch in stretches(connection, table).await? {
            for row in connection.read(of(sql, stretch)).await? {
                let place = usize::try_from(row.get::<_, i32>(1)).unwrap_or(ALL + 1);
                // A job in an unknown state is reported as unreadable.
                if let Some(jobs) = counted.entry(row.get(0)).or_default().get_mut(place) {
                    *jobs += row.get::<_, i64>(2);
                }
            }
        }
    }
    let mut lanes = Vec::new();
    for row in connection.read(Query::new(TALLIES)).await? {
        let lane = row.get(0);
        let mut told = [0; ALL];
        for (column, told) in (2..).zip(&mut told) {
            *told = row.get::<_, Option<i64>>(column).unwrap_or(0);
        }
        let places = counted.remove(&lane).unwrap_or_default();
        lanes.push(Counted { lane, name: row.get(1), places, told });
    }
    // Rests of grants may name a lane that went with its last job.
    counted.retain(|_, places| places.iter().any(|jobs| *jobs > 0));
    let lost = counted.into_iter().map(|(lane, places)| {
        let jobs = places.iter().copied().max().unwrap_or(0);
        let what = format!("up to {jobs} jobs are in lane {lane}, which does not exist");
        Finding { about: "lanes".to_owned(), what }
    });
    Ok((lanes, lost.collect()))
}

/// Compares what was counted with the tallies.
async fn tallies(connection: &mut Connection) -> Result<Vec<Finding>, Fault> {
    let (lanes, lost) = count(connection).await?;
    let compared = lanes.iter().flat_map(|lane| compare(&lane.name, &lane.places, &lane.told));
    let mut findings: Vec<Finding> = compared.chain(lost).collect();
    findings.truncate(10 * MOST);
    Ok(findings)
}

/// Corrects the tallies by what was counted, at one moment: what others add meanwhile is not changed.
pub(crate) async fn recount(connection: &mut Connection) -> Result<(), Fault> {
    connection.in_transaction = true;
    connection.run(&[Query::new("BEGIN ISOLATION LEVEL REPEATABLE READ")], Effect::None).await?;
    let (lanes, _) = count(connection).await?;
    let mut queries = Vec::new();
    for Counted { lane, places, told, .. } in lanes {
        let missing: Vec<i32> = places
            .iter()
            .zip(told)
            .map(|(counted, told)| i32::try_from(counted - told).unwrap_or(0))
            .collect();
        if missing.iter().any(|jobs| *jobs != 0) {
            queries.push(Query::new(CORRECT).with(lane).with(missing));
        }
    }
    queries.push(Query::new("COMMIT"));
    connection.run(&queries, Effect::Commits).await?;
    connection.in_transaction = false;
    Ok(())
}

/// What is wrong with the numbers of one lane.
fn compare(lane: &str, counted: &Places, told: &[i64; ALL]) -> Vec<Finding> {
    let finding = |about: &str, what| Finding { about: about.to_owned(), what };
    let mut findings = Vec::new();
    for ((state, counted), told) in StateName::ALL.into_iter().zip(counted).zip(told) {
        if counted != told {
            let what = format!("{lane}: {counted} jobs are {state}, but the counter has {told}");
            findings.push(finding("tally", what));
        }
    }
    let (standing, all) = (counted[..ALL].iter().sum::<i64>(), counted[ALL]);
    if standing != all {
        let what = format!("{lane}: {all} jobs exist, but {standing} have a place in a queue");
        findings.push(finding("jobs", what));
    }
    findings
}

/// The stretches of a table, each from a page up to another.
async fn stretches(connection: &mut Connection, table: &'static str) -> Result<Vec<(i64, i64)>, Fault> {
    let pages = connection.read(Query::new(PAGES).with(table)).await?;
    let pages = pages.first().and_then(|row| row.get::<_, Option<i64>>(0)).unwrap_or(0);
    let count = usize::try_from(pages / STRETCH + 1).unwrap_or(1);
    let starts = (0..).map(|number| number * STRETCH).take(count);
    Ok(starts.map(|start| (start, start + STRETCH)).collect())
}

fn of(sql: &'static str, (from, to): (i64, i64)) -> Query {
    Query::new(sql).with(format!("({from},0)")).with(format!("({to},0)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_agrees_is_no_finding_and_what_does_not_is_told_by_state() {
        let told = [0, 2, 0, 1, 0, 0, 0];
        assert_eq!(compare("send in mail", &[0, 2, 0, 1, 0, 0, 0, 3], &told), []);
        let findings = compare("send in mail", &[0, 1, 0, 1, 0, 0, 0, 3], &told);
        let words: Vec<&str> = findings.iter().map(|finding| finding.what.as_str()).collect();
        assert_eq!(
            words,
            [
                "send in mail: 1 jobs are queued, but the counter has 2",
                "send in mail: 3 jobs exist, but 2 have a place in a queue",
            ]
        );
    }
}
