-- Whoever is told that a job is there already relies on it, and the job may be so young that it is not on disk yet.

DO $$ BEGIN PERFORM set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true); END $$;

-- As before, and also: what commits such an answer writes a row, which counts nothing, and so lasts only when the job does.
CREATE OR REPLACE FUNCTION accept(asked jsonb, job_args bytea, at bigint DEFAULT NULL) RETURNS text
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
    of_queue record;
    full_at bigint;
    job_terms text := asked->>'terms';
    answer text := 'new';
BEGIN
    SELECT l.kind, j.args, j.lane INTO there FROM job j JOIN lane l ON l.id = j.lane WHERE j.id = job_id;
    IF FOUND THEN
        INSERT INTO tally (lane, queued) VALUES (there.lane, 0);
        IF there.kind = asked->>'kind' AND there.args = job_args THEN
            RETURN 'repeated ' || job_id;
        END IF;
        RETURN 'id_taken ' || job_id;
    END IF;
    SELECT a.value::uuid INTO missing FROM jsonb_array_elements_text(coalesce(asked->'after', '[]')) a
        WHERE NOT EXISTS (SELECT FROM job j WHERE j.id = a.value::uuid) LIMIT 1;
    SELECT q.fair, q.gone, q.terms, q.max_depth INTO of_queue FROM queue q WHERE q.name = coalesce(asked->>'queue', 'default');
    -- Of what is there now: who holds up everybody until his transaction ends is not worth a few jobs too many.
    IF of_queue.max_depth IS NOT NULL THEN
        SELECT of_queue.max_depth INTO full_at WHERE of_queue.max_depth <= (
            SELECT coalesce(sum(coalesce(t.scheduled, 0) + coalesce(t.queued, 0) + coalesce(t.blocked, 0)), 0) FROM tally t
            WHERE t.lane = ANY (ARRAY(SELECT l.id FROM lane l WHERE l.queue = coalesce(asked->>'queue', 'default'))));
    END IF;
    -- What the job does not say, its queue says.
    IF of_queue.terms IS NOT NULL THEN
        job_terms := (coalesce(jsonb_strip_nulls(jsonb_build_object('retry', of_queue.terms::jsonb->'retry',
            'retention', of_queue.terms::jsonb->'retention')), '{}') || coalesce(job_terms, '{}')::jsonb)::text;
    END IF;
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
            -- Only a place in the same queue is one that it may take. Whether there is one at all is seen by taking it, which is
            -- undone.
            IF full_at IS NOT NULL AND EXISTS (SELECT FROM job j JOIN lane l ON l.id = j.lane
                WHERE j.id = holder.id AND l.queue <> coalesce(asked->>'queue', 'default')) THEN
                BEGIN
                    IF displace(holder.id, job_id) THEN
                        RAISE configuration_limit_exceeded;
                    END IF;
                    RETURN 'existing ' || holder.id;
                EXCEPTION WHEN configuration_limit_exceeded THEN
                    RETURN 'queue_full ' || full_at;
                END;
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
    IF full_at IS NOT NULL AND answer = 'new' THEN
        -- The key is given back: nothing is done.
        DELETE FROM unique_key k WHERE k.key = job_key AND k.id = job_id;
        RETURN 'queue_full ' || full_at;
    END IF;
    IF of_queue.gone THEN
        UPDATE queue q SET gone = false WHERE q.name = coalesce(asked->>'queue', 'default') AND q.gone;
    END IF;
    job_lane := lane_of(coalesce(asked->>'queue', 'default'), asked->>'kind');
    INSERT INTO job (seq, id, lane, priority, created, due, terms, args)
        VALUES (job_seq, job_id, job_lane, job_priority, present, job_due, job_terms, job_args);
    INSERT INTO tag (tag, seq, id) SELECT t.value, job_seq, job_id
        FROM jsonb_array_elements_text(coalesce(asked->'tags', '[]')) t ON CONFLICT DO NOTHING;
    IF (asked->>'gated')::boolean
        OR of_queue.fair THEN
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
