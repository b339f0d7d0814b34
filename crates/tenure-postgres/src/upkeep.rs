//! What time has brought, seen at one look: an idle program asks this from time to time, and nothing else.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tenure_store::Fault;
use tokio_postgres::Row;

use crate::connection::Connection;
use crate::fault::unreadable;
use crate::link::Link;
use crate::query::Query;
use crate::time::{NOW, Shown, Time};
use crate::value;

/// Something that upkeep may have to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chore {
    /// Keys have to be asked, or what waited for them has come due.
    Keys,
    /// Jobs came due.
    Line,
    /// Holders of jobs fell silent.
    Lapsed,
    /// Finished jobs are over their time.
    Expired,
    /// Nothing is left of grants.
    Spent,
    /// Unique keys are free again.
    FreeKeys,
    /// Hosts are gone.
    GoneHosts,
    /// There are many rows of what is counted.
    Tally,
    /// Records, or entries of journals, have expired.
    Records,
    /// Leases are to be looked at, or places in their lines are over.
    Leases,
}

impl Chore {
    /// In the order in which [`LOOK`] answers, behind the instant.
    const ALL: [Self; 10] = [
        Self::Keys,
        Self::Line,
        Self::Lapsed,
        Self::Expired,
        Self::Spent,
        Self::FreeKeys,
        Self::GoneHosts,
        Self::Tally,
        Self::Records,
        Self::Leases,
    ];
}

/// What there is to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Due(Vec<Chore>);

impl Due {
    /// All there is: where nobody can tell, everything is tried.
    pub(crate) fn all() -> Self {
        Self(Chore::ALL.to_vec())
    }

    pub(crate) fn has(&self, chore: Chore) -> bool {
        self.0.contains(&chore)
    }

    /// Whether there is anything to do about anything but leases.
    pub(crate) fn is_about_jobs(&self) -> bool {
        self.0.iter().any(|chore| *chore != Chore::Leases)
    }
}

