-- The first schema. Times are microseconds since 1970, ids the sixteen bytes of a UUID.
--
-- A job is written once (job). While it waits and is due it has a place in line (ready); while it waits for a
-- later instant it has a place in the diary (later). What changes has one row that appears with the first
-- claim and stays (standing). A job without one waits and has never been claimed.
--
-- A job with keys may wait for more than time: for other jobs (dependency), for its turn (chained) or for room
-- in its limit (limit_line). Then it is blocked and has no other place.

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

-- `limit_to` is JSON, NULL if the queue has no limit; `bucket` says when its bucket of tokens is full again.
-- `fair`: whether a job with a share key has ever joined its line.
CREATE TABLE queue (
    name     TEXT PRIMARY KEY,
    paused   INTEGER NOT NULL,
    limit_to TEXT,
    bucket   INTEGER NOT NULL DEFAULT 0,
    fair     INTEGER NOT NULL DEFAULT 0
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
-- `singly`: 0 if its place depends on nothing but its due, so that many are given theirs with one statement.
CREATE TABLE job (
    seq      INTEGER PRIMARY KEY,
    id       BLOB    NOT NULL,
    lane     INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    due      INTEGER NOT NULL,
    created  INTEGER NOT NULL,
    singly   INTEGER NOT NULL,
    terms    TEXT,
    args     BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX job_id ON job (id);
CREATE INDEX job_lane ON job (lane, seq);

-- Waiting jobs that are due, in the order in which they are claimed. `begun` is 1 if the job has a standing.
-- `round` is 0 in a queue without shares, `limit_id` NULL without a limit key: both cost next to nothing there.
CREATE TABLE ready (
    lane     INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    round    INTEGER NOT NULL,
    due      INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    begun    INTEGER NOT NULL,
    limit_id INTEGER,
    PRIMARY KEY (lane, priority, round, due, seq)
) STRICT, WITHOUT ROWID;
-- The last one that a limit let into a lane's line: it has to leave when room is taken elsewhere.
CREATE INDEX ready_limit ON ready (limit_id, lane, priority, round, due, seq) WHERE limit_id IS NOT NULL;

-- Waiting jobs that come due later, in that order.
CREATE TABLE later (
    due      INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    lane     INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    begun    INTEGER NOT NULL,
    singly   INTEGER NOT NULL,
    PRIMARY KEY (due, seq)
) STRICT, WITHOUT ROWID;

-- `state`: 0 waiting, 1 running, 2 succeeded, 3 failed, 4 cancelled.
-- `why`:   0 enqueued, 1 retry, 2 snoozed, 3 released, 4 lost, 5 asked; only of a waiting job.
-- `lapse`: when a running job is taken from its holder: the earlier of `until` and a cancel's deadline.
-- `failure`, `cancel` and `progress` are JSON. `limit_id` is of the limit under which a running job was granted.
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
    progress TEXT,
    limit_id INTEGER
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

-- An ordering key that unfinished jobs have. `turn` is the one whose turn it is; `waiting` of them are in
-- chained, `aside` in stepped_aside. Rows of chained up to seq `passed` are there no more: they are deleted some
-- at a time, because the next ones of many keys lie far apart.
CREATE TABLE chain (
    id      INTEGER PRIMARY KEY,
    key     TEXT NOT NULL UNIQUE,
    turn    INTEGER,
    passed  INTEGER NOT NULL,
    waiting INTEGER NOT NULL,
    aside   INTEGER NOT NULL
) STRICT;

-- Jobs that want the turn, by seq. `gate`: 0 if nothing else stands between it and its place, 1 if other keys
-- may, 2 if it has to wait for other jobs first: it stands in the way of those behind it and cannot take the turn.
CREATE TABLE chained (
    chain    INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    lane     INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    due      INTEGER NOT NULL,
    begun    INTEGER NOT NULL,
    gate     INTEGER NOT NULL,
    PRIMARY KEY (chain, seq)
) STRICT, WITHOUT ROWID;

-- Jobs that let those behind them go on, because they wait for their time or for other jobs.
CREATE TABLE stepped_aside (
    chain INTEGER NOT NULL,
    seq   INTEGER NOT NULL,
    PRIMARY KEY (chain, seq)
) STRICT, WITHOUT ROWID;

-- A limit key that unfinished jobs name or that somebody has set. `said`: how many at once by the last job that
-- said it; `set_to`: JSON of the limit that was set. `named`: unfinished jobs that name it. `bucket` says when its
-- bucket of tokens is full again. `lanes` is JSON: of each lane how many jobs are queued and blocked, and up to
-- which place (priority, round, due, seq) rows of limit_line are there no more, as with chained.
-- `grows`: when time makes room for some that are blocked.
CREATE TABLE limit_key (
    id      INTEGER PRIMARY KEY,
    key     TEXT NOT NULL UNIQUE,
    said    INTEGER,
    set_to  TEXT,
    named   INTEGER NOT NULL DEFAULT 0,
    running INTEGER NOT NULL DEFAULT 0,
    bucket  INTEGER NOT NULL DEFAULT 0,
    lanes   TEXT    NOT NULL DEFAULT '[]',
    grows   INTEGER
) STRICT;
CREATE INDEX limit_key_grows ON limit_key (grows) WHERE grows IS NOT NULL;

-- Due jobs for which their limit has no room, in the order in which it lets them into line.
CREATE TABLE limit_line (
    limit_id INTEGER NOT NULL,
    lane     INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    round    INTEGER NOT NULL,
    due      INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    begun    INTEGER NOT NULL,
    PRIMARY KEY (limit_id, lane, priority, round, due, seq)
) STRICT, WITHOUT ROWID;

-- Who waits for whom. `on_seq` has not ended, or no turn has noticed that it has (awaited_end).
CREATE TABLE dependency (
    on_seq INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    PRIMARY KEY (on_seq, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX dependency_seq ON dependency (seq);

-- Jobs that others wait for and that have ended or are gone. `how` is a state as above; NULL if it was removed
-- before it had ended. `id` is kept because the job may be gone. `again`: left alone until then.
CREATE TABLE awaited_end (
    seq   INTEGER PRIMARY KEY,
    id    BLOB NOT NULL,
    how   INTEGER,
    again INTEGER NOT NULL DEFAULT 0
) STRICT;

-- A share key among the jobs of one priority in a fair queue; '' for the jobs without one.
-- `granted`: the last round of which one was granted.
CREATE TABLE share (
    id       INTEGER PRIMARY KEY,
    queue    TEXT    NOT NULL,
    priority INTEGER NOT NULL,
    key      TEXT    NOT NULL,
    granted  INTEGER,
    UNIQUE (queue, priority, key)
) STRICT;

-- The greatest round that was granted among the jobs of one priority in a fair queue.
CREATE TABLE present_round (
    queue    TEXT    NOT NULL,
    priority INTEGER NOT NULL,
    round    INTEGER NOT NULL,
    PRIMARY KEY (queue, priority)
) STRICT, WITHOUT ROWID;

-- The rounds of jobs that stand in line (ready or limit_line) in a fair queue.
CREATE TABLE fair_place (
    seq   INTEGER PRIMARY KEY,
    share INTEGER NOT NULL,
    round INTEGER NOT NULL
) STRICT;
CREATE INDEX fair_place_share ON fair_place (share, round);
