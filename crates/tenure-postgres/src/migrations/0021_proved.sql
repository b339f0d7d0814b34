-- A role that may call some of the functions ends only jobs whose holder it knows. It enqueues only jobs that the library would
-- accept. If this version cannot accept an arrival, the other arrivals continue.

DO $$ BEGIN PERFORM set_config('search_path', quote_ident(current_schema()::text) || ', pg_temp', true); END $$;

-- Programs skip an arrival until `again`.
ALTER TABLE arrival ADD COLUMN again bigint NOT NULL DEFAULT 0;
CREATE INDEX arrival_again ON arrival (again);

-- `current_schema()` returns a `name`, and these functions pass it to functions that take a `text`. Without the cast, PostgreSQL
-- would prefer a function of another role that takes a `name`.
DO $do$
DECLARE
    function record;
BEGIN
    FOR function IN SELECT p.oid AS id FROM pg_proc p
        WHERE p.pronamespace = quote_ident(current_schema()::text)::regnamespace::oid AND p.prokind = 'f'
            AND pg_has_role(p.proowner, 'USAGE') AND p.prosrc LIKE '%current_schema()%'
    LOOP
        EXECUTE replace(pg_get_functiondef(function.id), 'current_schema()', 'current_schema()::text');
    END LOOP;
END $do$;

