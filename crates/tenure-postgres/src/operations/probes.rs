//! What must never be, as statements that look at a stretch of one table: from page `$1` up to page `$2`, at most `$3`
//! findings, each a sentence. What time alone brings, and what waits for whoever looks for jobs next, is not wrong.

/// A question to each stretch of a table.
pub(super) struct Probe {
    pub about: &'static str,
    pub table: &'static str,
    pub sql: &'static str,
}

/// How many jobs of each lane stand somewhere: what the tallies shall say. Each answers lane, place in the tally, count;
/// the place 7 is what all of them together shall be.
pub(super) const COUNTS: [(&str, &str); 7] = [
    (
        "later",
        "SELECT lane, 0, count(*) FROM later WHERE ctid >= $1::text::tid AND ctid < $2::text::tid GROUP BY lane",
    ),
    (
        "ready",
        "SELECT lane, 1, count(*) FROM ready WHERE ctid >= $1::text::tid AND ctid < $2::text::tid GROUP BY lane",
    ),
    (
        "keyed",
        "SELECT lane, 2, count(*) FROM keyed WHERE ctid >= $1::text::tid AND ctid < $2::text::tid AND at IN (2, 3, 4)
         GROUP BY lane",
    ),
    (
        "standing",
        "SELECT p.lane, p.place, count(*) FROM (
             SELECT s.lane, CASE WHEN EXISTS (SELECT FROM arrival a WHERE a.seq = s.seq AND a.what = 2) THEN 3
                 ELSE s.state + 2 END AS place
             FROM standing s WHERE s.ctid >= $1::text::tid AND s.ctid < $2::text::tid AND s.state > 0) p
         GROUP BY p.lane, p.place",
    ),
    (
        "granted",
        "SELECT lane, 3, sum(bit_count(seqs))::bigint FROM granted WHERE ctid >= $1::text::tid AND ctid < $2::text::tid
         GROUP BY lane",
    ),
    (
        "receipt",
        "SELECT lane, 4, sum(bit_count(seqs))::bigint FROM receipt WHERE ctid >= $1::text::tid AND ctid < $2::text::tid
         GROUP BY lane",
    ),
    (
        "job",
        "SELECT j.lane, 7, count(*) FROM job j WHERE j.ctid >= $1::text::tid AND j.ctid < $2::text::tid
             AND NOT EXISTS (SELECT FROM arrival a WHERE a.seq = j.seq AND a.what = 0) GROUP BY j.lane",
    ),
];

/// What the tallies say of each lane.
pub(super) const TALLIES: &str =
    "SELECT l.id, l.kind || ' in ' || l.queue, t.* FROM lane l LEFT JOIN LATERAL (
         SELECT sum(scheduled), sum(queued), sum(blocked), sum(running), sum(succeeded), sum(failed), sum(cancelled)
         FROM tally WHERE lane = l.id) t ON true ORDER BY l.id";

