-- What any program may do that speaks SQL: also args of the type jsonb, limit keys and share keys.

DO $$ BEGIN PERFORM set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true); END $$;

-- Enqueues a job. A role needs EXECUTE on this function alone: it has one signature, so that GRANT can name it without
-- its parameters, and both functions `enqueue` below call it with the rights of their caller.
CREATE FUNCTION enqueue_job(
    kind text,
    args json,
    queue text,
    priority int,
    run_at timestamptz,
    unique_key text,
    ordering_key text,
    tags text[],
    id uuid,
    limit_key text,
    limit_max_running int,
    share_key text
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
    IF limit_key = '' OR octet_length(limit_key) > 256 OR limit_key ~ '[[:cntrl:]]' THEN
        RAISE EXCEPTION 'the limit key has to be 1 to 256 bytes without control characters'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF limit_key ~ '^(singleton|reservation|writer)/' THEN
        RAISE EXCEPTION 'limit keys that begin with singleton/, reservation/ or writer/ are reserved'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF limit_max_running IS NOT NULL AND (limit_key IS NULL OR limit_max_running NOT BETWEEN 1 AND 1000000) THEN
        RAISE EXCEPTION 'limit_max_running has to be 1 to 1000000, together with limit_key'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF share_key = '' OR octet_length(share_key) > 256 OR share_key ~ '[[:cntrl:]]' THEN
        RAISE EXCEPTION 'the share key has to be 1 to 256 bytes without control characters'
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
        'at', (extract(epoch FROM run_at) * 1000000)::bigint, 'gated',
        ordering_key IS NOT NULL OR limit_key IS NOT NULL OR share_key IS NOT NULL);
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
    IF limit_key IS NOT NULL THEN
        terms := terms || jsonb_build_object('limit',
            jsonb_strip_nulls(jsonb_build_object('key', limit_key, 'most', limit_max_running)));
    END IF;
    IF share_key IS NOT NULL THEN
        terms := terms || jsonb_build_object('share', share_key);
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

-- Whoever was allowed to enqueue still is.
DO $do$
DECLARE
    role oid;
BEGIN
    REVOKE ALL ON FUNCTION enqueue_job FROM PUBLIC;
    FOR role IN SELECT DISTINCT a.grantee FROM pg_proc p, aclexplode(p.proacl) a
        WHERE p.oid = 'enqueue(text, json, text, int, timestamptz, text, text, text[], uuid)'::regprocedure
            AND a.privilege_type = 'EXECUTE' AND a.grantee <> p.proowner
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION enqueue_job TO %s',
            CASE WHEN role = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(role)) END);
    END LOOP;
END $do$;
DROP FUNCTION enqueue(text, json, text, int, timestamptz, text, text, text[], uuid);

-- Args of the type json, and those whose type is not said: a quoted literal, or a parameter.
CREATE FUNCTION enqueue(
    kind text,
    args json DEFAULT '{}',
    queue text DEFAULT 'default',
    priority int DEFAULT 0,
    run_at timestamptz DEFAULT NULL,
    unique_key text DEFAULT NULL,
    ordering_key text DEFAULT NULL,
    tags text[] DEFAULT '{}',
    id uuid DEFAULT NULL,
    limit_key text DEFAULT NULL,
    limit_max_running int DEFAULT NULL,
    share_key text DEFAULT NULL
) RETURNS uuid
LANGUAGE sql VOLATILE SET search_path FROM CURRENT
AS $body$ SELECT enqueue_job($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) $body$;

-- Args of the type jsonb. PostgreSQL prefers text where the type of an argument is not said: since the kind is of another
-- type here, a call whose args are a literal means the function above, and is not ambiguous.
CREATE FUNCTION enqueue(
    kind varchar,
    args jsonb,
    queue text DEFAULT 'default',
    priority int DEFAULT 0,
    run_at timestamptz DEFAULT NULL,
    unique_key text DEFAULT NULL,
    ordering_key text DEFAULT NULL,
    tags text[] DEFAULT '{}',
    id uuid DEFAULT NULL,
    limit_key text DEFAULT NULL,
    limit_max_running int DEFAULT NULL,
    share_key text DEFAULT NULL
) RETURNS uuid
LANGUAGE sql VOLATILE SET search_path FROM CURRENT
AS $body$ SELECT enqueue_job($1, $2::json, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) $body$;

GRANT EXECUTE ON FUNCTION enqueue(text, json, text, int, timestamptz, text, text, text[], uuid, text, int, text),
    enqueue(varchar, jsonb, text, int, timestamptz, text, text, text[], uuid, text, int, text) TO PUBLIC;
