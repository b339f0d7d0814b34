-- What transactions of users' own do, and what any program may ask that speaks SQL.
--
-- Nobody holds the lock of the gates for as long as a user's transaction lasts. What would need it is noted as an arrival;
-- whoever has that lock next does it before anything else, and no claim passes by it.

DO $$ BEGIN PERFORM set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true); END $$;

-- `what`: 0 a new job, which stands nowhere yet; 1 its key was given to the job `by`;
-- 2 it succeeded in a user's transaction; 3 somebody asks to cancel it, for the reason `note`.
CREATE TABLE arrival (
    seq  bigint NOT NULL,
    what smallint NOT NULL,
    id   uuid NOT NULL,
    by   uuid,
    note text,
    PRIMARY KEY (seq, what)
);

-- The lane of a kind in a queue; it is made if it is not there.
CREATE FUNCTION lane_of(of_queue text, of_kind text) RETURNS int
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT AS $body$
DECLARE
    found_lane int;
BEGIN
    SELECT l.id INTO found_lane FROM lane l WHERE l.queue = of_queue AND l.kind = of_kind;
    IF FOUND THEN
        RETURN found_lane;
    END IF;
    PERFORM pg_advisory_xact_lock(1413827146, hashtext(current_schema()));
    INSERT INTO queue (name) VALUES (of_queue) ON CONFLICT DO NOTHING;
    INSERT INTO lane (queue, kind) VALUES (of_queue, of_kind) ON CONFLICT DO NOTHING;
    SELECT l.id INTO STRICT found_lane FROM lane l WHERE l.queue = of_queue AND l.kind = of_kind;
    RETURN found_lane;
END $body$;

-- Keeps a waiting job from being claimed, in favour of the job `taker`. False if it does not wait any more. It stays where
-- it is, but hidden from those who do not ask the gates; whoever has their lock ends it first.
CREATE FUNCTION displace(old_id uuid, taker uuid) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off AS $body$
DECLARE
    old record;
    its_place record;
BEGIN
    -- Where a job with keys stands is changed under this lock only.
    IF EXISTS (SELECT FROM keyed k JOIN job j ON j.seq = k.seq WHERE j.id = old_id) THEN
        PERFORM pg_advisory_xact_lock(1413827148, hashtext(current_schema()));
    END IF;
    SELECT j.seq, j.lane, j.priority, coalesce(s.due, j.due, j.created) AS due, coalesce(s.state, 0) AS state INTO old
        FROM job j LEFT JOIN standing s ON s.seq = j.seq WHERE j.id = old_id FOR UPDATE OF j;
    IF NOT FOUND OR old.state <> 0 THEN
        RETURN false;
    END IF;
    SELECT k.at, k.round, k.due INTO its_place FROM keyed k WHERE k.seq = old.seq;
    IF NOT FOUND THEN
        SELECT NULL::smallint AS at, 0::bigint AS round, old.due AS due INTO its_place;
    END IF;
    IF its_place.at > 4 THEN
        RETURN false;
    END IF;
    IF (its_place.at IS NULL OR its_place.at = 1) AND NOT EXISTS (SELECT FROM arrival a WHERE a.seq = old.seq AND a.what = 0)
    THEN
        UPDATE ready r SET limit_id = 1 WHERE r.lane = old.lane AND r.priority = old.priority
            AND r.round = its_place.round AND r.due = its_place.due AND r.seq = old.seq;
        IF NOT FOUND THEN
            UPDATE later l SET gated = true WHERE l.due = its_place.due AND l.seq = old.seq;
            IF NOT FOUND THEN
                RETURN false;
            END IF;
        END IF;
    END IF;
    INSERT INTO arrival (seq, what, id, by) VALUES (old.seq, 1, old_id, taker)
        ON CONFLICT (seq, what) DO UPDATE SET by = excluded.by;
    RETURN true;
END $body$;

-- Stores a job in the transaction of whoever calls it, and answers what became of it: `new`, or one of `repeated`,
-- `existing`, `replaced`, `id_taken`, `key_held`, `no_such_job`, each with the id of the job that it is about.
-- Other programs hear of it when the transaction commits. `at` is for tests: the time of day in microseconds.
CREATE FUNCTION accept(asked jsonb, job_args bytea, at bigint DEFAULT NULL) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off AS $body$
DECLARE
    present bigint := coalesce(at, micros());
    job_id uuid := (asked->>'id')::uuid;
    job_key bytea := decode(asked->>'key', 'hex');
    key_until bigint := present + (asked->>'key_for')::bigint;
    job_priority smallint := coalesce((asked->>'priority')::smallint, 0);
    job_due bigint := coalesce((asked->>'at')::bigint, present + (asked->>'wait')::bigint);
    job_seq bigint;
    job_lane int;
    missing uuid;
    there record;
    holder record;
    answer text := 'new';
