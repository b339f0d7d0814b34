//! G and H: a claim writes nothing for a single job. Who holds it is told by the grant that names it.

use crate::begun::{Address, GRANT, GRANTED, job_of, line, put, taken};
use crate::shape::{Arg, Shape, statement};

const CLAIM: [Arg; 7] =
    [Arg::Lane, Arg::Limit, Arg::Now, Arg::Until, Arg::Holder, Arg::MarkDue, Arg::MarkSeq];

/// G: a job gets a standing when it ends.
pub fn granted(name: &str, address: Address, copy: bool) -> Shape {
    let claim = format!(
        "WITH {}, {GRANT},
         again AS (UPDATE standing s SET fence = (SELECT fence FROM g), due = NULL, attempt = s.attempt + 1,
             delivery = s.delivery + 1, state = 1, why = NULL, progress = NULL
           WHERE s.seq = ANY (ARRAY(SELECT seq FROM taken WHERE begun)))
         SELECT t.seq, j.id, g.fence, j.args, t.due FROM taken t CROSS JOIN g {}",
        taken(address, true),
        job_of(address)
    );
    let settle =
        "WITH g AS MATERIALIZED (SELECT fence FROM granted WHERE fence = $5 AND is_open FOR NO KEY UPDATE),
         again AS (UPDATE standing s SET state = 2, lapse = NULL, ended = $3, expires = $4
           WHERE s.seq = ANY ($1) AND s.fence = (SELECT fence FROM g) AND s.state > 0 AND s.state < 2
           RETURNING s.seq),
         first AS (INSERT INTO standing (seq, fence, ended, expires, lane, attempt, delivery, state)
           SELECT u.seq, g.fence, $3, $4, $2, 1, 1, 2 FROM g CROSS JOIN unnest($1::bigint[]) u(seq)
           WHERE (SELECT true FROM standing s WHERE s.seq = u.seq) IS NULL RETURNING seq),
         done AS (SELECT seq FROM first UNION ALL SELECT seq FROM again),
         closed AS (UPDATE granted SET is_open = false WHERE fence = $5),
         kept AS (INSERT INTO ended SELECT $4, array_agg(seq) FROM done HAVING count(*) > 0)
         SELECT count(*) FROM done";
    Shape {
        name: name.into(),
        settings: String::new(),
        schema: line(address, "int")
            + "CREATE TABLE standing (seq bigint PRIMARY KEY, fence bigint NOT NULL, due bigint, lapse bigint,
                 lane int NOT NULL, attempt int NOT NULL, delivery int NOT NULL, why smallint, state smallint NOT NULL,
                 ended bigint, expires bigint, failure text, cancel text, progress text, place text, output bytea);
               CREATE INDEX standing_lapse ON standing (lapse) WHERE lapse IS NOT NULL;"
            + GRANTED,
        tables: vec!["job", "ready", "standing", "granted", "ended"],
        put: put(address, copy, false, false),
        claim: statement(claim, &CLAIM),
        settle: statement(settle, &[Arg::Seqs, Arg::Lane, Arg::Now, Arg::Expires, Arg::Fence]),
        guarded: true,
    }
}

/// H: not even then: a receipt names all that ended together.
pub fn receipts(name: &str, address: Address, copy: bool) -> Shape {
    let claim = format!(
        "WITH {}, {GRANT} SELECT t.seq, j.id, g.fence, j.args, t.due FROM taken t CROSS JOIN g {}",
        taken(address, true),
        job_of(address)
    );
    Shape {
        name: name.into(),
        settings: String::new(),
        schema: line(address, "int") + GRANTED,
        tables: vec!["job", "ready", "granted", "ended"],
        put: put(address, copy, false, false),
        claim: statement(claim, &CLAIM),
        settle: statement(
            "WITH g AS (UPDATE granted SET is_open = false WHERE fence = $3 AND is_open RETURNING fence),
             kept AS (INSERT INTO ended SELECT $2, $1::bigint[] FROM g RETURNING cardinality(seqs) AS jobs)
             SELECT coalesce(sum(jobs), 0)::bigint FROM kept",
            &[Arg::Seqs, Arg::Expires, Arg::Fence],
        ),
        guarded: true,
    }
}
