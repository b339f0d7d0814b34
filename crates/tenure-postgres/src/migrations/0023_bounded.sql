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

-- Returns whether arrays and objects of a JSON text are nested deeper than so many levels.
CREATE FUNCTION is_nested_deeper(json_text text, levels int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $body$
DECLARE
    brackets text := translate(json_text, '{}', '[]');
BEGIN
    -- Most texts have so few brackets that the rest need not be looked at.
    IF octet_length(brackets) - octet_length(replace(brackets, '[', '')) <= levels THEN
        RETURN false;
    END IF;
    -- Without strings, numbers and words, only brackets are left. Each round takes away the innermost level of each branch.
    brackets := regexp_replace(brackets, '"(?:\\.|[^"\\])*"', '', 'g');
    brackets := translate(brackets, E' \t\n\r,:+-.0123456789eEtruefalsn', '');
    FOR level IN 1..levels LOOP
        EXIT WHEN brackets = '';
        brackets := replace(brackets, '[]', '');
    END LOOP;
    RETURN brackets <> '';
END $body$;

REVOKE ALL ON FUNCTION is_nested_deeper(text, int) FROM PUBLIC;

-- The library refuses args and results that are nested deeper than 64 levels: a parser of a handler or client may refuse them.
-- Text that is nested so deep has more than 129 bytes.
DO $do$
DECLARE
    refuse_before CONSTANT text := pg_get_functiondef('refuse_unreadable(text, text, int, bytea)'::regprocedure);
    refuse_now CONSTANT text := replace(refuse_before, 'END $function$',
        '    IF octet_length(data) > 129 AND getdatabaseencoding() = ''UTF8'' THEN
        IF is_nested_deeper(convert_from(data, ''UTF8''), 64) THEN
            RAISE EXCEPTION ''the args and the output may be nested at most 64 levels deep''
                USING ERRCODE = ''invalid_parameter_value'';
        END IF;
    END IF;
END $function$');
BEGIN
    IF refuse_now = refuse_before THEN
        RAISE EXCEPTION 'refuse_unreadable is not the function of an earlier step';
    END IF;
    EXECUTE refuse_now;
END $do$;
