//! F and its kin: a job written once, a narrow line while it waits, a standing from its first claim on.

use crate::shape::{Arg, Put, Shape, statement};

/// How a claim gets from a place in line to the job.
#[derive(Clone, Copy, PartialEq)]
pub enum Address {
    /// By the index on lane and seq, which listings want anyway.
    Seq,
    /// By the index on ids that has to be there anyway.
    Id,
    /// By where the row is; the line remembers it.
    Place,
}

/// The choices within F.
#[derive(Clone, Copy)]
pub struct Begun {
    /// What is alike for all jobs of a claim stands in one row; no index on what changes.
    pub grants: bool,
    pub address: Address,
    pub copy: bool,
    /// Numbers are taken a block at a time, so that both inserts read the same values.
    pub block: bool,
    /// Rows of the line are locked before they are deleted.
    pub locks: bool,
    pub settle_by_place: bool,
    pub fillfactor: u32,
    pub tally: bool,
}

pub const PLAIN: Begun = Begun {
    grants: true,
    address: Address::Seq,
    copy: false,
    block: false,
    locks: true,
    settle_by_place: false,
    fillfactor: 45,
    tally: false,
};

impl Begun {
    pub fn shape(&self, name: &str) -> Shape {
        Shape {
            name: name.into(),
            settings: String::new(),
            schema: self.schema(),
            tables: if self.grants {
                vec!["job", "ready", "standing", "granted", "ended"]
            } else {
                vec!["job", "ready", "standing"]
            },
            put: self.put(),
            claim: statement(
                self.claim(),
                &[Arg::Lane, Arg::Limit, Arg::Now, Arg::Until, Arg::Holder, Arg::MarkDue, Arg::MarkSeq],
            ),
            settle: self.settle(),
            guarded: true,
        }
    }

