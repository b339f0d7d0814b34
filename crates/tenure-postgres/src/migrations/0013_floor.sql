-- floor: every fence that is granted is greater. It takes the place of `epoch`, which was the upper part of each.
-- database, started, mark: of the server as it was when the epoch began, see `epoch.rs`.

DO $$ BEGIN PERFORM set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true); END $$;

UPDATE meta SET name = 'floor', value = value << 40 WHERE name = 'epoch';

-- As before, but for the floor.
DO $$
DECLARE
    before CONSTANT text := pg_get_functiondef('acquire_lease(text, text, interval, uuid)'::regprocedure);
    now CONSTANT text := replace(before, 'm.value << 40 FROM meta m WHERE m.name = ''epoch''',
        'm.value FROM meta m WHERE m.name = ''floor''');
BEGIN
    IF now = before THEN
        RAISE EXCEPTION 'acquire_lease is not the function of step 0006';
    END IF;
    EXECUTE now;
END $$;
