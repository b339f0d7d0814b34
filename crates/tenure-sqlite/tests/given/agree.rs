//! What a file keeps twice has to agree with itself.

#![allow(dead_code, clippy::unwrap_used)]

use rusqlite::Connection;

/// Whether it does.
pub fn assert_agrees(conn: &Connection) {
    let verdict: String = conn.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
    conn.execute_batch(BESIDE).unwrap();
    for (what, sql) in CONTRADICTIONS.iter().chain(CONTRADICTIONS_OF_KEYS) {
        let found: Vec<i64> =
            conn.prepare(sql).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert!(found.is_empty(), "{what}: {found:?}");
    }
}

/// What is derived from the jobs' own rows, to be compared with.
const BESIDE: &str = "
    CREATE TEMP VIEW seen AS SELECT j.seq, j.lane, j.priority, ifnull(s.due, j.due) AS due, s.seq IS NOT NULL AS begun,
        ifnull(s.state, 0) AS state, s.limit_id,
        j.terms ->> '$.ordering.key' AS ordering, j.terms ->> '$.limit.key' AS limited
        FROM job j LEFT JOIN standing s USING (seq);
    CREATE TEMP VIEW rooms AS SELECT l.id, r.value ->> 0 AS lane, r.value ->> 1 AS queued, r.value ->> 2 AS blocked,
        r.value ->> 3 AS gone, r.value -> 4 AS last_gone, r.value -> 5 AS last_queued,
        iif(l.set_to IS NULL, l.said, l.set_to ->> '$.most') AS most, l.set_to ->> '$.rate' AS rate, l.running
        FROM limit_key l, json_each(l.lanes) r;
    CREATE TEMP VIEW lined AS SELECT b.*, CASE
            WHEN (b.priority, b.round, b.due, b.seq) <=
                (last_gone ->> 0, last_gone ->> 1, last_gone ->> 2, last_gone ->> 3) THEN 'gone'
            WHEN (b.priority, b.round, b.due, b.seq) <=
                (last_queued ->> 0, last_queued ->> 1, last_queued ->> 2, last_queued ->> 3) THEN 'queued'
            ELSE 'blocked' END AS part
        FROM limit_line b JOIN rooms r ON (r.id, r.lane) = (b.limit_id, b.lane);
    CREATE TEMP VIEW held_back AS SELECT * FROM lined WHERE part = 'blocked';
    CREATE TEMP VIEW in_chain AS SELECT m.* FROM chained m JOIN chain c ON c.id = m.chain WHERE m.seq > c.passed;
    CREATE TEMP VIEW placed AS SELECT lane, priority, due, seq, begun FROM ready
        UNION ALL SELECT lane, priority, due, seq, begun FROM later
        UNION ALL SELECT lane, priority, due, seq, begun FROM held_back;
    CREATE TEMP VIEW held_up AS SELECT seq FROM in_chain UNION SELECT seq FROM dependency;";

