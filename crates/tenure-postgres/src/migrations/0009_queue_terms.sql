-- What else was agreed about a queue: how many jobs may wait in it, and what holds for those that say nothing of their own.

DO $$ BEGIN PERFORM set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true); END $$;

-- `terms` is JSON, NULL if nothing was agreed; `max_depth` repeats what it says, for statements. `gone`: whether the queue was
-- removed, and nobody has named it since. Its row stays, since its lanes do: programs know their ids.
ALTER TABLE queue ADD COLUMN terms text;
ALTER TABLE queue ADD COLUMN max_depth bigint;
ALTER TABLE queue ADD COLUMN gone boolean NOT NULL DEFAULT false;

-- As before, and also: the terms of the queue count, and `queue_full` with the number of jobs that may wait in it.
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
    SELECT l.kind, j.args INTO there FROM job j JOIN lane l ON l.id = j.lane WHERE j.id = job_id;
    IF FOUND THEN
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

-- As before, and also: raises 53400 if the queue is full.
CREATE OR REPLACE FUNCTION enqueue(
    kind text,
    args json DEFAULT '{}',
    queue text DEFAULT 'default',
    priority int DEFAULT 0,
    run_at timestamptz DEFAULT NULL,
    unique_key text DEFAULT NULL,
    ordering_key text DEFAULT NULL,
    tags text[] DEFAULT '{}',
    id uuid DEFAULT NULL
) RETURNS uuid
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off AS $body$
DECLARE
    named CONSTANT text := '^[A-Za-z0-9._:-]{1,128}$';
    new_id uuid := id;
    bits text;
    digest bytea;
    terms jsonb := '{}';
    asked jsonb;
    answer text;
    tag text;
BEGIN
    IF kind IS NULL OR kind !~ named THEN
        RAISE EXCEPTION 'the kind has to be 1 to 128 of A-Z a-z 0-9 . _ : -' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF queue IS NULL OR queue !~ named THEN
        RAISE EXCEPTION 'the queue has to be 1 to 128 of A-Z a-z 0-9 . _ : -' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF priority IS NULL OR priority NOT BETWEEN -100 AND 100 THEN
        RAISE EXCEPTION 'the priority has to be -100 to 100' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF args IS NULL OR octet_length(args::text) > 262144 THEN
        RAISE EXCEPTION 'the args have to be JSON of up to 262144 bytes' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF unique_key = '' OR octet_length(unique_key) > 512 THEN
        RAISE EXCEPTION 'the unique key has to be 1 to 512 bytes' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF ordering_key = '' OR octet_length(ordering_key) > 256 OR ordering_key ~ '[[:cntrl:]]' THEN
        RAISE EXCEPTION 'the ordering key has to be 1 to 256 bytes without control characters'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF cardinality(tags) > 32 THEN
        RAISE EXCEPTION 'a job has up to 32 tags' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    FOREACH tag IN ARRAY coalesce(tags, '{}') LOOP
        IF tag IS NULL OR tag !~ named THEN
            RAISE EXCEPTION 'a tag has to be 1 to 128 of A-Z a-z 0-9 . _ : -' USING ERRCODE = 'invalid_parameter_value';
        END IF;
    END LOOP;
    IF new_id IS NULL THEN
        -- Version 7: the time, then chance.
        bits := replace(gen_random_uuid()::text, '-', '');
        new_id := (lpad(to_hex(micros() / 1000), 12, '0') || '7' || substr(bits, 14))::uuid;
    END IF;
    asked := jsonb_build_object('id', new_id, 'kind', kind, 'queue', queue, 'priority', priority,
        'at', (extract(epoch FROM run_at) * 1000000)::bigint, 'gated', ordering_key IS NOT NULL);
    IF cardinality(tags) > 0 THEN
        asked := asked || jsonb_build_object('tags', tags);
        terms := terms || jsonb_build_object('tags', tags);
    END IF;
    IF unique_key IS NOT NULL THEN
        -- As the library makes it of a kind and a key.
        digest := substr(sha256('kind'::bytea || int8send(octet_length(kind)) || convert_to(kind, 'UTF8')
            || 'key'::bytea || int8send(octet_length(unique_key)) || convert_to(unique_key, 'UTF8')), 1, 16);
        asked := asked || jsonb_build_object('key', encode(digest, 'hex'), 'conflict', 'return');
        terms := terms || jsonb_build_object('unique', jsonb_build_object(
            'key', (SELECT jsonb_agg(get_byte(digest, n) ORDER BY n) FROM generate_series(0, 15) n),
            'window', 'while_unfinished', 'on_conflict', 'return'));
    END IF;
    IF ordering_key IS NOT NULL THEN
        terms := terms || jsonb_build_object('ordering', jsonb_build_object('key', ordering_key));
    END IF;
    IF terms <> '{}' THEN
        asked := asked || jsonb_build_object('terms', terms::text);
    END IF;
    answer := accept(asked, convert_to(args::text, 'UTF8'));
    IF answer LIKE 'id_taken %' THEN
        RAISE EXCEPTION 'job % exists with another kind or args', new_id USING ERRCODE = 'unique_violation';
    END IF;
    IF answer LIKE 'queue_full %' THEN
        RAISE EXCEPTION 'the queue % is full: % jobs wait in it', queue, split_part(answer, ' ', 2)
            USING ERRCODE = 'configuration_limit_exceeded';
    END IF;
    RETURN CASE WHEN answer = 'new' THEN new_id ELSE split_part(answer, ' ', 2)::uuid END;
END $body$;
