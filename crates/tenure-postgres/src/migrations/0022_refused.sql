-- A role that may call some of the functions adds no jobs to lanes that do not exist, and cancels only jobs of clients.

DO $$ BEGIN PERFORM set_config('search_path', quote_ident(current_schema()::text) || ', pg_temp', true); END $$;

-- A lane that does not exist had the same queue and kind as a request without both. IDs of lanes count up, so such a job got the
-- kind of the next new lane, which may be a reserved one.
DO $do$
DECLARE
    accept_before CONSTANT text := pg_get_functiondef('accept_all(jsonb, bytea, bigint)'::regprocedure);
    accept_now CONSTANT text := replace(accept_before,
        'WHERE (l.queue, l.kind) IS DISTINCT FROM (n.queue, n.kind) OR q.fair',
        'WHERE l.id IS NULL OR (l.queue, l.kind) IS DISTINCT FROM (n.queue, n.kind) OR q.fair');
BEGIN
    IF accept_now = accept_before THEN
        RAISE EXCEPTION 'accept_all is not the function of an earlier step';
    END IF;
    EXECUTE accept_now;
END $do$;

-- Replaces the function of 0020: only a caller with the rights of the owner cancels jobs of Tenure itself, runs of the default set of
-- programs, and runs of schedules. A caller can compute the IDs of the last.
CREATE OR REPLACE FUNCTION cancel(id uuid, reason text DEFAULT '') RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off AS $body$
DECLARE
    found_job record;
BEGIN
    SELECT j.seq, l.kind, l.queue INTO found_job
        FROM job j LEFT JOIN lane l ON l.id = j.lane LEFT JOIN standing s ON s.seq = j.seq
        WHERE j.id = cancel.id AND coalesce(s.state, 0) < 2 AND NOT EXISTS (
            SELECT FROM receipt r WHERE r.lane = j.lane AND r.block = j.seq >> 8 AND has_bit(r.seqs, j.seq));
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF NOT pg_has_role(caller()::name, current_user, 'MEMBER') THEN
        BEGIN
            PERFORM refuse_reserved(found_job.kind, found_job.queue, cancel.id);
        EXCEPTION WHEN invalid_parameter_value THEN
            RAISE EXCEPTION 'only the owner may cancel the job %, which no client enqueued: use tenure job cancel', cancel.id
                USING ERRCODE = 'invalid_parameter_value';
        END;
    END IF;
    INSERT INTO arrival (seq, what, id, note) VALUES (found_job.seq, 3, cancel.id, left(reason, 1025))
        ON CONFLICT (seq, what) DO NOTHING;
    PERFORM hint('da'::text);
    RETURN true;
END $body$;
