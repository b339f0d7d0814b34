-- Timers, and what became of their slots. Whoever brings jobs of theirs has the lock of the gates first, then locks the
-- rows of `timer_standing`, by name. Text is compared byte by byte.

-- A timer as it was agreed: written when somebody sets it. `version`: how often that has been.
-- `agreed` is JSON that tells its own version. `revision`: that of the program that declared it, for those that
-- cannot read the rest; beyond 2^63 it is negative.
CREATE TABLE timer (
    name     text COLLATE "C" PRIMARY KEY,
    version  bigint NOT NULL,
    revision bigint NOT NULL,
    created  bigint NOT NULL,
    changed  bigint NOT NULL,
    agreed   text   NOT NULL,
    args     bytea  NOT NULL
);

-- What its slots change: each timer has a row here, too, so that firing does not rewrite what was agreed.
-- `wake`: when somebody has to look at it; NULL if nothing comes by itself. `open`: the ids of its jobs that had not
-- ended when it was last looked at. `late`: how late the last slot that got a job was. `skipped`: the last slot that
-- was, with `skip` as the `fate` of such a slot, and the job by which it was busy. `reason` is JSON.
CREATE TABLE timer_standing (
    name    text COLLATE "C" PRIMARY KEY,
    wake    bigint,
    next    bigint,
    decided bigint,
    fired   bigint,
    late    bigint,
    runs    bigint NOT NULL,
    skipped bigint,
    paused  bigint,
    skip    smallint,
    skip_by uuid,
    reason  text,
    open    uuid[] NOT NULL
) WITH (fillfactor = 50);
-- In the order in which they fire.
CREATE INDEX timer_wake ON timer_standing (wake, name) WHERE wake IS NOT NULL;

-- What became of slots. It is only added to, and pruned by age: of the slot and of the record. It tells names, not
-- numbers: it outlives its timer, and records of one instant are listed by name.
-- `origin`: 0 schedule, 1 start, 2 trigger, 3 backfill.
-- `first`:  NULL if the record is of one slot. If not, `count` tells of how many, and is NULL if they are too many.
-- `fate`:   0 ran, 1 coalesced; skipped: 2 busy, 3 missed, 4 too many, 5 too late, 6 paused, 7 edited.
-- `later`:  the slot whose job stands for these, if they are coalesced.
-- `job`:    the job that ran, or by which it was busy; NULL if it is the one that is named after this slot.
CREATE TABLE timer_slot (
    last   bigint NOT NULL,
    at     bigint NOT NULL,
    first  bigint,
    count  bigint,
    later  bigint,
    origin smallint NOT NULL,
    fate   smallint NOT NULL,
    job    uuid,
    timer  text COLLATE "C" NOT NULL,
    PRIMARY KEY (last, timer, origin)
);
CREATE INDEX timer_slot_timer ON timer_slot (timer, last, origin);
-- In the order in which they are pruned: a record of a slot that was long past when it was made is kept as long as
-- others.
CREATE INDEX timer_slot_at ON timer_slot (at, last, timer, origin);
