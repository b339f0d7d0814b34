//! The floor: one table, one index for the line, no id, no guard. What any queue has to pay.

use crate::shape::{Arg, Put, Shape, statement};

pub fn floor() -> Shape {
    Shape {
        name: "floor".into(),
        settings: String::new(),
        schema: "CREATE TABLE job (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, queue int NOT NULL DEFAULT 1,
                   state smallint NOT NULL DEFAULT 0, priority smallint NOT NULL DEFAULT 0,
                   attempt smallint NOT NULL DEFAULT 0, run_at timestamptz NOT NULL DEFAULT now(), lease timestamptz,
                   payload jsonb NOT NULL) WITH (fillfactor = 70);
                 CREATE INDEX job_line ON job (queue, priority, run_at, id) WHERE state = 0;"
            .into(),
        tables: vec!["job"],
        put: Put::Unnest(statement(
            "INSERT INTO job (payload) SELECT x::jsonb FROM unnest($1::text[]) x",
            &[Arg::ArgsAsText],
        )),
        claim: statement(
            "UPDATE job SET state = 1, attempt = attempt + 1, lease = now() + interval '1 minute'
             WHERE id = ANY (ARRAY(SELECT id FROM job WHERE state = 0 AND queue = $1
                 ORDER BY priority, run_at, id LIMIT $2 FOR UPDATE SKIP LOCKED))
             RETURNING id, NULL::uuid, 0::bigint, payload::text::bytea, 0::bigint",
            &[Arg::Lane, Arg::Limit],
        ),
        settle: statement("UPDATE job SET state = 2, lease = NULL WHERE id = ANY ($1)", &[Arg::Seqs]),
        guarded: false,
    }
}
