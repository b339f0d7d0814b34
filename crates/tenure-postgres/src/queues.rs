//! The list of queues.

use std::collections::BTreeMap;

use tenure_core::{Timestamp, limits};
use tenure_store::{Fault, QueueInfo};
use tokio_postgres::Row;

use crate::link::Link;
use crate::query::Query;
use crate::value;

/// Rows of queues without their jobs. A removed queue is listed while it has jobs, which programs can add during the removal.
const QUEUES: &str = "SELECT q.name, q.paused, q.limit_to, q.terms FROM queue q
     WHERE NOT q.gone OR (SELECT coalesce(sum(coalesce(scheduled, 0) + coalesce(queued, 0) + coalesce(blocked, 0)
             + coalesce(running, 0) + coalesce(succeeded, 0) + coalesce(failed, 0) + coalesce(cancelled, 0)), 0) FROM tally
         WHERE lane = ANY (ARRAY(SELECT id FROM lane WHERE queue = q.name))) > 0
     ORDER BY q.name";
/// The oldest due job of each queue. The index has a lane's jobs by priority and round, so this hops from the head of one round
/// to that of the next: in all lanes the first, then the second and so on. Clients choose how many rounds there are, so it
/// stops after a head of each lane and a number of hops.
const OLDEST: &str = "WITH RECURSIVE head AS (
         SELECT l.id AS lane, l.queue, f.* FROM lane l CROSS JOIN LATERAL (
             SELECT priority, round, due, seq FROM ready WHERE lane = l.id
             ORDER BY priority, round, due, seq LIMIT 1) f
         UNION ALL
         SELECT h.lane, h.queue, f.* FROM head h CROSS JOIN LATERAL (
             SELECT priority, round, due, seq FROM ready
             WHERE lane = h.lane AND (priority, round) > (h.priority, h.round)
             ORDER BY priority, round, due, seq LIMIT 1) f)
     SELECT o.queue, o.due, j.created, coalesce($1::bigint, micros()) FROM (
         SELECT DISTINCT ON (queue) queue, lane, due, seq
         FROM (SELECT queue, lane, due, seq FROM head LIMIT (SELECT count(*) FROM lane) + $2::bigint) h
         ORDER BY queue, due, seq) o
     LEFT JOIN LATERAL (SELECT created FROM job WHERE lane = o.lane AND seq = o.seq LIMIT 1) j ON true";

/// Returns all queues by name.
pub(crate) async fn list(link: &mut Link) -> Result<Vec<QueueInfo>, Fault> {
    let rows = link.connection().await?.read(Query::new(QUEUES)).await?;
    let mut queues = rows.iter().map(info).collect::<Result<Vec<_>, _>>()?;
    let mut oldest = oldest_due(link).await?;
    queues.iter_mut().for_each(|queue| queue.oldest_due = oldest.remove(queue.name.as_str()));
    Ok(queues)
}

fn info(row: &Row) -> Result<QueueInfo, Fault> {
    let limit = value::maybe_json(row, 2)?.unwrap_or_default();
    let terms = value::maybe_json(row, 3)?.unwrap_or_default();
    Ok(QueueInfo { name: value::queue(row, 0)?, paused: row.get(1), oldest_due: None, limit, terms })
}

/// Returns since when the oldest due job of each queue has been due and in the queue. Finds a bounded number of jobs.
async fn oldest_due(link: &mut Link) -> Result<BTreeMap<String, Timestamp>, Fault> {
    let told = link.database.time.told();
    let read = Query::new(OLDEST).with(told).with(value::bound(limits::PAGE_EXAMINED));
    let mut oldest = BTreeMap::new();
    for row in link.connection().await?.read(read).await? {
        let (due, now) = (value::instant(&row, 1)?, value::instant(&row, 3)?);
        let created = value::maybe_instant(&row, 2)?;
        if due <= now {
            let since = created.map_or(due, |created| due.max(created)).min(now);
            oldest.insert(row.get(0), since);
        }
    }
    Ok(oldest)
}

#[cfg(test)]
mod tests {
    use own_postgres::Server;

    use super::*;
    use crate::plans::{fresh, most_rows};

    const LANES: i64 = 300;
    /// A kind in each of 300 queues, with a due job.
    const QUEUES_WITH_A_JOB: &str = "INSERT INTO queue (name) SELECT 'q' || n FROM generate_series(1, 300) n;
         INSERT INTO lane (queue, kind) SELECT 'q' || n, 'echo' FROM generate_series(1, 300) n;
         INSERT INTO ready (due, round, seq, lane, priority, begun) SELECT 1000000, 0, id, id, 0, false FROM lane";
    /// More jobs of one share key, each with a round of its own.
    const MANY_ROUNDS: &str = "INSERT INTO ready (due, round, seq, lane, priority, begun)
         SELECT 1000000 + n, n, 1000 + n, (SELECT min(id) FROM lane), 0, false FROM generate_series(1, 30000) n";
    /// Jobs in few rounds, in which those of later rounds are often due earlier.
    const FEW_ROUNDS: &str = "INSERT INTO ready (due, round, seq, lane, priority, begun)
         SELECT 2000000 + n * 7919 % 100003, n % 13, 1000 + n, id, n % 3, false
         FROM lane CROSS JOIN generate_series(1, 40) n WHERE id % 10 = 0";
    const LEAST: &str =
        "SELECT l.queue, min(r.due) FROM ready r JOIN lane l ON l.id = r.lane GROUP BY l.queue";

    #[tokio::test]
    async fn a_list_of_queues_reads_a_bounded_number_of_rounds() {
        let server = Server::start_hasty().unwrap();
        let mut link = fresh(&server).await;
        for sql in [QUEUES_WITH_A_JOB, MANY_ROUNDS] {
            link.connection().await.unwrap().execute_text(sql).await.unwrap();
        }
        let rows = most_rows(&mut link, 0, OLDEST, "NULL, 10000").await;
        let most = LANES + value::bound(limits::PAGE_EXAMINED);
        assert!((10_000.0..=most as f64 * 1.1).contains(&rows), "{rows} rows");
        let queues = list(&mut link).await.unwrap();
        let due =
            queues.iter().filter_map(|queue| queue.oldest_due).filter(|due| due.as_micros() == 1_000_000);
        assert_eq!((queues.len(), due.count()), (300, 300));
    }

    #[tokio::test]
    async fn the_oldest_job_of_a_queue_is_found_in_any_of_its_rounds() {
        let server = Server::start_hasty().unwrap();
        let mut link = fresh(&server).await;
        let connection = link.connection().await.unwrap();
        for sql in [QUEUES_WITH_A_JOB, "DELETE FROM ready", FEW_ROUNDS] {
            connection.execute_text(sql).await.unwrap();
        }
        let least = connection.read(Query::new(LEAST)).await.unwrap();
        let least: BTreeMap<String, i64> = least.iter().map(|row| (row.get(0), row.get(1))).collect();
        let found = oldest_due(&mut link).await.unwrap();
        let found: BTreeMap<String, i64> =
            found.into_iter().map(|(queue, due)| (queue, due.as_micros())).collect();
        assert_eq!(least.len(), 30);
        assert_eq!(found, least);
    }
}