BEGIN
    SELECT l.kind, j.args INTO there FROM job j JOIN lane l ON l.id = j.lane WHERE j.id = job_id;
    IF FOUND THEN
        IF there.kind = asked->>'kind' AND there.args = job_args THEN
            RETURN 'repeated ' || job_id;
        END IF;
        RETURN 'id_taken ' || job_id;
    END IF;
    SELECT a.value::uuid INTO missing FROM jsonb_array_elements_text(coalesce(asked->'after', '[]')) a
        WHERE NOT EXISTS (SELECT FROM job j WHERE j.id = a.value::uuid) LIMIT 1;
    job_seq := nextval(pg_get_serial_sequence('job', 'seq'));
    WHILE job_key IS NOT NULL LOOP
        SELECT k.id, k.until INTO holder FROM unique_key k WHERE k.key = job_key;
        IF FOUND AND (holder.until IS NULL OR holder.until > present) THEN
            IF asked->>'conflict' = 'reject' THEN
                RETURN 'key_held ' || holder.id;
            END IF;
            IF asked->>'conflict' = 'return' THEN
                RETURN 'existing ' || holder.id;
            END IF;
            IF missing IS NOT NULL THEN
                RETURN 'no_such_job ' || missing;
            END IF;
            IF NOT displace(holder.id, job_id) THEN
                RETURN 'existing ' || holder.id;
            END IF;
            DELETE FROM unique_key k WHERE k.key = job_key AND k.id = holder.id;
            PERFORM surely(FOUND);
            INSERT INTO unique_key (key, seq, id, until) VALUES (job_key, job_seq, job_id, key_until);
            answer := 'replaced ' || holder.id;
            EXIT;
        END IF;
        IF missing IS NOT NULL THEN
            RETURN 'no_such_job ' || missing;
        END IF;
        DELETE FROM unique_key k WHERE k.key = job_key AND k.until <= present;
        INSERT INTO unique_key (key, seq, id, until) VALUES (job_key, job_seq, job_id, key_until)
            ON CONFLICT (key) DO NOTHING;
        -- Otherwise somebody has taken it meanwhile: whoever that is holds it now.
        EXIT WHEN FOUND;
    END LOOP;
    IF missing IS NOT NULL THEN
        RETURN 'no_such_job ' || missing;
    END IF;
    job_lane := lane_of(coalesce(asked->>'queue', 'default'), asked->>'kind');
    INSERT INTO job (seq, id, lane, priority, created, due, terms, args)
        VALUES (job_seq, job_id, job_lane, job_priority, present, job_due, asked->>'terms', job_args);
    INSERT INTO tag (tag, seq, id) SELECT t.value, job_seq, job_id
        FROM jsonb_array_elements_text(coalesce(asked->'tags', '[]')) t ON CONFLICT DO NOTHING;
    IF (asked->>'gated')::boolean
        OR EXISTS (SELECT FROM queue q WHERE q.name = coalesce(asked->>'queue', 'default') AND q.fair) THEN
        INSERT INTO arrival (seq, what, id) VALUES (job_seq, 0, job_id);
    ELSIF job_due > present THEN
        INSERT INTO later (due, seq, lane, priority, begun, gated)
            VALUES (job_due, job_seq, job_lane, job_priority, false, false);
        INSERT INTO tally (lane, scheduled) VALUES (job_lane, 1);
    ELSE
        INSERT INTO ready (due, round, seq, lane, priority, begun)
            VALUES (coalesce(job_due, present), 0, job_seq, job_lane, job_priority, false);
        INSERT INTO tally (lane, queued) VALUES (job_lane, 1);
    END IF;
    PERFORM pg_notify(current_schema() || ':tenure', 'd');
    RETURN answer;
END $body$;

-- Ends a job that runs under this fence in the transaction of whoever calls it: it has succeeded. Raises TE001 if the
-- job is not held any more by whoever names it. Whoever has not given it a standing before, in a transaction of its
-- own, keeps all that was granted with it from ending until this one has. `kept_for`: how long it is kept, in microseconds; for good if NULL.
CREATE FUNCTION complete_job(job_seq bigint, job_id uuid, job_fence bigint, kept_for bigint, job_output bytea,
    job_place text, at bigint DEFAULT NULL) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off AS $body$
DECLARE
    present bigint := coalesce(at, micros());
    done record;
    is_keyed boolean;
BEGIN
    PERFORM stand_alone(job_id);
    UPDATE standing s SET state = 2, lapse = NULL, until = NULL, cancel = NULL, ended = present,
            expires = present + kept_for, output = job_output, place = job_place
        WHERE s.seq = job_seq AND s.fence = job_fence AND s.state = 1
            AND EXISTS (SELECT FROM job j WHERE j.seq = job_seq AND j.id = job_id)
        RETURNING s.lane, s.awaited INTO done;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the job % is not held any more by whoever names it', job_id USING ERRCODE = 'TE001';
    END IF;
    -- A key that is held for a time stays.
    DELETE FROM unique_key k WHERE k.seq = job_seq AND k.until IS NULL AND k.key = (
        SELECT decode(string_agg(lpad(to_hex(b.value::int), 2, '0'), '' ORDER BY b.ordinality), 'hex')
        FROM job j CROSS JOIN LATERAL
            jsonb_array_elements_text(j.terms::jsonb->'unique'->'key') WITH ORDINALITY b WHERE j.seq = job_seq);
    IF done.awaited THEN
        INSERT INTO ending (seq, id, state) VALUES (job_seq, job_id, 2)
            ON CONFLICT (seq) DO UPDATE SET state = excluded.state;
    END IF;
    is_keyed := EXISTS (SELECT FROM keyed k WHERE k.seq = job_seq);
    IF is_keyed THEN
        INSERT INTO arrival (seq, what, id) VALUES (job_seq, 2, job_id);
    ELSE
        INSERT INTO tally (lane, running, succeeded) VALUES (done.lane, -1, 1);
    END IF;
    IF is_keyed OR done.awaited OR EXISTS (SELECT FROM lane l JOIN queue q ON q.name = l.queue
        WHERE l.id = done.lane AND q.limit_to IS NOT NULL) THEN
        PERFORM pg_notify(current_schema() || ':tenure', 'd');
    END IF;
END $body$;

REVOKE ALL ON FUNCTION lane_of(text, text), displace(uuid, uuid), accept(jsonb, bytea, bigint),
    complete_job(bigint, uuid, bigint, bigint, bytea, text, bigint) FROM PUBLIC;
