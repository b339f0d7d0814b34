-- A role that may call some of the functions adds no jobs to lanes that do not exist.

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