    fn schema(&self) -> String {
        let lane = "int";
        line(self.address, lane)
            + &(if self.grants {
                format!(
                    "CREATE TABLE standing (seq bigint PRIMARY KEY, fence bigint NOT NULL, due bigint, lapse bigint,
                       lane {lane} NOT NULL, attempt int NOT NULL, delivery int NOT NULL, why smallint,
                       state smallint NOT NULL, ended bigint, expires bigint, failure text, cancel text,
                       progress text, place text, output bytea) WITH (fillfactor = {});
                     CREATE INDEX standing_lapse ON standing (lapse) WHERE lapse IS NOT NULL;
                     {GRANTED}",
                    self.fillfactor
                )
            } else {
                format!(
                    "CREATE TABLE standing (seq bigint PRIMARY KEY, fence bigint NOT NULL, due bigint, until bigint,
                       lapse bigint, started bigint, ended bigint, expires bigint, holder uuid, lane {lane} NOT NULL,
                       attempt int NOT NULL, delivery int NOT NULL, state smallint NOT NULL, why smallint,
                       failure text, cancel text, progress text, place text, output bytea)
                       WITH (fillfactor = {});
                     CREATE INDEX standing_lapse ON standing (lapse) WHERE state = 1;
                     CREATE INDEX standing_expiry ON standing (expires) WHERE expires IS NOT NULL;",
                    self.fillfactor
                )
            })
            + if self.tally {
                "CREATE TABLE tally (lane int, queued int, running int, succeeded int);"
            } else {
                ""
            }
    }

    fn put(&self) -> Put {
        put(self.address, self.copy, self.block, self.tally)
    }

    fn claim(&self) -> String {
        let taken = taken(self.address, self.locks);
        let tally = if self.tally {
            ", tally AS (INSERT INTO tally SELECT $1, -count(*), count(*), 0 FROM taken)"
        } else {
            ""
        };
        let (places, place) = if self.settle_by_place {
            (" RETURNING seq, ctid AS place", " JOIN first f ON f.seq = t.seq")
        } else {
            ("", "")
        };
        let column = if self.settle_by_place { ", f.place" } else { "" };
        let job = job_of(self.address);
        if self.grants {
            return format!(
                "WITH {taken}, {GRANT},
                 first AS (INSERT INTO standing (seq, fence, lane, attempt, delivery, state)
                   SELECT t.seq, g.fence, $1, 1, 1, 1 FROM taken t CROSS JOIN g WHERE NOT t.begun{places}),
                 again AS (UPDATE standing s SET fence = (SELECT fence FROM g), due = NULL, attempt = s.attempt + 1,
                     delivery = s.delivery + 1, state = 1, why = NULL, progress = NULL
                   WHERE s.seq = ANY (ARRAY(SELECT seq FROM taken WHERE begun))){tally}
                 SELECT t.seq, j.id, g.fence, j.args, t.due{column} FROM taken t CROSS JOIN g {job}{place}"
            );
        }
        format!(
            "WITH {taken},
             first AS (INSERT INTO standing (seq, fence, due, until, lapse, started, holder, lane, attempt, delivery,
                 state)
               SELECT t.seq, 1, t.due, $4, $4, $3, $5, $1, 1, 1, 1 FROM taken t WHERE NOT t.begun{places}),
             again AS (UPDATE standing s SET fence = s.fence + 1, until = $4, lapse = $4, started = $3, holder = $5,
                 attempt = s.attempt + 1, delivery = s.delivery + 1, state = 1, why = NULL, progress = NULL
               WHERE s.seq = ANY (ARRAY(SELECT seq FROM taken WHERE begun))){tally}
             SELECT t.seq, j.id, 1::bigint, j.args, t.due{column} FROM taken t {job}{place}"
        )
    }

    fn settle(&self) -> crate::shape::Statement {
        let tally = if self.tally {
            ", tally AS (INSERT INTO tally SELECT 1, 0, -count(*), count(*) FROM done)"
        } else {
            ""
        };
        if !self.grants {
            return statement(
                "UPDATE standing SET state = 2, due = NULL, until = NULL, lapse = NULL, ended = $3, expires = $4
                 WHERE seq = ANY ($1) AND fence = ANY ($2) AND state > 0 AND state < 2",
                &[Arg::Seqs, Arg::Fences, Arg::Now, Arg::Expires],
            );
        }
        let mut takes = vec![Arg::Seqs, Arg::Now, Arg::Expires, Arg::Fence];
        let mut at = "";
        if self.settle_by_place {
            takes.push(Arg::Places);
            at = "ctid = ANY ($5::tid[]) AND ";
        }
        statement(
            format!(
                "WITH done AS (UPDATE standing SET state = 2, lapse = NULL, ended = $2, expires = $3
                   WHERE {at}seq = ANY ($1) AND fence = $4 AND state > 0 AND state < 2 RETURNING seq),
                 closed AS (UPDATE granted SET is_open = false WHERE fence = $4),
                 kept AS (INSERT INTO ended SELECT $3, array_agg(seq) FROM done HAVING count(*) > 0){tally}
                 SELECT count(*) FROM done"
            ),
            &takes,
        )
    }
}

/// Grants: what is alike for all jobs of one claim. Ended: which jobs to look at when their time is over.
pub const GRANTED: &str = "
CREATE TABLE granted (fence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, started bigint NOT NULL,
  until bigint NOT NULL, is_open boolean NOT NULL, holder uuid NOT NULL, seqs bigint[] NOT NULL)
  WITH (fillfactor = 50);
CREATE INDEX granted_until ON granted (until) WHERE is_open;
CREATE TABLE ended (expires bigint NOT NULL, seqs bigint[] NOT NULL);
CREATE INDEX ended_expires ON ended (expires);";

/// Makes the grant of what was taken.
pub const GRANT: &str = "g AS (INSERT INTO granted (started, until, is_open, holder, seqs)
   SELECT $3, $4, true, $5, array_agg(seq) FROM taken HAVING count(*) > 0 RETURNING fence)";

/// The tables of jobs and of the line.
pub fn line(address: Address, lane: &str) -> String {
    let (index, column) = match address {
        Address::Seq => ("CREATE INDEX job_lane ON job (lane, seq);", ""),
        Address::Id => ("", ", id uuid NOT NULL"),
        Address::Place => ("", ", at tid NOT NULL"),
    };
    format!(
        "CREATE SEQUENCE block;
         CREATE TABLE job (seq bigint GENERATED BY DEFAULT AS IDENTITY, created bigint NOT NULL, due bigint,
           id uuid NOT NULL, lane {lane} NOT NULL, priority smallint NOT NULL, terms text, args bytea NOT NULL);
         CREATE UNIQUE INDEX job_id ON job (id); {index}
         CREATE TABLE ready (due bigint NOT NULL, round bigint NOT NULL, seq bigint NOT NULL, lane {lane} NOT NULL,
           priority smallint NOT NULL, begun boolean NOT NULL{column}, limit_id bigint);
         CREATE INDEX ready_line ON ready (lane, priority, round, due, seq);"
    )
}

