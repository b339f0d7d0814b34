-- Keys: what a job waits for besides its time. Whoever writes here has the lock of the gates, except for `ending`, which
-- settlements write, too.

-- Unfinished jobs with keys, and all that wait in queues with fair shares.
-- `at`: 0 in the diary, 1 in line, 2 blocked by other jobs, 3 by its order, 4 by its limit, 5 running. A job without a
-- limit key is also claimed by those who do not write here: whether it runs is told by its standing.
-- `begun` is as in the line. `stand`: among the jobs of its ordering key 0 aside, 1 in the way, 2 ready.
-- `fair_queue`: its queue, if it is in line and takes a round of its share. `share` is '' without a key.
CREATE TABLE keyed (
    seq        bigint PRIMARY KEY,
    id         uuid NOT NULL,
    due        bigint NOT NULL,
    round      bigint NOT NULL,
    lane       int NOT NULL,
    at         smallint NOT NULL,
    priority   smallint NOT NULL,
    stand      smallint,
    begun      boolean NOT NULL,
    ordering   text COLLATE "C",
    limit_key  text COLLATE "C",
    fair_queue text COLLATE "C",
    share      text COLLATE "C" NOT NULL
);
CREATE INDEX keyed_order ON keyed (ordering, seq) WHERE ordering IS NOT NULL;
CREATE INDEX keyed_standing ON keyed (ordering, seq) WHERE stand > 0;
CREATE INDEX keyed_limit ON keyed (limit_key, lane, at, priority, round, due, seq) WHERE limit_key IS NOT NULL;
CREATE INDEX keyed_running ON keyed (limit_key, seq) WHERE at = 5;
CREATE INDEX keyed_share ON keyed (fair_queue, priority, share, round) WHERE fair_queue IS NOT NULL;

-- Whose turn it is among the jobs of an ordering key; no row if it is nobody's.
CREATE TABLE turn (key text COLLATE "C" PRIMARY KEY, seq bigint NOT NULL);

-- Limits that somebody set, or that a job has need of. `kept` is JSON: the limit, and what uses it up.
-- `grows_at`: when time makes room for jobs that it blocks.
CREATE TABLE limit_key (key text COLLATE "C" PRIMARY KEY, grows_at bigint, kept text NOT NULL);
CREATE INDEX limit_key_grows ON limit_key (grows_at) WHERE grows_at IS NOT NULL;

-- The round of a queue's jobs of one priority that is served now, and in which each share was served last.
CREATE TABLE present_round (
    queue    text COLLATE "C" NOT NULL,
    priority smallint NOT NULL,
    round    bigint NOT NULL,
    PRIMARY KEY (queue, priority)
);
CREATE TABLE served (
    queue    text COLLATE "C" NOT NULL,
    priority smallint NOT NULL,
    share    text COLLATE "C" NOT NULL,
    round    bigint NOT NULL,
    PRIMARY KEY (queue, priority, share)
);

-- Which jobs wait for which others.
CREATE TABLE dependency (other bigint NOT NULL, waiter bigint NOT NULL, PRIMARY KEY (other, waiter));
CREATE INDEX dependency_waiter ON dependency (waiter, other);

-- Jobs that others wait for, which have ended and which no turn has noticed. `state` is NULL if one was removed before
-- it had ended. `again`: from when on somebody looks.
CREATE TABLE ending (seq bigint PRIMARY KEY, id uuid NOT NULL, state smallint, again bigint NOT NULL DEFAULT 0);

-- By this instant somebody has looked whether time has made room.
INSERT INTO meta (name, value) VALUES ('looked', 0);

CREATE INDEX later_gated ON later (due, seq) WHERE gated;
CREATE INDEX queue_limited ON queue (name) WHERE limit_to IS NOT NULL;
