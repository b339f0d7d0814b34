-- The first schema. Times are microseconds since 1970, ids the sixteen bytes of a UUID.
--
-- A job is written once (job). While it waits and is due it has a place in line (ready); while it waits for a
-- later instant it has a place in the diary (later). What changes has one row that appears with the first
-- claim and stays (standing). A job without one waits and has never been claimed.

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- epoch:    the upper part of every fence.
-- restored: 1 in a copy that has not been opened yet; opening it raises the epoch.
-- removed:  the highest seq that was ever removed, so that none is given twice.
-- lanes:    grows whenever a lane or queue appears or a pause changes, so that others read them anew.
-- asked:    grows whenever a holder is asked to stop, so that others tell theirs.
INSERT INTO meta (name, value) VALUES ('epoch', 0), ('restored', 0), ('removed', 0), ('lanes', 0),
    ('asked', 0);

CREATE TABLE queue (
    name   TEXT PRIMARY KEY,
    paused INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A lane is a kind in a queue. Its counters are kept up by every transaction, so that nobody counts.
CREATE TABLE lane (
    id        INTEGER PRIMARY KEY,
    queue     TEXT NOT NULL,
    kind      TEXT NOT NULL,
    scheduled INTEGER NOT NULL DEFAULT 0,
    queued    INTEGER NOT NULL DEFAULT 0,
    blocked   INTEGER NOT NULL DEFAULT 0,
    running   INTEGER NOT NULL DEFAULT 0,
    succeeded INTEGER NOT NULL DEFAULT 0,
    failed    INTEGER NOT NULL DEFAULT 0,
    cancelled INTEGER NOT NULL DEFAULT 0,
    UNIQUE (queue, kind)
) STRICT;

-- `terms` is JSON, and NULL if they are the default ones. `due` is when it was due at first.
CREATE TABLE job (
    seq      INTEGER PRIMARY KEY,
    id       BLOB    NOT NULL,
    lane     INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    due      INTEGER NOT NULL,
    created  INTEGER NOT NULL,
    terms    TEXT,
    args     BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX job_id ON job (id);
CREATE INDEX job_lane ON job (lane, seq);

-- Waiting jobs that are due, in the order in which they are claimed. `begun` is 1 if the job has a standing.
CREATE TABLE ready (
    lane     INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    due      INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    begun    INTEGER NOT NULL,
    PRIMARY KEY (lane, priority, due, seq)
) STRICT, WITHOUT ROWID;

-- Waiting jobs that come due later, in that order.
CREATE TABLE later (
    due      INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    lane     INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    begun    INTEGER NOT NULL,
    PRIMARY KEY (due, seq)
) STRICT, WITHOUT ROWID;

-- `state`: 0 waiting, 1 running, 2 succeeded, 3 failed, 4 cancelled.
-- `why`:   0 enqueued, 1 retry, 2 snoozed, 3 released, 4 lost, 5 asked; only of a waiting job.
-- `lapse`: when a running job is taken from its holder: the earlier of `until` and a cancel's deadline.
-- `failure`, `cancel` and `progress` are JSON.
CREATE TABLE standing (
    seq      INTEGER PRIMARY KEY,
    lane     INTEGER NOT NULL,
    state    INTEGER NOT NULL,
    fence    INTEGER NOT NULL,
    attempt  INTEGER NOT NULL,
    delivery INTEGER NOT NULL,
    why      INTEGER,
    due      INTEGER,
    until    INTEGER,
    lapse    INTEGER,
    started  INTEGER,
    ended    INTEGER,
    expires  INTEGER,
    holder   BLOB,
    failure  TEXT,
    output   BLOB,
    place    TEXT,
    cancel   TEXT,
    progress TEXT
) STRICT;
CREATE INDEX standing_lapse ON standing (lapse) WHERE state = 1;
CREATE INDEX standing_expiry ON standing (expires) WHERE expires IS NOT NULL;
CREATE INDEX standing_trouble ON standing (lane, state, seq) WHERE state IN (3, 4);

-- Ended attempts, except one that succeeded: its job's standing tells all of it.
-- `ended_by`: 0 succeeded, 1 failed, 2 retried, 3 snoozed, 4 released, 5 lost, 6 cancelled.
CREATE TABLE attempt (
    seq      INTEGER NOT NULL,
    delivery INTEGER NOT NULL,
    attempt  INTEGER NOT NULL,
    fence    INTEGER NOT NULL,
    holder   BLOB    NOT NULL,
    started  INTEGER NOT NULL,
    ended    INTEGER NOT NULL,
    ended_by INTEGER NOT NULL,
    failure  TEXT,
    PRIMARY KEY (seq, delivery)
) STRICT, WITHOUT ROWID;

CREATE TABLE log (
    seq      INTEGER NOT NULL,
    delivery INTEGER NOT NULL,
    number   INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    text     TEXT    NOT NULL,
    PRIMARY KEY (seq, delivery, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE tag (
    tag TEXT    NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (tag, seq)
) STRICT, WITHOUT ROWID;

-- Who holds a unique key: until `until`, or until the job ends if that is NULL.
CREATE TABLE unique_key (
    key   BLOB PRIMARY KEY,
    seq   INTEGER NOT NULL,
    id    BLOB    NOT NULL,
    until INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX unique_key_until ON unique_key (until) WHERE until IS NOT NULL;

-- `slots`: how many jobs it runs at once, of all queues together. `serves` is JSON.
CREATE TABLE host (
    id      BLOB PRIMARY KEY,
    name    TEXT    NOT NULL,
    started INTEGER NOT NULL,
    until   INTEGER NOT NULL,
    slots   INTEGER NOT NULL,
    serves  TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