/// Each part asks for the first row there is in the order of an index, so that whatever the tables hold no more is read.
const LOOK: &str = concat!(
    "WITH n AS MATERIALIZED (SELECT coalesce($1::bigint, micros()) AS now),
     k AS MATERIALIZED (SELECT ",
    are_keys_asked!("'{}'::text[]", "'{}'::int[]"),
    " AS asked)
     SELECT (SELECT now FROM n), (SELECT asked FROM k),
     CASE WHEN (SELECT asked FROM k) THEN true ELSE
     (SELECT true FROM later WHERE due <= (SELECT now FROM n) AND NOT gated ORDER BY due, seq LIMIT 1) END,
     NOT EXISTS (SELECT FROM meta WHERE name = 'bar' AND value > (SELECT now FROM n))
         AND coalesce((SELECT true FROM granted WHERE until <= (SELECT now FROM n) AND bit_count(seqs) > 0
                 ORDER BY until LIMIT 1),
             (SELECT true FROM standing WHERE lapse <= (SELECT now FROM n) ORDER BY lapse LIMIT 1)),
     coalesce((SELECT true FROM receipt WHERE expires <= (SELECT now FROM n) ORDER BY expires LIMIT 1),
         (SELECT true FROM standing WHERE expires <= (SELECT now FROM n) AND state >= 2 ORDER BY expires LIMIT 1)),
     (SELECT true FROM granted WHERE until <= (SELECT now FROM n) AND bit_count(seqs) = 0 ORDER BY until LIMIT 1),
     (SELECT true FROM unique_key WHERE until <= (SELECT now FROM n) ORDER BY until LIMIT 1),
     (SELECT count(*) FILTER (WHERE until <= (SELECT now FROM n) - 86400000000) > 0 OR count(*) > 200
         FROM host WHERE until <= (SELECT now FROM n)),
     (SELECT count(*) > 100 + 2 * (SELECT count(*) FROM lane)
         FROM (SELECT FROM tally LIMIT 101 + 2 * (SELECT count(*) FROM lane)) t),
     coalesce((SELECT true FROM record WHERE expires <= (SELECT now FROM n) ORDER BY expires LIMIT 1),
         (SELECT true FROM journal_entry WHERE expires <= (SELECT now FROM n) ORDER BY expires LIMIT 1)),
     coalesce((SELECT true FROM lease WHERE look <= (SELECT now FROM n) ORDER BY look LIMIT 1),
         (SELECT true FROM lease_line WHERE until <= (SELECT now FROM n) ORDER BY until LIMIT 1))"
);

/// A look that takes longer says too little of the clock.
const PROMPT: Duration = Duration::from_millis(25);
/// After a look that takes longer the clock is read by itself, but not after so many that follow: a program that has nothing to do
/// would ask a slow server the more.
const SLOW_LOOKS: u32 = 2;

/// Looks; answers what there is to do, and what the clock has shown at this if that was told promptly.
pub(crate) async fn look(link: &mut Link) -> Result<(Due, Option<Shown>), Fault> {
    let (time, memory) = (link.database.time.clone(), Arc::clone(&link.memory));
    let connection = link.connection().await?;
    let (row, shown) = ask(connection, &time, LOOK).await?;
    let shown = if shown.answered.since(shown.sent) <= PROMPT {
        Some(shown)
    } else if let Some(left) = memory.slow_looks.load(Ordering::Relaxed).checked_sub(1) {
        memory.slow_looks.store(left, Ordering::Relaxed);
        None
    } else {
        let (_, shown) = ask(connection, &time, NOW).await?;
        memory.slow_looks.store(SLOW_LOOKS, Ordering::Relaxed);
        Some(shown)
    };
    if let Some(shown) = &shown {
        time.heard(shown.at);
    }
    Ok((due(&row), shown))
}

/// Asks something that is answered by a row with the instant before everything else.
async fn ask(connection: &mut Connection, time: &Time, sql: &'static str) -> Result<(Row, Shown), Fault> {
    let sent = time.clock().moment();
    let mut rows = connection.read(Query::new(sql).with(time.told())).await?;
    let answered = time.clock().moment();
    let row = rows.pop().ok_or_else(|| unreadable("no upkeep"))?;
    let at = value::instant(&row, 0)?;
    Ok((row, Shown { sent, at, answered }))
}

fn due(row: &Row) -> Due {
    let is_due = |number: usize| row.get::<_, Option<bool>>(number + 1) == Some(true);
    let due = Chore::ALL.iter().enumerate().filter(|(number, _)| is_due(*number)).map(|(_, chore)| *chore);
    Due(due.collect())
}

#[cfg(test)]
mod tests {
    use own_postgres::Server;
    use tenure_core::limits;

    use super::*;
    use crate::plans::{fresh, plan_of};

    #[tokio::test]
    async fn a_program_that_has_nothing_to_do_hears_the_time_of_its_server() {
        let server = Server::start_hasty().unwrap();
        let mut link = fresh(&server).await;
        let time = link.database.time.clone();
        let (hour, minute) = (Duration::from_secs(3600), Duration::from_secs(60));
        time.heard(time.now().after(hour));
        let (due, shown) = look(&mut link).await.unwrap();
        assert_eq!(due, Due::default());
        let shown = shown.expect("the first look tells it, however long it takes");
        assert!(time.now() < shown.at.after(minute) && time.now() >= shown.at.before(minute));
    }

    #[tokio::test]
    async fn a_server_that_answers_slowly_is_not_asked_for_its_clock_after_each_look() {
        let server = Server::start_hasty().unwrap();
        let mut link = fresh(&server).await;
        let slow = "CREATE OR REPLACE FUNCTION micros() RETURNS bigint LANGUAGE sql VOLATILE AS
             $$ SELECT 1::bigint FROM pg_sleep(0.05) $$";
        link.connection().await.unwrap().execute_text(slow).await.unwrap();
        let mut compared = Vec::new();
        for _ in 0..6 {
            compared.push(look(&mut link).await.unwrap().1.is_some());
        }
        assert_eq!(compared, [true, false, false, true, false, false]);
    }

    #[test]
    fn a_look_knows_how_long_and_how_many_lost_hosts_are_kept() {
        let (kept, most) = (limits::LOST_HOSTS_KEPT.as_micros(), limits::LOST_HOSTS);
        assert!(LOOK.contains(&format!("- {kept}) > 0 OR count(*) > {most}")));
    }

    #[tokio::test]
    async fn a_look_reads_no_table_but_those_that_are_kept_small() {
        let server = Server::start_hasty().unwrap();
        let plan = plan_of(&mut fresh(&server).await, 0, LOOK).await;
        let read_whole =
            plan.iter().filter_map(|line| line.split_once("Seq Scan on ")).map(|(_, table)| table);
        for table in read_whole {
            assert!(["tally", "lane", "host", "ending"].contains(&table), "{table}\n{}", plan.join("\n"));
        }
    }
}
