-- Leases, who waits for them, and the ledger.

-- bar: the instant before which nothing is granted, because this server may have forgotten who holds what.
-- ttl: for how long jobs are granted at the most.
INSERT INTO meta (name, value) VALUES ('bar', 0), ('ttl', 0);

-- A name that was ever held. A row is never deleted: its fence outlives every ownership and the name itself.
-- `freed`: since when it has been free, if it was released or broken.
-- What follows is the last ownership, all of it but `ttl` NULL once it was given back.
-- `phase`: 0 held, 1 being broken, 2 broken, 3 lapsed, as is on record. `until`: NULL if it has no end.
-- `ttl`: for how long at a time; NULL if it has or had no end. `meta` is JSON, and NULL if it is empty.
-- `look`: when to look whether it has lapsed; never after `until`. A renewal leaves it, and so touches no index: there
-- is room on each page for all of its rows to be renewed by one transaction.
--
-- Who changes a row locks it FOR NO KEY UPDATE. Who raises its fence locks it FOR UPDATE besides, which those keep
-- off who have checked in: they lock it FOR KEY SHARE. Several rows are locked in the order of their names.
CREATE TABLE lease (
    number    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    fence     bigint NOT NULL,
    freed     bigint NOT NULL,
    since     bigint,
    ttl       bigint,
    until     bigint,
    look      bigint,
    id        uuid,
    host      uuid,
    phase     smallint,
    forgotten boolean NOT NULL,
    name      text COLLATE "C" NOT NULL,
    who       text,
    meta      text
) WITH (fillfactor = 45);
CREATE UNIQUE INDEX lease_name ON lease (name);
-- Those that people see, so that a page does not pass by all that were ever forgotten.
CREATE INDEX lease_shown ON lease (name) WHERE NOT forgotten;
CREATE INDEX lease_look ON lease (look) WHERE look IS NOT NULL;

-- Who waits for which lease. `place`: who came first has the smallest. Changed only by who has locked the lease,
-- except that anybody may remove a place whose time is over.
CREATE TABLE lease_line (
    lease bigint NOT NULL,
    place bigint NOT NULL,
    until bigint NOT NULL,
    id    uuid NOT NULL,
    PRIMARY KEY (lease, id)
);
CREATE INDEX lease_line_until ON lease_line (until);

-- What happened, in order. It is only added to, and pruned by age. Numbers are given under a lock that is held
-- until the commit: whoever reads on behind a number misses nothing.
-- `what`:    0 acquired, 1 took over, 2 renewed late, 3 changed, 4 refused, 5 broke, 6 lapsed, 7 released,
--            8 forgotten.
-- `present`: whether the ownership lasts that began with it: such a note is not pruned.
CREATE TABLE ledger (
    number  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    lease   bigint NOT NULL,
    fence   bigint NOT NULL,
    at      bigint NOT NULL,
    since   bigint,
    until   bigint,
    host    uuid,
    what    smallint NOT NULL,
    present boolean NOT NULL,
    who     text COLLATE "C" NOT NULL,
    meta    text,
    note    text NOT NULL
);
CREATE INDEX ledger_lease ON ledger (lease, number);
CREATE INDEX ledger_at ON ledger (present, at, number);
CREATE INDEX ledger_present ON ledger (lease, fence) WHERE present;
-- Who was refused is told once for each ownership.
CREATE INDEX ledger_refused ON ledger (lease, fence, who) WHERE what = 4;

-- Raises TE001 if a lease is not held under this id and fence. If it is, nobody is granted it before the transaction
-- ends: to be called in a user's own transaction, in any language. `at` is for tests: the time of day in microseconds.
-- It asks for the fence alone whether somebody else has had it, and so is right at every level of isolation.
DO $do$ BEGIN
    EXECUTE format($create$
        CREATE FUNCTION check_lease(lease_name text, lease_id uuid, lease_fence bigint, at bigint DEFAULT NULL)
        RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
        BEGIN
            PERFORM FROM %1$I.lease l
                WHERE l.name = lease_name AND l.id = lease_id AND l.fence = lease_fence
                    AND (l.phase = 0 AND (l.until IS NULL OR l.until > coalesce(at, %1$I.micros()))
                        OR l.phase = 1 AND l.until > coalesce(at, %1$I.micros()))
                FOR KEY SHARE;
            IF NOT FOUND THEN
                RAISE EXCEPTION 'the lease %% is not held any more by whoever names it', lease_name
                    USING ERRCODE = 'TE001';
            END IF;
        END $body$ $create$, current_schema());
    -- The same for a job that runs. A reservation that has lapsed counts as long as nobody has noticed. While the job has
    -- no standing, what was granted with it is locked: nothing of that is taken from its holder before the transaction ends.
    EXECUTE format($create$
        CREATE FUNCTION check_job(job_seq bigint, job_id uuid, job_fence bigint)
        RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
            SET enable_seqscan = off AS $body$
        BEGIN
            PERFORM FROM %1$I.granted g
                WHERE g.fence = job_fence AND g.block = job_seq >> 8
                    AND get_bit(g.seqs, (job_seq & 255)::int) = 1
                    AND EXISTS (SELECT FROM %1$I.job j WHERE j.lane = g.lane AND j.seq = job_seq AND j.id = job_id)
                FOR KEY SHARE OF g;
            IF FOUND THEN
                -- From now on nobody takes it. A snapshot of before may show what was taken since: then this row was changed
                -- since, and whoever asks for a stronger lock is told so. That lock is given back at once.
                IF current_setting('transaction_isolation') NOT LIKE 'read%%' THEN
                    BEGIN
                        PERFORM FROM %1$I.granted g WHERE g.fence = job_fence FOR SHARE;
                        RAISE EXCEPTION USING ERRCODE = 'TE000';
                    EXCEPTION WHEN SQLSTATE 'TE000' THEN
                        NULL;
                    END;
                END IF;
                RETURN;
            END IF;
            PERFORM FROM %1$I.standing s
                WHERE s.seq = job_seq AND s.fence = job_fence AND s.state = 1
                    AND EXISTS (SELECT FROM %1$I.job j WHERE j.lane = s.lane AND j.seq = job_seq AND j.id = job_id)
                FOR KEY SHARE OF s;
            IF NOT FOUND THEN
                RAISE EXCEPTION 'the job %% is not held any more by whoever names it', job_id
                    USING ERRCODE = 'TE001';
            END IF;
        END $body$ $create$, current_schema());
END $do$;
