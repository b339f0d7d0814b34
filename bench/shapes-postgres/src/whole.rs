//! A: one mutable row a job, its arguments in it.

use crate::shape::{Arg, Put, Shape, statement};

pub fn whole(name: &str, fillfactor: u32) -> Shape {
    Shape {
        name: name.into(),
        settings: String::new(),
        schema: format!(
            "CREATE TABLE job (seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, due bigint NOT NULL,
               created bigint NOT NULL, round bigint NOT NULL DEFAULT 0, fence bigint NOT NULL DEFAULT 0, until bigint,
               lapse bigint, started bigint, ended bigint, expires bigint, id uuid NOT NULL, holder uuid,
               lane int NOT NULL, attempt int NOT NULL DEFAULT 0, delivery int NOT NULL DEFAULT 0,
               priority smallint NOT NULL, state smallint NOT NULL DEFAULT 0, why smallint, terms text, failure text,
               cancel text, progress text, output bytea, args bytea NOT NULL) WITH (fillfactor = {fillfactor});
             CREATE UNIQUE INDEX job_id ON job (id);
             CREATE INDEX job_line ON job (lane, priority, round, due, seq) WHERE state = 0;
             CREATE INDEX job_lapse ON job (lapse) WHERE state = 1;
             CREATE INDEX job_expiry ON job (expires) WHERE state >= 2;"
        ),
        tables: vec!["job"],
        put: Put::Unnest(statement(
            "INSERT INTO job (id, lane, priority, due, created, args)
             SELECT u.id, $3, 0, $4, $4, u.args FROM unnest($1::uuid[], $2::bytea[]) u(id, args)",
            &[Arg::Ids, Arg::Args, Arg::Lane, Arg::Now],
        )),
        claim: statement(
            "UPDATE job SET state = 1, fence = fence + 1, attempt = attempt + 1, delivery = delivery + 1, until = $4,
                 lapse = $4, started = $3, holder = $5
             WHERE ctid = ANY (ARRAY(SELECT ctid FROM job
                 WHERE state = 0 AND lane = $1 AND (priority, round, due, seq) > (0, 0, $6, $7) AND due <= $3
                 ORDER BY priority, round, due, seq LIMIT $2 FOR UPDATE SKIP LOCKED))
             RETURNING seq, id, fence, args, due",
            &[Arg::Lane, Arg::Limit, Arg::Now, Arg::Until, Arg::Holder, Arg::MarkDue, Arg::MarkSeq],
        ),
        settle: statement(
            "UPDATE job SET state = 2, until = NULL, lapse = NULL, ended = $3, expires = $4
             WHERE seq = ANY ($1) AND fence = ANY ($2) AND state > 0 AND state < 2",
            &[Arg::Seqs, Arg::Fences, Arg::Now, Arg::Expires],
        ),
        guarded: true,
    }
}