pub(super) const PROBES: &[Probe] = &[
    Probe {
        about: "line",
        table: "ready",
        sql: "SELECT 'job ' || r.seq || ' is in line and does not exist' FROM ready r
             WHERE r.ctid >= $1::text::tid AND r.ctid < $2::text::tid
                 AND NOT EXISTS (SELECT FROM job j WHERE j.lane = r.lane AND j.seq = r.seq) LIMIT $3",
    },
    Probe {
        about: "line",
        table: "ready",
        sql: "SELECT 'job ' || r.seq || ' is in line and does not wait' FROM ready r
             WHERE r.ctid >= $1::text::tid AND r.ctid < $2::text::tid
                 AND (EXISTS (SELECT FROM standing s WHERE s.seq = r.seq AND s.state > 0)
                     OR EXISTS (SELECT FROM granted g
                         WHERE g.lane = r.lane AND g.block = r.seq >> 8 AND has_bit(g.seqs, r.seq))
                     OR EXISTS (SELECT FROM receipt c
                         WHERE c.lane = r.lane AND c.block = r.seq >> 8 AND has_bit(c.seqs, r.seq))) LIMIT $3",
    },
    Probe {
        about: "diary",
        table: "later",
        sql: "SELECT 'job ' || r.seq || ' is in the diary and does not exist' FROM later r
             WHERE r.ctid >= $1::text::tid AND r.ctid < $2::text::tid
                 AND NOT EXISTS (SELECT FROM job j WHERE j.lane = r.lane AND j.seq = r.seq) LIMIT $3",
    },
    Probe {
        about: "diary",
        table: "later",
        sql: "SELECT 'job ' || r.seq || ' is in the diary and does not wait' FROM later r
             WHERE r.ctid >= $1::text::tid AND r.ctid < $2::text::tid
                 AND (EXISTS (SELECT FROM standing s WHERE s.seq = r.seq AND s.state > 0)
                     OR EXISTS (SELECT FROM granted g
                         WHERE g.lane = r.lane AND g.block = r.seq >> 8 AND has_bit(g.seqs, r.seq))
                     OR EXISTS (SELECT FROM receipt c
                         WHERE c.lane = r.lane AND c.block = r.seq >> 8 AND has_bit(c.seqs, r.seq))) LIMIT $3",
    },
    Probe {
        about: "standing",
        table: "standing",
        sql: "SELECT 'job ' || s.seq || ' has a standing and does not exist' FROM standing s
             WHERE s.ctid >= $1::text::tid AND s.ctid < $2::text::tid
                 AND NOT EXISTS (SELECT FROM job j WHERE j.lane = s.lane AND j.seq = s.seq) LIMIT $3",
    },
    Probe {
        about: "reservation",
        table: "standing",
        sql: "SELECT 'job ' || s.seq || ' runs, and nobody will ever take it from its holder' FROM standing s
             WHERE s.ctid >= $1::text::tid AND s.ctid < $2::text::tid AND s.state = 1 AND s.lapse IS NULL LIMIT $3",
    },
    Probe {
        about: "reservation",
        table: "granted",
        sql: "SELECT 'job ' || u.seq || ' runs, and does not exist' FROM granted g
             CROSS JOIN LATERAL each_seq(g.block, g.seqs) u (seq)
             WHERE g.ctid >= $1::text::tid AND g.ctid < $2::text::tid
                 AND NOT EXISTS (SELECT FROM job j WHERE j.lane = g.lane AND j.seq = u.seq) LIMIT $3",
    },
    Probe {
        about: "reservation",
        table: "granted",
        sql: "SELECT 'job ' || u.seq || ' is told of by a grant and by something else' FROM granted g
             CROSS JOIN LATERAL each_seq(g.block, g.seqs) u (seq)
             WHERE g.ctid >= $1::text::tid AND g.ctid < $2::text::tid
                 AND (EXISTS (SELECT FROM standing s WHERE s.seq = u.seq)
                     OR EXISTS (SELECT FROM granted o WHERE o.lane = g.lane AND o.block = g.block AND o.fence <> g.fence
                         AND has_bit(o.seqs, u.seq))
                     OR EXISTS (SELECT FROM receipt r
                         WHERE r.lane = g.lane AND r.block = g.block AND has_bit(r.seqs, u.seq))) LIMIT $3",
    },
    Probe {
        about: "receipt",
        table: "receipt",
        sql: "SELECT 'job ' || u.seq || ' has a receipt and does not exist' FROM receipt r
             CROSS JOIN LATERAL each_seq(r.block, r.seqs) u (seq)
             WHERE r.ctid >= $1::text::tid AND r.ctid < $2::text::tid
                 AND NOT EXISTS (SELECT FROM job j WHERE j.lane = r.lane AND j.seq = u.seq) LIMIT $3",
    },
    Probe {
        about: "receipt",
        table: "receipt",
        sql: "SELECT 'job ' || u.seq || ' is told of by a receipt and by something else' FROM receipt r
             CROSS JOIN LATERAL each_seq(r.block, r.seqs) u (seq)
             WHERE r.ctid >= $1::text::tid AND r.ctid < $2::text::tid
                 AND (EXISTS (SELECT FROM standing s WHERE s.seq = u.seq)
                     OR EXISTS (SELECT FROM receipt o WHERE o.lane = r.lane AND o.block = r.block AND o.ctid <> r.ctid
                         AND has_bit(o.seqs, u.seq))) LIMIT $3",
    },
    Probe {
        about: "keys",
        table: "keyed",
        sql: "SELECT 'job ' || k.seq || ' is kept with its keys and does not exist' FROM keyed k
             WHERE k.ctid >= $1::text::tid AND k.ctid < $2::text::tid
                 AND NOT EXISTS (SELECT FROM job j WHERE j.lane = k.lane AND j.seq = k.seq) LIMIT $3",
    },
    Probe {
        about: "keys",
        table: "turn",
        sql: "SELECT 'the turn of the ordering key ' || t.key || ' is with job ' || t.seq || ', which does not want it'
             FROM turn t WHERE t.ctid >= $1::text::tid AND t.ctid < $2::text::tid
                 AND NOT EXISTS (SELECT FROM keyed k WHERE k.seq = t.seq) LIMIT $3",
    },
    Probe {
        about: "keys",
        table: "dependency",
        sql: "SELECT 'job ' || d.waiter || ' waits for job ' || d.other || ' and is not kept with its keys'
             FROM dependency d WHERE d.ctid >= $1::text::tid AND d.ctid < $2::text::tid
                 AND NOT EXISTS (SELECT FROM keyed k WHERE k.seq = d.waiter)
                 AND NOT EXISTS (SELECT FROM arrival a WHERE a.seq = d.waiter) LIMIT $3",
    },
    Probe {
        about: "tags",
        table: "tag",
        sql: "SELECT 'the tag ' || t.tag || ' is of job ' || t.id || ', which does not exist' FROM tag t
             WHERE t.ctid >= $1::text::tid AND t.ctid < $2::text::tid
                 AND NOT EXISTS (SELECT FROM job j WHERE j.id = t.id) LIMIT $3",
    },
    Probe {
        about: "attempts",
        table: "attempt",
        sql: "SELECT 'there is an attempt at job ' || a.seq || ', which has no standing' FROM attempt a
             WHERE a.ctid >= $1::text::tid AND a.ctid < $2::text::tid
                 AND NOT EXISTS (SELECT FROM standing s WHERE s.seq = a.seq) LIMIT $3",
    },
    Probe {
        about: "leases",
        table: "lease",
        sql: "SELECT 'the lease ' || l.name || ' is held under no fence' FROM lease l
             WHERE l.ctid >= $1::text::tid AND l.ctid < $2::text::tid AND l.phase IS NOT NULL AND l.fence = 0 LIMIT $3",
    },
    Probe {
        about: "leases",
        table: "lease",
        sql: "SELECT 'the lease ' || l.name || ' will lapse unnoticed' FROM lease l
             WHERE l.ctid >= $1::text::tid AND l.ctid < $2::text::tid AND l.phase = 0 AND l.until IS NOT NULL
                 AND (l.look IS NULL OR l.look > l.until) LIMIT $3",
    },
    Probe {
        about: "leases",
        table: "lease_line",
        sql: "SELECT 'somebody waits for the lease with number ' || w.lease || ', which does not exist' FROM lease_line w
             WHERE w.ctid >= $1::text::tid AND w.ctid < $2::text::tid
                 AND NOT EXISTS (SELECT FROM lease l WHERE l.number = w.lease) LIMIT $3",
    },
    Probe {
        about: "ledger",
        table: "ledger",
        sql: "SELECT 'note ' || e.number || ' of the ledger is about a lease that does not exist' FROM ledger e
             WHERE e.ctid >= $1::text::tid AND e.ctid < $2::text::tid
                 AND NOT EXISTS (SELECT FROM lease l WHERE l.number = e.lease) LIMIT $3",
    },
    Probe {
        about: "ledger",
        table: "ledger",
        sql: "SELECT 'note ' || e.number || ' of the ledger has a greater fence than its lease' FROM ledger e
             WHERE e.ctid >= $1::text::tid AND e.ctid < $2::text::tid
                 AND EXISTS (SELECT FROM lease l WHERE l.number = e.lease AND l.fence < e.fence) LIMIT $3",
    },
    Probe {
        about: "timers",
        table: "timer",
        sql: "SELECT 'the timer ' || t.name || ' will never be looked at' FROM timer t
             WHERE t.ctid >= $1::text::tid AND t.ctid < $2::text::tid
                 AND NOT EXISTS (SELECT FROM timer_standing s WHERE s.name = t.name) LIMIT $3",
    },
    Probe {
        about: "timers",
        table: "timer_standing",
        sql: "SELECT 'something is kept of the timer ' || s.name || ', which does not exist' FROM timer_standing s
             WHERE s.ctid >= $1::text::tid AND s.ctid < $2::text::tid
                 AND NOT EXISTS (SELECT FROM timer t WHERE t.name = s.name) LIMIT $3",
    },
    Probe {
        about: "records",
        table: "record",
        sql: "SELECT 'the record ' || r.shelf || '/' || r.key || ' has version ' || r.version || ', which was never given'
             FROM record r WHERE r.ctid >= $1::text::tid AND r.ctid < $2::text::tid AND (r.version < 1
                 OR r.version > (SELECT last_value FROM record_version)) LIMIT $3",
    },
    Probe {
        about: "journals",
        table: "journal_entry",
        sql: "SELECT 'entry ' || e.number || ' of the journal ' || e.journal || ' has a number that was never given'
             FROM journal_entry e WHERE e.ctid >= $1::text::tid AND e.ctid < $2::text::tid AND (e.number < 1
                 OR e.number > (SELECT last_value FROM journal_entry_number_seq)) LIMIT $3",
    },
];