/// Each of these statements finds what contradicts something else.
const CONTRADICTIONS: &[(&str, &str)] = &[
    ("a job with two places", "SELECT seq FROM placed GROUP BY seq HAVING count(*) > 1"),
    (
        "a waiting job without a place, or a place of another",
        "SELECT seq FROM seen WHERE (state = 0) <> (seq IN (SELECT seq FROM placed UNION ALL SELECT seq FROM held_up))",
    ),
    (
        "a place that is not the job's",
        "SELECT p.seq FROM placed p JOIN seen j USING (seq)
         WHERE p.lane <> j.lane OR p.priority <> j.priority OR p.due <> j.due OR p.begun <> j.begun",
    ),
    (
        "a standing in another lane",
        "SELECT seq FROM job j JOIN standing s USING (seq) WHERE j.lane <> s.lane",
    ),
    (
        "a counter that counts wrong",
        "SELECT l.id FROM lane l WHERE
             l.queued <> (SELECT count(*) FROM ready WHERE lane = l.id)
             OR l.scheduled <> (SELECT count(*) FROM later WHERE lane = l.id)
             OR l.blocked <> (SELECT count(*) FROM held_back WHERE lane = l.id)
                 + (SELECT count(*) FROM held_up JOIN job USING (seq) WHERE lane = l.id)
             OR l.running <> (SELECT count(*) FROM standing WHERE lane = l.id AND state = 1)
             OR l.succeeded <> (SELECT count(*) FROM standing WHERE lane = l.id AND state = 2)
             OR l.failed <> (SELECT count(*) FROM standing WHERE lane = l.id AND state = 3)
             OR l.cancelled <> (SELECT count(*) FROM standing WHERE lane = l.id AND state = 4)",
    ),
    (
        "something kept of a job that is gone",
        "SELECT seq FROM (SELECT seq FROM standing UNION SELECT seq FROM attempt UNION SELECT seq FROM log
             UNION SELECT seq FROM tag UNION SELECT seq FROM unique_key WHERE until IS NULL
             UNION SELECT seq FROM stepped_aside UNION SELECT seq FROM fair_place UNION SELECT turn FROM chain
             WHERE turn IS NOT NULL)
         WHERE seq NOT IN (SELECT seq FROM job)",
    ),
    (
        "a key that is held by a job that has ended",
        "SELECT u.seq FROM unique_key u JOIN standing s USING (seq) WHERE u.until IS NULL AND s.state >= 2",
    ),
    ("a running job that never lapses", "SELECT seq FROM standing WHERE (state = 1) <> (lapse IS NOT NULL)"),
];

