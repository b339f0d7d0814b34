-- Unfinished jobs (`waiter`) and the jobs that they name in `after_jobs` (`other`), ended ones included. Pruning removes no job
-- that is named here.
CREATE TABLE needed_by (other bigint NOT NULL, waiter bigint NOT NULL, PRIMARY KEY (other, waiter));
CREATE INDEX needed_by_waiter ON needed_by (waiter);

DO $$
DECLARE
    waiting record;
BEGIN
    FOR waiting IN SELECT j.seq, j.terms FROM (SELECT id FROM keyed UNION SELECT id FROM arrival WHERE what = 0) k
        JOIN job j ON j.id = k.id WHERE j.terms LIKE '%"after"%' LOOP
        BEGIN
            INSERT INTO needed_by (other, waiter) SELECT o.seq, waiting.seq FROM job o
                WHERE o.seq < waiting.seq AND o.id = ANY (ARRAY(
                    SELECT a.value::uuid FROM jsonb_array_elements_text(waiting.terms::jsonb->'after'->'jobs') a))
                ON CONFLICT DO NOTHING;
        EXCEPTION WHEN data_exception THEN
            NULL; -- Terms that cannot be read name no job.
        END;
    END LOOP;
END $$;

-- As before, but for the jobs that a new one needs.
DO $$
DECLARE
    before CONSTANT text := pg_get_functiondef('take_in(jsonb, bytea, bigint)'::regprocedure);
    tags CONSTANT text := 'IF jsonb_array_length(asked->''tags'') > 0 THEN';
    now CONSTANT text := replace(before, tags, 'IF jsonb_array_length(asked->''after'') > 0 THEN
        INSERT INTO needed_by (other, waiter) SELECT j.seq, job_seq FROM job j
            WHERE j.id = ANY (ARRAY(SELECT a.value::uuid FROM jsonb_array_elements_text(asked->''after'') a))
            ON CONFLICT DO NOTHING;
    END IF;
    ' || tags);
BEGIN
    IF now = before THEN
        RAISE EXCEPTION 'take_in is not the function of step 0012';
    END IF;
    EXECUTE now;
END $$;
