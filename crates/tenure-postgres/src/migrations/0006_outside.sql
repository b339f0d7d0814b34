-- What any program may do and see that speaks SQL. Signatures stay; what is added to them has a default. Nobody but the
-- owner may call or see any of it until it is granted:
--   GRANT USAGE ON SCHEMA tenure TO shop;
--   GRANT EXECUTE ON FUNCTION tenure.enqueue TO shop;

-- Enqueues a job in the transaction of whoever calls it, and answers its id; with a unique key that another job holds, the
-- id of that one.
CREATE FUNCTION enqueue(
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
    RETURN CASE WHEN answer = 'new' THEN new_id ELSE split_part(answer, ' ', 2)::uuid END;
END $body$;

-- Asks for a job to be cancelled. False if there is no such job, or it has ended. It is cancelled by whoever looks for jobs
-- next after the commit; one that runs is told, and has thirty seconds to stop.
CREATE FUNCTION cancel(id uuid, reason text DEFAULT '') RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off AS $body$
DECLARE
    job_seq bigint;
BEGIN
    SELECT j.seq INTO job_seq FROM job j LEFT JOIN standing s ON s.seq = j.seq
        WHERE j.id = cancel.id AND coalesce(s.state, 0) < 2;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO arrival (seq, what, id, note) VALUES (job_seq, 3, cancel.id, reason) ON CONFLICT (seq, what) DO NOTHING;
    PERFORM pg_notify(current_schema() || ':tenure', 'da');
    RETURN true;
END $body$;

-- Jobs as people see them.
CREATE VIEW jobs AS
    SELECT j.id, l.kind, l.queue, j.priority,
        CASE coalesce(s.state, 0)
            WHEN 1 THEN 'running' WHEN 2 THEN 'succeeded' WHEN 3 THEN 'failed' WHEN 4 THEN 'cancelled'
            ELSE CASE WHEN k.at BETWEEN 2 AND 4 THEN 'blocked'
                WHEN coalesce(s.due, j.due, j.created) > micros() THEN 'scheduled' ELSE 'queued' END
        END AS state,
        coalesce(s.attempt, 0) AS attempt,
        to_timestamp(j.created / 1000000.0) AS created,
        to_timestamp(coalesce(s.due, j.due, j.created) / 1000000.0) AS due,
        to_timestamp(s.ended / 1000000.0) AS ended,
        convert_from(j.args, 'UTF8') AS args,
        convert_from(s.output, 'UTF8') AS output,
        s.failure
    FROM job j JOIN lane l ON l.id = j.lane
        LEFT JOIN standing s ON s.seq = j.seq LEFT JOIN keyed k ON k.seq = j.seq;

REVOKE ALL ON FUNCTION enqueue(text, json, text, int, timestamptz, text, text, text[], uuid), cancel(uuid, text) FROM PUBLIC;
