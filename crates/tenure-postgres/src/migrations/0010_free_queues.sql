-- A claim is one statement, with what it has to know for certain.

-- Whether none of these queues has a limit, and the one of them from which something is wanted is not paused, until the end of the
-- transaction: whoever agrees on anything about a queue has the lock alone. It is seen behind the lock, by a look of its own:
-- what the statement that asks sees is older.
CREATE FUNCTION are_free(queue_names text[], wanted text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    queue_name text;
BEGIN
    FOREACH queue_name IN ARRAY queue_names LOOP
        PERFORM pg_advisory_xact_lock_shared(1413827147, hashtext(current_schema() || queue_name));
    END LOOP;
    RETURN NOT EXISTS (SELECT FROM queue q
        WHERE q.name = ANY (queue_names) AND (q.limit_to IS NOT NULL OR q.paused AND q.name = wanted));
END $$;
