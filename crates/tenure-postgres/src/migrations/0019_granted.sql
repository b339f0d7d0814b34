-- Restricts roles that may call some of the functions. Such a role runs no code as the owner, stores no row that stops the
-- workers, and changes only its own leases.

DO $$ BEGIN PERFORM set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true); END $$;

-- Unless the path ends with pg_temp, PostgreSQL looks for tables there first. A caller could then replace a table by one with
-- triggers that run as the owner.
DO $do$
DECLARE
    function record;
BEGIN
    FOR function IN SELECT p.oid::regprocedure AS name, split_part(c.setting, '=', 2) AS path
        FROM pg_proc p CROSS JOIN unnest(p.proconfig) c (setting)
        WHERE p.pronamespace = quote_ident(current_schema())::regnamespace AND p.prokind = 'f'
            AND pg_has_role(p.proowner, 'USAGE') AND c.setting LIKE 'search_path=%' AND c.setting !~ '\ypg_temp"?$'
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %s, pg_temp', function.name, function.path);
    END LOOP;
END $do$;

REVOKE ALL ON FUNCTION stand_alone(uuid), check_lease(text, uuid, bigint, bigint), check_job(bigint, uuid, bigint)
    FROM PUBLIC;

-- Returns a time in microseconds since 1970. Fails if the library cannot read it: every worker would meet it.
CREATE FUNCTION readable_time(what text, micros numeric) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $body$
BEGIN
    IF micros NOT BETWEEN 0 AND 253370764799999999 THEN
        RAISE EXCEPTION '% is out of range: use a time in the years 1970 to 9998', what
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN micros;
END $body$;

-- Fails if the library could not read a lane of this kind in this queue, or a job with this priority and this data.
CREATE FUNCTION refuse_unreadable(kind text, queue text, priority int, data bytea) RETURNS void
LANGUAGE plpgsql STABLE AS $body$
DECLARE
    named CONSTANT text := '^[A-Za-z0-9._:-]{1,128}$';
BEGIN
    IF kind !~ named OR queue !~ named THEN
        RAISE EXCEPTION 'the kind and the queue have to be 1 to 128 of A-Z a-z 0-9 . _ : -'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF priority NOT BETWEEN -100 AND 100 THEN
        RAISE EXCEPTION 'the priority has to be -100 to 100' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- Encrypted data is longer than 256 KiB. A database in another encoding cannot convert all of UTF-8.
    IF octet_length(data) > 524288
        OR getdatabaseencoding() = 'UTF8' AND convert_from(data, 'UTF8')::json IS NULL AND data IS NOT NULL THEN
        RAISE EXCEPTION 'the args and the output have to be JSON of up to 256 KiB'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
END $body$;