/// The same of what jobs share.
const CONTRADICTIONS_OF_KEYS: &[(&str, &str)] = &[
    ("a job that waits for its turn or for others in a place", "SELECT seq FROM placed INTERSECT SELECT seq FROM held_up"),
    (
        "a job that has not ended and is not once in its chain, or one that has and is",
        "SELECT j.seq FROM seen j LEFT JOIN chain c ON c.key = j.ordering
         WHERE (j.ordering IS NOT NULL AND j.state < 2) <> (ifnull(c.turn = j.seq, 0)
             + (SELECT count(*) FROM in_chain WHERE seq = j.seq AND chain = c.id)
             + (SELECT count(*) FROM stepped_aside WHERE seq = j.seq AND chain = c.id))",
    ),
    (
        "a chain that counts wrong, or is empty",
        "SELECT id FROM chain c WHERE waiting <> (SELECT count(*) FROM in_chain WHERE chain = c.id)
             OR aside <> (SELECT count(*) FROM stepped_aside WHERE chain = c.id)
             OR (turn IS NULL AND waiting = 0 AND aside = 0)",
    ),
    (
        "a line of nobody",
        "SELECT chain FROM chained WHERE chain NOT IN (SELECT id FROM chain)
         UNION SELECT limit_id FROM limit_line WHERE (limit_id, lane) NOT IN (SELECT id, lane FROM rooms)",
    ),
    (
        "more rows of those that have passed than are read ahead",
        "SELECT c.id FROM chain c WHERE (SELECT count(*) FROM chained WHERE chain = c.id) > c.waiting + 12
             OR (waiting = 0 AND passed > 0)",
    ),
    (
        "a free turn that somebody could take",
        "SELECT c.id FROM chain c WHERE turn IS NULL AND waiting > 0
             AND (SELECT gate FROM in_chain WHERE chain = c.id ORDER BY seq LIMIT 1) < 2",
    ),
    (
        "a place in a chain that is not the job's",
        "SELECT p.seq FROM in_chain p JOIN seen j USING (seq)
         WHERE p.lane <> j.lane OR p.priority <> j.priority OR p.due <> j.due OR p.begun <> j.begun
             OR (p.gate = 2) <> (p.seq IN (SELECT seq FROM dependency))",
    ),
    (
        "a running job of another limit",
        "SELECT j.seq FROM seen j LEFT JOIN limit_key l ON l.id = j.limit_id
         WHERE j.state = 1 AND j.limited IS NOT l.key",
    ),
    (
        "a queued job of another limit",
        "SELECT r.seq FROM ready r JOIN seen j USING (seq) LEFT JOIN limit_key l ON l.id = r.limit_id
         WHERE j.limited IS NOT l.key",
    ),
    (
        "a limit that counts wrong, or that nobody has need of",
        "SELECT id FROM limit_key l WHERE running <> (SELECT count(*) FROM standing WHERE state = 1 AND limit_id = l.id)
             OR named <> (SELECT count(*) FROM seen WHERE limited = l.key AND state < 2)
             OR (named = 0 AND set_to IS NULL)",
    ),
    ("a job without its limit", "SELECT seq FROM seen WHERE state < 2 AND limited IS NOT NULL AND limited NOT IN (SELECT key FROM limit_key)"),
    (
        "a limit whose jobs in line are others than it counts",
        "SELECT r.id FROM rooms r WHERE (queued, blocked, gone) <> (
             SELECT count(*) FILTER (WHERE part = 'queued'), count(*) FILTER (WHERE part = 'blocked'),
                 count(*) FILTER (WHERE part = 'gone')
             FROM lined WHERE (limit_id, lane) = (r.id, r.lane))",
    ),
    (
        "a queued job that stands in one of its two lines only",
        "SELECT seq FROM (SELECT limit_id, lane, priority, round, due, seq FROM ready WHERE limit_id IS NOT NULL
             EXCEPT SELECT limit_id, lane, priority, round, due, seq FROM lined WHERE part = 'queued')
         UNION SELECT seq FROM (SELECT limit_id, lane, priority, round, due, seq FROM lined WHERE part = 'queued'
             EXCEPT SELECT limit_id, lane, priority, round, due, seq FROM ready)",
    ),
    (
        "a limit that is not listed as it should be",
        "SELECT id FROM limit_key l WHERE blocks <> EXISTS (SELECT 1 FROM rooms r WHERE r.id = l.id AND r.blocked > 0)",
    ),
    (
        "a limit that lets in more or fewer than there is room for",
        "SELECT id FROM rooms WHERE
             queued > max(0, ifnull(most, queued + running) - running)
             OR (rate IS NULL AND queued < min(max(0, ifnull(most, 1 << 40) - running), queued + blocked))",
    ),
    (
        "a job that has ended and waits for others",
        "SELECT d.seq FROM dependency d LEFT JOIN seen j USING (seq) WHERE ifnull(j.state, 2) > 0",
    ),
    (
        "a job that is gone or has ended, and those that wait for it are not told",
        "SELECT d.on_seq FROM dependency d LEFT JOIN seen j ON j.seq = d.on_seq
         WHERE (ifnull(j.state, 2) >= 2) <> (d.on_seq IN (SELECT seq FROM awaited_end))",
    ),
    (
        "a job that has ended and keeps others, or one that has not and does not keep them",
        "SELECT seq FROM (SELECT j.seq AS seq, j.state, o.seq AS on_seq FROM seen j JOIN job t USING (seq)
             CROSS JOIN json_each(t.terms, '$.after.jobs') a JOIN job o ON o.id = unhex(a.value, '-') AND o.seq < j.seq) w
         WHERE (state < 2) <> ((on_seq, seq) IN (SELECT on_seq, seq FROM needed_by))
         UNION SELECT seq FROM needed_by WHERE seq NOT IN (SELECT seq FROM job)",
    ),
    (
        "news for which nobody waits",
        "SELECT seq FROM awaited_end WHERE seq NOT IN (SELECT on_seq FROM dependency)",
    ),
    (
        "a round of a job that is not in line there",
        "SELECT f.seq FROM fair_place f LEFT JOIN (SELECT seq, round FROM ready UNION ALL SELECT seq, round FROM held_back) p
         USING (seq) WHERE f.round IS NOT p.round",
    ),
    (
        "a place in a round that nobody knows of",
        "SELECT seq FROM (SELECT seq, round FROM ready UNION ALL SELECT seq, round FROM held_back)
         WHERE round > 0 AND seq NOT IN (SELECT seq FROM fair_place)",
    ),
    (
        "a share of another line",
        "SELECT f.seq FROM fair_place f JOIN job j USING (seq) JOIN lane l ON l.id = j.lane
         LEFT JOIN share s ON s.id = f.share
         WHERE (s.queue, s.priority, s.key) IS NOT (l.queue, j.priority, ifnull(j.terms ->> '$.share', ''))",
    ),
];