/// How jobs get into these tables.
pub fn put(address: Address, copy: bool, block: bool, tally: bool) -> Put {
    let (known, column) = match address {
        Address::Seq => ("", ""),
        Address::Id => (", id", ", id"),
        Address::Place => (", ctid", ", at"),
    };
    if copy {
        return Put::Copy {
            job: "COPY job (seq, created, id, lane, priority, args) FROM STDIN (FORMAT binary)".into(),
            ready: format!(
                "COPY ready (due, round, seq, lane, priority, begun{column}) FROM STDIN (FORMAT binary)"
            ),
        };
    }
    let takes = [Arg::Ids, Arg::Args, Arg::Lane, Arg::Now];
    let tally =
        if tally { "tally AS (INSERT INTO tally VALUES ($3, cardinality($1::uuid[]), 0, 0))," } else { "" };
    if block {
        return Put::Unnest(statement(
            format!(
                "WITH {tally} b AS MATERIALIZED (SELECT nextval('block') * 4096 AS first),
                 j AS (INSERT INTO job (seq, id, lane, priority, created, args)
                   SELECT b.first + u.nth, u.id, $3, 0, $4, u.args
                   FROM b CROSS JOIN unnest($1::uuid[], $2::bytea[]) WITH ORDINALITY u(id, args, nth))
                 INSERT INTO ready (due, round, seq, lane, priority, begun{column})
                 SELECT $4, 0, b.first + u.nth, $3, 0, false{known}
                 FROM b CROSS JOIN unnest($1::uuid[]) WITH ORDINALITY u(id, nth)"
            ),
            &takes,
        ));
    }
    Put::Unnest(statement(
        format!(
            "WITH {tally} j AS (INSERT INTO job (id, lane, priority, created, args)
               SELECT u.id, $3, 0, $4, u.args FROM unnest($1::uuid[], $2::bytea[]) u(id, args)
               RETURNING seq, coalesce(due, created) AS due, lane, priority{known})
             INSERT INTO ready (due, round, seq, lane, priority, begun{column})
             SELECT due, 0, seq, lane, priority, false{known} FROM j"
        ),
        &takes,
    ))
}

/// Takes the head of a lane out of the line.
pub fn taken(address: Address, locks: bool) -> String {
    let known = match address {
        Address::Seq => "",
        Address::Id => ", id",
        Address::Place => ", at",
    };
    let (guard, lock) = if locks {
        ("", "FOR UPDATE SKIP LOCKED")
    } else {
        ("WITH mine AS MATERIALIZED (SELECT pg_advisory_xact_lock(7, $1)) ", "")
    };
    let from = if locks { "ready" } else { "mine CROSS JOIN ready" };
    let ctid = if locks { "ctid" } else { "ready.ctid" };
    format!(
        "taken AS (DELETE FROM ready WHERE ctid = ANY (ARRAY({guard}SELECT {ctid} FROM {from}
           WHERE lane = $1 AND (priority, round, due, seq) > (0, 0, $6, $7) AND due <= $3
           ORDER BY priority, round, due, seq LIMIT $2 {lock}))
         RETURNING seq, due, begun{known})"
    )
}

/// Joins the job to what was taken. `LIMIT 1` keeps the planner from beginning with the jobs: while the table is
/// empty it would, and go on with that plan when it is full.
pub fn job_of(address: Address) -> &'static str {
    match address {
        Address::Seq => {
            "CROSS JOIN LATERAL (SELECT id, args FROM job WHERE lane = $1 AND seq = t.seq LIMIT 1) j"
        }
        Address::Id => "CROSS JOIN LATERAL (SELECT id, args FROM job WHERE id = t.id LIMIT 1) j",
        Address::Place => {
            "CROSS JOIN LATERAL (SELECT id, args FROM job WHERE ctid = t.at AND seq = t.seq LIMIT 1) j"
        }
    }
}
