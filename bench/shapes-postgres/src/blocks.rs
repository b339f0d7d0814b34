//! I: nothing of its own for a job that goes the ordinary way, and yet each is found. A block is 256 jobs whose seqs lie
//! side by side; a grant and a receipt name those of one block, a bit each. A job that leaves that way gets a standing,
//! which no statement here has need of.

use crate::begun::{Address, job_of, line, put, taken};
use crate::shape::{Arg, Shape, statement};

const SCHEMA: &str = "
CREATE FUNCTION bit_of(seq bigint) RETURNS bit LANGUAGE sql IMMUTABLE
  AS $$ SELECT set_bit('0'::bit(256), (seq & 255)::int, 1) $$;
CREATE TABLE granted (fence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, block bigint NOT NULL,
  started bigint NOT NULL, until bigint NOT NULL, lane int NOT NULL, holder uuid NOT NULL, seqs bit(256) NOT NULL)
  WITH (fillfactor = 50);
CREATE INDEX granted_until ON granted (until);
CREATE INDEX granted_block ON granted (lane, block);
CREATE TABLE receipt (fence bigint NOT NULL, block bigint NOT NULL, started bigint NOT NULL, ended bigint NOT NULL,
  expires bigint, lane int NOT NULL, holder uuid NOT NULL, seqs bit(256) NOT NULL);
CREATE INDEX receipt_block ON receipt (lane, block);
CREATE INDEX receipt_expires ON receipt (expires) WHERE expires IS NOT NULL;";

pub fn blocks(name: &str, copy: bool) -> Shape {
    let claim = format!(
        "WITH {},
         g AS (INSERT INTO granted (lane, block, started, until, holder, seqs)
           SELECT $1, seq >> 8, $3, $4, $5, bit_or(bit_of(seq)) FROM taken GROUP BY seq >> 8 RETURNING fence, block)
         SELECT t.seq, j.id, g.fence, j.args, t.due FROM taken t
         CROSS JOIN LATERAL (SELECT fence FROM g WHERE block = t.seq >> 8 LIMIT 1) g {}",
        taken(Address::Seq, true),
        job_of(Address::Seq)
    );
    let settle = "WITH u AS MATERIALIZED (SELECT array_agg(fence) AS fences, array_agg(seqs::text) AS seqs FROM (
           SELECT fence, bit_or(bit_of(seq)) AS seqs FROM unnest($1::bigint[], $2::bigint[]) u(seq, fence)
           GROUP BY fence) g),
         whole AS (DELETE FROM granted WHERE ctid = ANY (ARRAY(SELECT ctid FROM granted
             WHERE fence = ANY (ARRAY(SELECT unnest(fences) FROM u))
               AND seqs = ((SELECT seqs FROM u)[array_position((SELECT fences FROM u), fence)])::bit(256)
             FOR UPDATE SKIP LOCKED))
           RETURNING fence, lane, block, started, holder, seqs),
         part AS (UPDATE granted
           SET seqs = seqs & ~((SELECT seqs FROM u)[array_position((SELECT fences FROM u), fence)])::bit(256)
           WHERE fence = ANY (ARRAY(SELECT unnest(fences) FROM u))
             AND seqs <> ((SELECT seqs FROM u)[array_position((SELECT fences FROM u), fence)])::bit(256)
             AND seqs & ((SELECT seqs FROM u)[array_position((SELECT fences FROM u), fence)])::bit(256)
               = ((SELECT seqs FROM u)[array_position((SELECT fences FROM u), fence)])::bit(256)
           RETURNING fence, lane, block, started, holder,
             ((SELECT seqs FROM u)[array_position((SELECT fences FROM u), fence)])::bit(256) AS seqs),
         done AS (SELECT * FROM whole UNION ALL SELECT * FROM part),
         kept AS (INSERT INTO receipt (fence, block, started, ended, expires, lane, holder, seqs)
           SELECT fence, block, started, $3, $4, lane, holder, seqs FROM done)
         SELECT coalesce(sum(bit_count(seqs)), 0)::bigint FROM done";
    Shape {
        name: name.into(),
        settings: String::new(),
        schema: line(Address::Seq, "int") + SCHEMA,
        tables: vec!["job", "ready", "granted", "receipt"],
        put: put(Address::Seq, copy, false, false),
        claim: statement(
            claim,
            &[Arg::Lane, Arg::Limit, Arg::Now, Arg::Until, Arg::Holder, Arg::MarkDue, Arg::MarkSeq],
        ),
        settle: statement(settle, &[Arg::Seqs, Arg::Fences, Arg::Now, Arg::Expires]),
        guarded: true,
    }
}
