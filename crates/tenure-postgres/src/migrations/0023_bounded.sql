-- Bounds the work for jobs that wait for others.

DO $$ BEGIN PERFORM set_config('search_path', quote_ident(current_schema()::text) || ', pg_temp', true); END $$;

-- True if the waiter runs after any end of the other job: only its last wait needs a look at the waiter. A wait of an earlier
-- version says false, and the terms of the waiter tell.
ALTER TABLE dependency ADD COLUMN runs_anyway boolean NOT NULL DEFAULT false;

-- Metadata has a limit as JSON text, too: a control character takes six bytes there, and every step that reads a job reads that
-- text. PostgreSQL writes two more bytes for each of the 64 entries than the library.
DO $do$
DECLARE
    formed_before CONSTANT text := pg_get_functiondef('formed(jsonb)'::regprocedure);
    formed_now CONSTANT text := replace(formed_before, 'IF wrong IS NOT NULL THEN',
        'IF wrong IS NULL AND octet_length((terms -> ''meta'')::text) > 262144 + 128 THEN
        RAISE EXCEPTION ''terms.meta has more than 262144 bytes as JSON'' USING ERRCODE = ''invalid_parameter_value'';
    END IF;
    IF wrong IS NOT NULL THEN');
BEGIN
    IF formed_now = formed_before THEN
        RAISE EXCEPTION 'formed is not the function of an earlier step';
    END IF;
    EXECUTE formed_now;
END $do$;
