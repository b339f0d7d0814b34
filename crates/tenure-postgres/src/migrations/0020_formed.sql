-- Checks the form and the size of everything that a SQL caller passes about a job. A job that the library reads differently
-- than these functions, or cannot read at all, would stop workers.

DO $$ BEGIN PERFORM set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true); END $$;

-- Returns the form of the terms of a job, within the limits of the library. The terms `slot` and `owner` are missing: a job with
-- them would pass for the run of a schedule, or for the job of a client of the server.
--
-- A form is one of these. `whole`: a number, from and to. `text`: the least and most bytes, and a pattern if there is one.
-- `json`: a pattern for the value as PostgreSQL writes it. `list`: the form of each item, and the least and most items. `map`: the
-- form of names and values, and the most of them. `object`: the form of each member, and those that it must have, or how many.
CREATE FUNCTION terms_form() RETURNS jsonb LANGUAGE sql IMMUTABLE AS $form$ SELECT replace(replace(replace($json${
    "object": {
        "attempts": {"whole": [1, 10000]},
        "retry": {"object": {
            "backoff": {"object": {
                "fixed": {"json": "^SPAN$"},
                "steps": {"list": {"json": "^SPAN$"}, "items": [1, 100]},
                "exponential": {"json": "^\\{\"first\": SPAN, \"ceiling\": SPAN\\}$"}
            }, "members": 1},
            "max_attempts": {"whole": [1, 10000]},
            "max_deliveries": {"whole": [1, 1000000]}
        }},
        "timeout": {"json": "^SPAN$"},
        "retention": {"json": "^\\{\"failed\": (\"forever\"|\\{\"for\": SPAN\\}), \"succeeded\": (\"forever\"|\\{\"for\": SPAN\\})\\}$"},
        "tags": {"list": {"text": [1, 128], "like": "^[A-Za-z0-9._:-]+$"}, "items": [0, 32]},
        "meta": {"map": {"text": [0, 1024]}, "most": 64},
        "unique": {"object": {
            "key": {"json": "^\\[BYTE(, BYTE){15}\\]$"},
            "window": {"json": "^(\"while_unfinished\"|\\{\"for\": SPAN\\})$"},
            "on_conflict": {"json": "^\"(return|reject|replace)\"$"}
        }, "needs": ["key", "window", "on_conflict"]},
        "ordering": {"object": {"key": KEY, "head": {"json": "^\"(block|step_aside)\"$"}}, "needs": ["key"]},
        "limit": {"object": {"key": KEY, "most": {"whole": [1, 1000000]}}, "needs": ["key"]},
        "share": KEY,
        "after": {"object": {
            "jobs": {"list": {"text": [36, 36], "like": "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"}, "items": [1, 1000]},
            "if_failed": {"json": "^\"(cancel|run)\"$"}
        }, "needs": ["jobs"]}
    }
}$json$, 'SPAN', '\\{\"secs\": ([0-2]?[0-9]{1,9}|3[01][0-9]{8}), \"nanos\": [0-9]{1,9}\\}'),
    'BYTE', '(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])'),
    'KEY', '{"text": [1, 256], "like": "^[^\\u0001-\\u001f\\u007f-\\u009f]+$"}')::jsonb $form$;

