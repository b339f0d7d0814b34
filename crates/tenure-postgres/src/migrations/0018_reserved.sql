-- Reserved for Tenure itself: kinds and queues whose jobs it enqueues, and ids that it derives.

DO $$ BEGIN PERFORM set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true); END $$;

-- Fails if a kind, a queue or the id of a job is reserved. Jobs of the kinds `tenure.*` change other jobs and send signed
-- requests. Those of programs run one at a time, which only their own route ensures. And an id of version 8 is derived: a
-- job of a schedule or a delivery would find it taken.
CREATE FUNCTION refuse_reserved(kind text, queue text, id uuid) RETURNS void
LANGUAGE plpgsql IMMUTABLE AS $body$
BEGIN
    IF kind LIKE ANY (ARRAY['tenure.%', 'apps.%']) THEN
        RAISE EXCEPTION 'the kind % is reserved: use a kind that does not begin with tenure. or apps.', kind
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF queue LIKE 'tenure.%' OR queue = 'apps' THEN
        RAISE EXCEPTION 'the queue % is reserved: use a queue that does not begin with tenure. and is not apps', queue
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF get_byte(uuid_send(id), 6) >> 4 = 8 THEN
        RAISE EXCEPTION 'the id % has version 8, which is reserved: use a UUID of another version, such as 4 or 7', id
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
END $body$;

-- As before, but that it refuses what is reserved. `enqueue_job` and `accept` call it.
CREATE OR REPLACE FUNCTION take_in(asked jsonb, job_args bytea, at bigint DEFAULT NULL) RETURNS text
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
    PERFORM refuse_reserved(asked->>'kind', asked->>'queue', job_id);
    -- A job with such a key would hold back the runs of a schedule, or raise their limit.
    IF job_terms::jsonb #>> '{ordering,key}' LIKE 'timer/%' OR job_terms::jsonb #>> '{limit,key}' LIKE 'timer/%' THEN
        RAISE EXCEPTION 'the prefix timer/ is reserved for schedules: use other ordering and limit keys'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT l.kind, j.args, j.lane INTO there FROM job j JOIN lane l ON l.id = j.lane WHERE j.id = job_id;
    IF FOUND THEN
        INSERT INTO tally (lane, queued) VALUES (there.lane, 0);
        IF there.kind = asked->>'kind' AND there.args = job_args THEN
            RETURN 'repeated ' || job_id;
        END IF;
        RETURN 'id_taken ' || job_id;
    END IF;
    IF jsonb_array_length(asked->'after') > 0 THEN
        SELECT a.value::uuid INTO missing FROM jsonb_array_elements_text(asked->'after') a
            WHERE NOT EXISTS (SELECT FROM job j WHERE j.id = a.value::uuid) LIMIT 1;
    END IF;
    SELECT q.fair, q.gone, q.terms, q.max_depth INTO of_queue FROM queue q WHERE q.name = coalesce(asked->>'queue', 'default');
    -- Counts only committed jobs: a few jobs too many are better than a lock until the end of the transaction.
    IF of_queue.max_depth IS NOT NULL THEN
        SELECT of_queue.max_depth INTO full_at WHERE of_queue.max_depth <= (
            SELECT coalesce(sum(coalesce(t.scheduled, 0) + coalesce(t.queued, 0) + coalesce(t.blocked, 0)), 0) FROM tally t
            WHERE t.lane = ANY (ARRAY(SELECT l.id FROM lane l WHERE l.queue = coalesce(asked->>'queue', 'default'))));
    END IF;
    -- The terms of the queue fill in those that the job does not set.
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
        -- Otherwise another transaction has taken the key meanwhile.
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
    IF jsonb_array_length(asked->'after') > 0 THEN
        INSERT INTO needed_by (other, waiter) SELECT j.seq, job_seq FROM job j
            WHERE j.id = ANY (ARRAY(SELECT a.value::uuid FROM jsonb_array_elements_text(asked->'after') a))
            ON CONFLICT DO NOTHING;
    END IF;
    IF jsonb_array_length(asked->'tags') > 0 THEN
        INSERT INTO tag (tag, seq, id) SELECT t.value, job_seq, job_id
            FROM jsonb_array_elements_text(asked->'tags') t ON CONFLICT DO NOTHING;
    END IF;
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
    RETURN answer;
END $body$;

-- As before, but that it refuses what is reserved.
CREATE OR REPLACE FUNCTION accept_all(asked jsonb, bytes bytea, at bigint DEFAULT NULL) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off AS $body$
DECLARE
    present bigint := coalesce(at, micros());
    one jsonb;
    answer text;
    answers text[] := '{}';
    is_news boolean := false;
    place int := 1;
BEGIN
    PERFORM refuse_reserved(l.value->>'kind', l.value->>'queue', NULL) FROM jsonb_array_elements(asked->'lanes') l;
    PERFORM refuse_reserved(NULL, NULL, (a.value->>'id')::uuid) FROM jsonb_array_elements(asked->'jobs') a;
    IF (asked->>'plain')::boolean
        AND NOT EXISTS (SELECT FROM jsonb_to_recordset(asked->'lanes') n (id int, queue text, kind text)
            LEFT JOIN lane l ON l.id = n.id LEFT JOIN queue q ON q.name = n.queue
            WHERE (l.queue, l.kind) IS DISTINCT FROM (n.queue, n.kind) OR q.fair OR q.terms IS NOT NULL OR q.gone)
        AND NOT EXISTS (SELECT FROM job j
            WHERE j.id = ANY (ARRAY(SELECT (a.value->>'id')::uuid FROM jsonb_array_elements(asked->'jobs') a))) THEN
        WITH u AS MATERIALIZED (
            SELECT a.n, (a.v->>'id')::uuid AS id, (asked->'lanes'->(a.v->>'lane')::int->>'id')::int AS lane, (a.v->>'priority')::smallint AS priority,
                (a.v->>'bytes')::int AS size, sum((a.v->>'bytes')::int) OVER (ORDER BY a.n) AS upto
            FROM jsonb_array_elements(asked->'jobs') WITH ORDINALITY a (v, n)),
        t AS (INSERT INTO tally (lane, queued) SELECT u.lane, count(*) FROM u GROUP BY u.lane),
        j AS (INSERT INTO job (id, lane, priority, created, args)
            SELECT u.id, u.lane, u.priority, present, substr(bytes, (u.upto - u.size)::int + 1, u.size) FROM u ORDER BY u.n
            RETURNING job.seq, job.lane, job.priority)
        INSERT INTO ready (due, round, seq, lane, priority, begun) SELECT present, 0, j.seq, j.lane, j.priority, false FROM j;
        RETURN repeat(E'new\n', jsonb_array_length(asked->'jobs')) || pg_current_xact_id();
    END IF;
    FOR one IN SELECT a.value FROM jsonb_array_elements(asked->'jobs') WITH ORDINALITY a ORDER BY a.ordinality LOOP
        answer := take_in(one, substr(bytes, place, (one->>'bytes')::int), at);
        answers := answers || answer;
        is_news := is_news OR split_part(answer, ' ', 1) IN ('new', 'replaced');
        EXIT WHEN split_part(answer, ' ', 1) NOT IN ('new', 'repeated', 'existing', 'replaced');
        place := place + (one->>'bytes')::int;
    END LOOP;
    RETURN array_to_string(CASE WHEN is_news THEN answers || pg_current_xact_id()::text ELSE answers END, E'\n');
END $body$;

REVOKE ALL ON FUNCTION refuse_reserved(text, text, uuid) FROM PUBLIC;