-- Lets the functions refuse jobs that the library cannot read. Also checks the keys of a job even if the caller says that it has
-- none.
DO $$
DECLARE
    take_in_before CONSTANT text := pg_get_functiondef('take_in(jsonb, bytea, bigint)'::regprocedure);
    take_in_now CONSTANT text := replace(replace(take_in_before,
        '(asked->>''gated'')::boolean', '((asked->>''gated'')::boolean
        OR asked->>''terms'' IS NOT NULL AND (asked->>''terms'')::jsonb ?| ARRAY[''ordering'', ''limit'', ''share'', ''after''])'),
        'PERFORM refuse_reserved(asked->>''kind'', asked->>''queue'', job_id);',
        'PERFORM refuse_reserved(asked->>''kind'', asked->>''queue'', job_id);
    PERFORM refuse_unreadable(asked->>''kind'', asked->>''queue'', job_priority, job_args);
    PERFORM readable_time(''the present'', present), readable_time(''run_at'', job_due),
        readable_time(''the end of the unique key'', key_until);
    -- A job with such terms would pass for the run of a schedule, or for the job of a client of the server.
    IF job_terms::jsonb ?| ARRAY[''slot'', ''owner''] THEN
        RAISE EXCEPTION ''the terms slot and owner are reserved: leave them out'' USING ERRCODE = ''invalid_parameter_value'';
    END IF;
    -- Jobs with the limit key of a webhook would stop its deliveries.
    IF job_terms::jsonb #>> ''{ordering,key}'' LIKE ''tenure.%'' OR job_terms::jsonb #>> ''{limit,key}'' LIKE ''tenure.%'' THEN
        RAISE EXCEPTION ''the prefix tenure. is reserved: use other ordering and limit keys''
            USING ERRCODE = ''invalid_parameter_value'';
    END IF;');
    enqueue_before CONSTANT text := pg_get_functiondef('enqueue_job'::regproc);
    enqueue_now CONSTANT text := replace(enqueue_before,
        '(extract(epoch FROM run_at) * 1000000)::bigint',
        'readable_time(''run_at'', extract(epoch FROM run_at) * 1000000)');
    accept_before CONSTANT text := pg_get_functiondef('accept_all(jsonb, bytea, bigint)'::regprocedure);
    accept_now CONSTANT text := replace(replace(accept_before,
        'PERFORM refuse_reserved(NULL, NULL, (a.value->>''id'')::uuid) FROM jsonb_array_elements(asked->''jobs'') a;',
        'PERFORM refuse_reserved(NULL, NULL, (a.value->>''id'')::uuid) FROM jsonb_array_elements(asked->''jobs'') a;
    PERFORM readable_time(''the present'', present);'),
        'SELECT u.id, u.lane, u.priority, present, substr(bytes, (u.upto - u.size)::int + 1, u.size) FROM u ORDER BY u.n',
        'SELECT u.id, u.lane, u.priority, present, a.args
            FROM u CROSS JOIN LATERAL (SELECT substr(bytes, (u.upto - u.size)::int + 1, u.size) AS args) a
                CROSS JOIN LATERAL refuse_unreadable(NULL, NULL, u.priority, a.args)
            ORDER BY u.n');
    end_before CONSTANT text := pg_get_functiondef(
        'end_job(bigint, uuid, bigint, bigint, bytea, text, bigint)'::regprocedure);
    end_now CONSTANT text := replace(end_before,
        'PERFORM stand_alone(job_id);',
        'PERFORM readable_time(''the present'', present), readable_time(''the end of the retention'', present::numeric + kept_for);
    PERFORM refuse_unreadable(NULL, NULL, NULL, nullif(job_output, ''''));
    PERFORM stand_alone(job_id);');
BEGIN
    IF take_in_now NOT LIKE '%''owner'']%?| ARRAY[''ordering''%' OR enqueue_now = enqueue_before OR end_now = end_before
        OR accept_now NOT LIKE '%readable_time%refuse_unreadable%' THEN
        RAISE EXCEPTION 'a function is not that of an earlier step';
    END IF;
    EXECUTE take_in_now;
    EXECUTE enqueue_now;
    EXECUTE accept_now;
    EXECUTE end_now;
END $$;

-- The role and the fence of the last ownership that SQL granted. The fence of an ownership that the library granted is
-- another one.
ALTER TABLE lease ADD COLUMN sql_role text;
ALTER TABLE lease ADD COLUMN sql_fence bigint;

-- Returns the role that calls a function of the owner.
CREATE FUNCTION caller() RETURNS text LANGUAGE sql STABLE
    AS $$ SELECT coalesce(nullif(current_setting('role'), 'none'), session_user::text) $$;

-- Returns whether SQL granted this ownership to the caller, or to a role of which the caller is a member.
CREATE FUNCTION is_callers(l lease) RETURNS boolean LANGUAGE sql STABLE AS $body$
    SELECT l.sql_fence = l.fence AND EXISTS (SELECT FROM pg_roles r
        WHERE r.rolname = l.sql_role AND pg_has_role(caller()::name, r.oid, 'MEMBER')) $body$;

CREATE FUNCTION refuse_lease_name(lease_name text) RETURNS void
LANGUAGE plpgsql IMMUTABLE AS $body$
BEGIN
    IF lease_name IS NULL OR octet_length(lease_name) NOT BETWEEN 1 AND 1024 OR lease_name ~ '[\u0001-\u001f\u007f-\u009f]'
        OR lease_name ~ '(^|/)\.\.?(/|$)' THEN
        RAISE EXCEPTION
            'the name of a lease has to be 1 to 1024 bytes without control characters, no part between slashes being . or ..'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF lease_name LIKE ANY (ARRAY['singleton/%', 'reservation/%', 'writer/%']) THEN
        RAISE EXCEPTION 'the lease % is reserved: use a name that does not begin with singleton/, reservation/ or writer/',
            lease_name USING ERRCODE = 'invalid_parameter_value';
    END IF;
END $body$;

-- Locks the lease of this name and returns it.
CREATE OR REPLACE FUNCTION lease_of(lease_name text) RETURNS lease
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off AS $body$
DECLARE
    found_lease lease;
BEGIN
    PERFORM refuse_lease_name(lease_name);
    SELECT * INTO found_lease FROM lease l WHERE l.name = lease_name FOR NO KEY UPDATE;
    RETURN found_lease;
END $body$;

-- Locks a lease that SQL granted to the caller under this fence, and returns it; a row of NULLs if it is another's. A lock
-- on the lease of another holder would keep that one from renewing it.
CREATE FUNCTION callers_lease(lease_name text, lease_fence bigint) RETURNS lease
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off AS $body$
DECLARE
    l lease;
BEGIN
    PERFORM refuse_lease_name(lease_name);
    SELECT * INTO l FROM lease u WHERE u.name = lease_name;
    IF l.fence = lease_fence AND is_callers(l) THEN
        l := lease_of(lease_name);
        IF l.fence = lease_fence AND is_callers(l) THEN
            RETURN l;
        END IF;
    END IF;
    RETURN NULL;
END $body$;

-- Returns whether a lease is held against a request of the caller. The ledger has one refusal of each holder for each
-- ownership.
CREATE FUNCTION refuses(l lease, lease_id uuid, holder text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off AS $body$
DECLARE
    present CONSTANT bigint := micros();
    is_held CONSTANT boolean :=
        l.phase = 0 AND (l.until IS NULL OR l.until > present) OR l.phase = 1 AND l.until > present;
BEGIN
    IF is_held IS NOT TRUE OR l.phase = 0 AND l.id = lease_id AND is_callers(l) THEN
        RETURN false;
    END IF;
    IF NOT EXISTS (SELECT FROM ledger e WHERE e.lease = l.number AND e.fence = l.fence AND e.who = holder
            AND e.host IS NULL AND e.what = 4) THEN
        INSERT INTO lease_note (lease, fence, at, until, what, who, note)
            VALUES (l.number, l.fence, present, l.until, 4, holder, '');
    END IF;
    RETURN true;
END $body$;

-- As before, but that it notes the role, and neither locks nor renews the lease of another holder.
CREATE OR REPLACE FUNCTION acquire_lease(
    name text,
    holder text,
    ttl interval DEFAULT '30 seconds',
    id uuid DEFAULT NULL
) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off AS $body$
DECLARE
    span CONSTANT bigint := (extract(epoch FROM ttl) * 1000000)::bigint;
    lease_id CONSTANT uuid := coalesce(acquire_lease.id, gen_random_uuid());
    l lease;
    present bigint;
    free_since bigint;
    new_fence bigint;
    ahead bigint;
    mine bigint;
BEGIN
    IF span IS NULL OR span NOT BETWEEN 1000000 AND 86400000000 THEN
        RAISE EXCEPTION 'the ttl of a lease has to be 1 second to 24 hours' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF holder IS NULL OR octet_length(holder) > 256 OR holder ~ '[\u0001-\u001f\u007f-\u009f]' THEN
        RAISE EXCEPTION 'the holder of a lease has to be up to 256 bytes without control characters'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- A lock on the lease of another holder would keep that one from renewing it.
    PERFORM refuse_lease_name(acquire_lease.name);
    SELECT * INTO l FROM lease u WHERE u.name = acquire_lease.name;
    IF refuses(l, lease_id, holder) THEN
        RETURN NULL;
    END IF;
    l := lease_of(acquire_lease.name);
    IF l.number IS NULL THEN
        INSERT INTO lease (name, fence, forgotten, freed) VALUES (acquire_lease.name, 0, false, 0) ON CONFLICT DO NOTHING;
        l := lease_of(acquire_lease.name);
        -- Another transaction has made it, which this one does not see.
        PERFORM surely(l.number IS NOT NULL);
    END IF;
    IF refuses(l, lease_id, holder) THEN
        RETURN NULL;
    END IF;
    present := micros();
    IF l.phase = 0 AND (l.until IS NULL OR l.until > present) AND l.id = lease_id AND is_callers(l) THEN
        UPDATE lease u SET ttl = span, until = present + span, look = least(u.look, present + span)
            WHERE u.number = l.number;
        RETURN l.fence;
    END IF;
    free_since := CASE WHEN l.phase IS NULL OR l.phase = 2 THEN l.freed ELSE coalesce(l.until, l.freed) END;
    SELECT w.place INTO mine FROM lease_line w WHERE w.lease = l.number AND w.id = lease_id AND w.until > present;
    SELECT count(*) INTO ahead FROM lease_line w WHERE w.lease = l.number AND w.until > present
        AND (mine IS NULL OR w.place < mine);
    -- Those who came first have a head start. Before the bar, no lease is granted.
    IF least(free_since, present) + 250000 * least(ahead, 8) > present
        OR (SELECT m.value FROM meta m WHERE m.name = 'bar') > present THEN
        IF free_since > present THEN
            -- The clock was put back: it is free since now.
            UPDATE lease u SET freed = present, until = CASE WHEN u.phase = 3 THEN present ELSE u.until END
                WHERE u.number = l.number;
        END IF;
        DELETE FROM lease u WHERE u.number = l.number AND u.fence = 0 AND u.phase IS NULL;
        RETURN NULL;
    END IF;
    IF l.fence > 0 THEN
        -- A transaction that has checked in under the last ownership has to end first.
        PERFORM FROM lease u WHERE u.number = l.number FOR UPDATE SKIP LOCKED;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
    END IF;
    IF l.phase = 0 THEN
        INSERT INTO lease_note (lease, fence, at, since, host, what, who, meta, note)
            VALUES (l.number, l.fence, l.until, l.since, l.host, 6, coalesce(l.who, ''), l.meta, '');
    END IF;
    new_fence := greatest(l.fence, (SELECT m.value FROM meta m WHERE m.name = 'floor')) + 1;
    UPDATE lease u SET fence = new_fence, forgotten = false, phase = 0, id = lease_id, since = present, ttl = span,
            until = present + span, look = least(u.look, present + span), host = NULL, who = holder, meta = NULL,
            sql_role = caller(), sql_fence = new_fence
        WHERE u.number = l.number;
    DELETE FROM lease_line w WHERE w.lease = l.number AND w.id = lease_id;
    UPDATE ledger e SET present = false WHERE e.lease = l.number AND e.fence = l.fence AND e.present;
    INSERT INTO lease_note (lease, fence, at, since, until, what, who, note)
        VALUES (l.number, new_fence, present, present, present + span, CASE WHEN l.phase IS NULL THEN 0 ELSE 1 END, holder,
            CASE WHEN l.phase IS NULL THEN '' ELSE 'after ' || coalesce(nullif(l.who, ''), 'host ' || l.host,
                'somebody unnamed') END);
    PERFORM pg_notify(current_schema() || ':tenure', 'w');
    RETURN new_fence;
END $body$;

-- As before, but only for the role that acquired the lease by SQL.
CREATE OR REPLACE FUNCTION renew_lease(name text, fence bigint, ttl interval DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off AS $body$
DECLARE
    span CONSTANT bigint := (extract(epoch FROM renew_lease.ttl) * 1000000)::bigint;
    l lease;
    present bigint;
BEGIN
    IF span NOT BETWEEN 1000000 AND 86400000000 THEN
        RAISE EXCEPTION 'the ttl of a lease has to be 1 second to 24 hours' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    l := callers_lease(renew_lease.name, renew_lease.fence);
    present := micros();
    IF l.number IS NULL OR l.phase IS DISTINCT FROM 0 OR l.until <= present THEN
        RETURN false;
    END IF;
    UPDATE lease u SET ttl = coalesce(span, u.ttl), until = present + coalesce(span, u.ttl),
            look = least(u.look, present + coalesce(span, u.ttl))
        WHERE u.number = l.number;
    RETURN true;
END $body$;

CREATE OR REPLACE FUNCTION release_lease(name text, fence bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off AS $body$
DECLARE
    l lease;
    present bigint;
    has_lapsed boolean;
BEGIN
    l := callers_lease(release_lease.name, release_lease.fence);
    present := micros();
    IF l.number IS NULL OR l.phase IS NULL THEN
        RETURN false;
    END IF;
    has_lapsed := l.phase = 3 OR l.phase = 0 AND coalesce(l.until <= present, false);
    IF l.phase < 2 AND (l.phase = 0 OR l.until > present) THEN
        INSERT INTO lease_note (lease, fence, at, since, host, what, who, meta, note)
            VALUES (l.number, l.fence, CASE WHEN has_lapsed THEN l.until ELSE present END, l.since, l.host,
                CASE WHEN has_lapsed THEN 6 ELSE 7 END, coalesce(l.who, ''), l.meta, '');
    END IF;
    UPDATE lease u SET phase = NULL, id = NULL, since = NULL, until = NULL, look = NULL, host = NULL, who = NULL,
            meta = NULL, freed = CASE WHEN l.phase = 2 THEN l.freed WHEN has_lapsed OR l.phase = 1 AND l.until <= present
                THEN l.until ELSE present END
        WHERE u.number = l.number;
    UPDATE ledger e SET present = false WHERE e.lease = l.number AND e.fence = l.fence AND e.present;
    PERFORM pg_notify(current_schema() || ':tenure', 'f');
    RETURN true;
END $body$;

REVOKE ALL ON FUNCTION readable_time(text, numeric), refuse_unreadable(text, text, int, bytea), caller(),
    is_callers(lease), refuse_lease_name(text), callers_lease(text, bigint), refuses(lease, uuid, text) FROM PUBLIC;