-- Returns the path of a part that does not have its form; NULL if all of them do.
CREATE FUNCTION misfit(value jsonb, form jsonb, path text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $body$
DECLARE
    sort CONSTANT text := jsonb_typeof(value);
    words CONSTANT text := CASE WHEN sort IN ('string', 'number') THEN value #>> '{}' END;
    found text;
    part record;
BEGIN
    IF sort = 'string' AND form ? 'text' THEN
        IF octet_length(words) BETWEEN (form #>> '{text,0}')::int AND (form #>> '{text,1}')::int
            AND (words ~ (form ->> 'like')) IS NOT FALSE THEN
            RETURN NULL;
        END IF;
    ELSIF form ? 'json' THEN
        IF value::text ~ (form ->> 'json') THEN
            RETURN NULL;
        END IF;
    ELSIF sort = 'number' AND form ? 'whole' AND words ~ '^[0-9]{1,18}$' THEN
        IF words::bigint BETWEEN (form #>> '{whole,0}')::bigint AND (form #>> '{whole,1}')::bigint THEN
            RETURN NULL;
        END IF;
    ELSIF sort = 'array' AND form ? 'list' THEN
        IF jsonb_array_length(value) BETWEEN (form #>> '{items,0}')::int AND (form #>> '{items,1}')::int THEN
            FOR part IN SELECT e.value, e.n FROM jsonb_array_elements(value) WITH ORDINALITY e (value, n) LOOP
                found := coalesce(found, misfit(part.value, form -> 'list', path || '[' || (part.n - 1)::text || ']'));
            END LOOP;
            RETURN found;
        END IF;
    ELSIF sort = 'object' AND form ? 'map' THEN
        IF (SELECT count(*) FROM jsonb_object_keys(value)) <= (form ->> 'most')::bigint THEN
            FOR part IN SELECT e.key, e.value FROM jsonb_each(value) e LOOP
                found := coalesce(found, misfit(to_jsonb(part.key), form -> 'map', path),
                    misfit(part.value, form -> 'map', path || '.' || part.key));
            END LOOP;
            RETURN found;
        END IF;
    ELSIF sort = 'object' AND form ? 'object' THEN
        IF value ?& ARRAY(SELECT jsonb_array_elements_text(form -> 'needs'))
            AND (NOT form ? 'members' OR (SELECT count(*) FROM jsonb_object_keys(value)) = (form ->> 'members')::bigint) THEN
            FOR part IN SELECT e.key, e.value FROM jsonb_each(value) e LOOP
                -- A member that is not known has no form, so it is a misfit.
                found := coalesce(found, misfit(part.value, coalesce(form -> 'object' -> part.key, '{}'),
                    path || '.' || left(part.key, 128)));
            END LOOP;
            RETURN found;
        END IF;
    END IF;
    RETURN path;
END $body$;

-- Returns the caller's job, with keys, tags and dependencies taken only from its terms. Fails if the library could
-- not read the terms, or would read them differently.
CREATE FUNCTION formed(asked jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $body$
DECLARE
    terms jsonb;
    wrong text;
    unique_key text;
BEGIN
    IF jsonb_typeof(asked) IS DISTINCT FROM 'object' OR octet_length(asked ->> 'terms') > 1048576 THEN
        RAISE EXCEPTION 'a job has to be a JSON object, with terms of up to 1 MiB' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    asked := asked - ARRAY['gated', 'tags', 'after', 'key', 'key_for', 'conflict'];
    IF asked ->> 'terms' IS NULL THEN
        RETURN asked;
    END IF;
    terms := (asked ->> 'terms')::jsonb;
    wrong := misfit(terms, terms_form(), 'terms');
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION '% does not have the form or size that Tenure expects', wrong USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT string_agg(lpad(to_hex(b.value::int), 2, '0'), '' ORDER BY b.n) INTO unique_key
        FROM jsonb_array_elements_text(terms #> '{unique,key}') WITH ORDINALITY b (value, n);
    -- Keys that begin with `tenure` are those of programs. A job with such a key would hold back a run, or replace it.
    IF unique_key LIKE '74656e757265%' THEN
        RAISE EXCEPTION 'this unique key is reserved: use another one' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- As PostgreSQL writes them, terms have no member twice.
    RETURN asked || jsonb_strip_nulls(jsonb_build_object('terms', terms::text, 'tags', terms -> 'tags',
        'after', terms #> '{after,jobs}', 'gated', terms ?| ARRAY['ordering', 'limit', 'share', 'after'],
        'key', unique_key, 'conflict', terms #> '{unique,on_conflict}',
        'key_for', (terms #>> '{unique,window,for,secs}')::bigint * 1000000
            + (terms #>> '{unique,window,for,nanos}')::bigint / 1000));
END $body$;

-- Functions of earlier steps check what they are given with the functions above. Arguments have the exact types of their
-- parameters, so that no other function of the same name is a better match.
DO $do$
DECLARE
    take_in_before CONSTANT text := pg_get_functiondef('take_in(jsonb, bytea, bigint)'::regprocedure);
    take_in_now CONSTANT text := replace(replace(replace(replace(replace(take_in_before,
        E'$function$\nDECLARE', E'$function$\nBEGIN asked := formed(asked);\nDECLARE'),
        'END $function$', E'END;\nEND $function$'),
        'refuse_unreadable(asked->>''kind'', asked->>''queue'', job_priority, job_args)',
        'refuse_unreadable(coalesce(asked->>''kind'', ''''), asked->>''queue'', job_priority::int, job_args)'),
        'readable_time(''the present'', present), readable_time(''run_at'', job_due),',
        'readable_time(''the present'', present::numeric), readable_time(''run_at'', job_due::numeric),'),
        'readable_time(''the end of the unique key'', key_until)',
        'readable_time(''the end of the unique key'', key_until::numeric)');
    accept_before CONSTANT text := pg_get_functiondef('accept_all(jsonb, bytea, bigint)'::regprocedure);
    accept_now CONSTANT text := replace(replace(accept_before,
        'readable_time(''the present'', present)', 'readable_time(''the present'', present::numeric)'),
        'refuse_unreadable(NULL, NULL, u.priority, a.args)', 'refuse_unreadable(NULL::text, NULL::text, u.priority::int, a.args)');
    cancel_before CONSTANT text := pg_get_functiondef('cancel(uuid, text)'::regprocedure);
    -- The library cuts and marks a reason of more than 1024 bytes.
    cancel_now CONSTANT text := replace(cancel_before, 'cancel.id, reason)', 'cancel.id, left(reason, 1025))');
    end_before CONSTANT text := pg_get_functiondef(
        'end_job(bigint, uuid, bigint, bigint, bytea, text, bigint)'::regprocedure);
    end_now CONSTANT text := replace(replace(end_before,
        'readable_time(''the present'', present),', 'readable_time(''the present'', present::numeric),'),
        'PERFORM refuse_unreadable(NULL, NULL, NULL, nullif(job_output, ''''));',
        'PERFORM refuse_unreadable(NULL::text, NULL::text, NULL::int, nullif(job_output, ''''::bytea));
    IF job_place = '''' OR octet_length(job_place) > 2048 OR job_place ~ ''[\u0001-\u001f\u007f-\u009f]'' THEN
        RAISE EXCEPTION ''the place of a result has to be 1 to 2048 bytes without control characters''
            USING ERRCODE = ''invalid_parameter_value'';
    END IF;');
BEGIN
    IF take_in_now NOT LIKE '%formed(asked)%DECLARE%job_priority::int%present::numeric%key_until::numeric%END;%'
        OR accept_now NOT LIKE '%present::numeric%u.priority::int%' OR cancel_now = cancel_before
        OR end_now NOT LIKE '%present::numeric)%NULL::int%' THEN
        RAISE EXCEPTION 'a function is not that of an earlier step';
    END IF;
    EXECUTE take_in_now;
    EXECUTE accept_now;
    EXECUTE cancel_now;
    EXECUTE end_now;
END $do$;

REVOKE ALL ON FUNCTION terms_form(), misfit(jsonb, jsonb, text), formed(jsonb) FROM PUBLIC;
