//! What a database keeps twice has to agree with itself.

#![allow(dead_code, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use tokio_postgres::NoTls;

/// Each of these statements finds what contradicts something else.
const CONTRADICTIONS: &[(&str, &str)] = &[
    ("a job with two places", "SELECT seq FROM placed GROUP BY seq HAVING count(*) > 1"),
    (
        "a waiting job without a place, or a place of another",
        "SELECT seq FROM seen WHERE (state = 0) <> (seq IN (SELECT seq FROM placed))",
    ),
    ("a place of no job", "SELECT seq FROM placed WHERE seq NOT IN (SELECT seq FROM job)"),
    (
        "a place that is not the job's",
        "SELECT p.seq FROM placed p JOIN seen j USING (seq)
         WHERE p.lane <> j.lane OR p.priority <> j.priority OR p.due <> j.due OR p.begun <> j.begun",
    ),
    ("a standing in another lane", "SELECT seq FROM job j JOIN standing s USING (seq) WHERE j.lane <> s.lane"),
    (
        "a counter that counts wrong",
        "SELECT l.id::bigint FROM lane l LEFT JOIN (SELECT lane, sum(scheduled) scheduled, sum(queued) queued,
             sum(running) running, sum(succeeded) succeeded, sum(failed) failed, sum(cancelled) cancelled
             FROM tally GROUP BY lane) t ON t.lane = l.id
         WHERE coalesce(t.queued, 0) <> (SELECT count(*) FROM ready WHERE lane = l.id)
             OR coalesce(t.scheduled, 0) <> (SELECT count(*) FROM later WHERE lane = l.id)
             OR coalesce(t.running, 0) <> (SELECT count(*) FROM seen WHERE lane = l.id AND state = 1)
             OR coalesce(t.succeeded, 0) <> (SELECT count(*) FROM seen WHERE lane = l.id AND state = 2)
             OR coalesce(t.failed, 0) <> (SELECT count(*) FROM seen WHERE lane = l.id AND state = 3)
             OR coalesce(t.cancelled, 0) <> (SELECT count(*) FROM seen WHERE lane = l.id AND state = 4)",
    ),
    (
        "a job that is told of twice",
        "SELECT seq FROM (SELECT seq FROM standing UNION ALL SELECT seq FROM in_grant UNION ALL SELECT seq FROM in_receipt) t
         GROUP BY seq HAVING count(*) > 1",
    ),
    (
        "something kept of a job that is gone",
        "SELECT seq FROM (SELECT seq FROM standing UNION SELECT seq FROM in_grant UNION SELECT seq FROM in_receipt
             UNION SELECT seq FROM attempt UNION SELECT seq FROM log
             UNION SELECT seq FROM tag UNION SELECT seq FROM trouble
             UNION SELECT seq FROM unique_key WHERE until IS NULL) k
         WHERE seq NOT IN (SELECT seq FROM job)",
    ),
    (
        "a running job that nothing will take back",
        "SELECT seq FROM standing WHERE state = 1 AND (lapse IS NULL OR until IS NULL OR holder IS NULL)",
    ),
    ("a job that runs twice", "SELECT seq FROM running GROUP BY seq HAVING count(*) > 1"),
    ("a lapse of a job that does not run", "SELECT seq FROM standing WHERE state <> 1 AND lapse IS NOT NULL"),
    (
        "trouble that is not told, or is over",
        "SELECT seq FROM standing s FULL JOIN trouble t USING (seq, lane, state)
         WHERE (s.state IN (3, 4)) IS DISTINCT FROM (t.state IS NOT NULL) AND coalesce(s.state, 3) IN (3, 4)",
    ),
];

const BESIDE: &str = "
    CREATE TEMP VIEW in_grant AS SELECT u.seq, g.lane FROM granted g CROSS JOIN LATERAL each_seq(g.block, g.seqs) u (seq);
    CREATE TEMP VIEW in_receipt AS
        SELECT u.seq, r.lane FROM receipt r CROSS JOIN LATERAL each_seq(r.block, r.seqs) u (seq);
    CREATE TEMP VIEW seen AS SELECT j.seq, j.lane, j.priority, coalesce(s.due, j.due, j.created) AS due,
        s.seq IS NOT NULL AS begun,
        CASE WHEN s.seq IS NOT NULL THEN s.state WHEN g.seq IS NOT NULL THEN 1 WHEN r.seq IS NOT NULL THEN 2 ELSE 0 END AS state
        FROM job j LEFT JOIN standing s USING (seq) LEFT JOIN in_grant g ON g.seq = j.seq AND g.lane = j.lane
        LEFT JOIN in_receipt r ON r.seq = j.seq AND r.lane = j.lane;
    CREATE TEMP VIEW placed AS SELECT lane, priority, due, seq, begun FROM ready
        UNION ALL SELECT lane, priority, due, seq, begun FROM later;";

/// Whether the default schema of this database agrees with itself.
pub async fn assert_agrees(url: &str) {
    assert_schema_agrees(url, "tenure").await;
}

/// Whether this schema agrees with itself.
pub async fn assert_schema_agrees(url: &str, schema: &str) {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&format!("SET search_path = {schema}, pg_temp")).await.unwrap();
    let row = client
        .query_one(
            "SELECT deadlocks, xact_rollback FROM pg_stat_database WHERE datname = current_database()",
            &[],
        )
        .await
        .unwrap();
    println!("{} deadlocks, {} rollbacks", row.get::<_, i64>(0), row.get::<_, i64>(1));
    client.batch_execute(BESIDE).await.unwrap();
    for (what, sql) in CONTRADICTIONS {
        let rows = client.query(*sql, &[]).await.unwrap_or_else(|error| panic!("{what}: {error:?}"));
        let found: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        assert!(found.is_empty(), "{what}: {found:?}");
    }
}