-- Replaces the function of 0020: timeouts and windows of unique keys are longer than zero, and no span is longer than a hundred
-- years.
CREATE OR REPLACE FUNCTION terms_form() RETURNS jsonb LANGUAGE sql IMMUTABLE AS $form$ SELECT replace(replace(replace(replace($json${
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
        "timeout": {"json": "^(?!ZERO)SPAN$"},
        "retention": {"json": "^\\{\"failed\": (\"forever\"|\\{\"for\": SPAN\\}), \"succeeded\": (\"forever\"|\\{\"for\": SPAN\\})\\}$"},
        "tags": {"list": {"text": [1, 128], "like": "^[A-Za-z0-9._:-]+$"}, "items": [0, 32]},
        "meta": {"map": {"text": [0, 1024]}, "most": 64},
        "unique": {"object": {
            "key": {"json": "^\\[BYTE(, BYTE){15}\\]$"},
            "window": {"json": "^(\"while_unfinished\"|\\{\"for\": (?!ZERO)SPAN\\})$"},
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
}$json$, 'SPAN', '(\\{\"secs\": ([0-9]{1,9}|[12][0-9]{9}|30[0-9]{8}|31[0-5][0-9]{7}|316[01][0-9]{6}|3162[01][0-9]{5}|31622[0-3][0-9]{4}), \"nanos\": [0-9]{1,9}\\}|\\{\"secs\": 3162240000, \"nanos\": 0\\})'),
    'ZERO', '\\{\"secs\": 0, \"nanos\": 0\\}'),
    'BYTE', '(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])'),
    'KEY', '{"text": [1, 256], "like": "^[^\\u0001-\\u001f\\u007f-\\u009f]+$"}')::jsonb $form$;

-- Refuses args in the form of encrypted ones: no worker could decrypt them, so the job would wait forever. The other functions also
-- store the jobs of a library that encrypts, so they accept this form.
DO $do$
DECLARE
    enqueue_before CONSTANT text := pg_get_functiondef('enqueue_job'::regproc);
    enqueue_now CONSTANT text := replace(enqueue_before,
        '    IF unique_key = '''' OR',
        '    IF starts_with(args::text, ''{"$sealed":"VE5SR''::text) THEN
        RAISE EXCEPTION ''the args have the form of encrypted args: use args in plain JSON''
            USING ERRCODE = ''invalid_parameter_value'';
    END IF;
    IF unique_key = '''' OR');
BEGIN
    IF enqueue_now = enqueue_before THEN
        RAISE EXCEPTION 'enqueue_job is not the function of an earlier step';
    END IF;
    EXECUTE enqueue_now;
END $do$;

-- Replaces the functions of 0012: unless the caller has the rights of the owner, it must know the holder of the job. A caller can
-- guess fencing tokens, because they count up by one. Jobs of Tenure itself and of programs cannot end in a user's transaction.
CREATE FUNCTION end_job(job_seq bigint, job_id uuid, job_fence bigint, kept_for bigint, job_output bytea,
    job_place text, at bigint, job_holder uuid) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off AS $body$
DECLARE
    present bigint := coalesce(at, micros());
    done record;
    is_keyed boolean;
BEGIN
    PERFORM readable_time('the present'::text, present::numeric),
        readable_time('the end of the retention'::text, present::numeric + kept_for::numeric);
    PERFORM refuse_unreadable(NULL::text, NULL::text, NULL::int, nullif(job_output, ''::bytea));
    IF job_place = '' OR octet_length(job_place) > 2048 OR job_place ~ '[\u0001-\u001f\u007f-\u009f]' THEN
        RAISE EXCEPTION 'the place of a result has to be 1 to 2048 bytes without control characters'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF job_holder IS NULL AND NOT pg_has_role(caller()::name, current_user, 'MEMBER') THEN
        RAISE EXCEPTION 'only the owner may end a job without its holder: pass job_holder'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM refuse_reserved(l.kind, l.queue, NULL::uuid) FROM job j JOIN lane l ON l.id = j.lane WHERE j.id = job_id;
    PERFORM stand_alone(job_id);
    UPDATE standing s SET state = 2, lapse = NULL, until = NULL, cancel = NULL, ended = present,
            expires = present + kept_for, output = job_output, place = job_place
        WHERE s.seq = job_seq AND s.fence = job_fence AND s.state = 1 AND (job_holder IS NULL OR s.holder = job_holder)
            AND EXISTS (SELECT FROM job j WHERE j.seq = job_seq AND j.id = job_id)
        RETURNING s.lane, s.awaited INTO done;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the job % is no longer held under this fence by this holder', job_id USING ERRCODE = 'TE001';
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
    RETURN is_keyed OR done.awaited OR EXISTS (SELECT FROM lane l JOIN queue q ON q.name = l.queue
        WHERE l.id = done.lane AND q.limit_to IS NOT NULL);
END $body$;

-- Replaces the function of 0012: takes the holder.
CREATE FUNCTION complete_job(job_seq bigint, job_id uuid, job_fence bigint, kept_for bigint, job_output bytea,
    job_place text, at bigint DEFAULT NULL, job_holder uuid DEFAULT NULL) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off AS $body$
BEGIN
    IF end_job(job_seq, job_id, job_fence, kept_for, job_output, job_place, at, job_holder) THEN
        PERFORM hint('d'::text);
    END IF;
END $body$;

CREATE FUNCTION complete_job_quietly(job_seq bigint, job_id uuid, job_fence bigint, kept_for bigint, job_output bytea,
    job_place text, at bigint DEFAULT NULL, job_holder uuid DEFAULT NULL) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off AS $body$
BEGIN
    RETURN CASE WHEN end_job(job_seq, job_id, job_fence, kept_for, job_output, job_place, at, job_holder)
        THEN pg_current_xact_id()::text END;
END $body$;

REVOKE ALL ON FUNCTION end_job(bigint, uuid, bigint, bigint, bytea, text, bigint, uuid),
    complete_job(bigint, uuid, bigint, bigint, bytea, text, bigint, uuid),
    complete_job_quietly(bigint, uuid, bigint, bigint, bytea, text, bigint, uuid) FROM PUBLIC;

-- Copies the grants of the functions without a holder to those with one.
DO $do$
DECLARE
    function text;
    grantee text;
BEGIN
    FOREACH function IN ARRAY ARRAY['complete_job', 'complete_job_quietly'] LOOP
        FOR grantee IN SELECT DISTINCT CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END
            FROM pg_proc p CROSS JOIN LATERAL aclexplode(p.proacl) g
            WHERE p.oid = (function || '(bigint, uuid, bigint, bigint, bytea, text, bigint)')::regprocedure::oid
                AND g.privilege_type = 'EXECUTE' AND g.grantee <> p.proowner
        LOOP
            EXECUTE format('GRANT EXECUTE ON FUNCTION %I(bigint, uuid, bigint, bigint, bytea, text, bigint, uuid) TO %s',
                function, grantee);
        END LOOP;
    END LOOP;
END $do$;

DROP FUNCTION complete_job(bigint, uuid, bigint, bigint, bytea, text, bigint),
    complete_job_quietly(bigint, uuid, bigint, bigint, bytea, text, bigint),
    end_job(bigint, uuid, bigint, bigint, bytea, text, bigint);
