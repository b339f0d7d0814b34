-- What any program may do and see that speaks SQL. Signatures stay; what is added to them has a default. Nobody but the
-- owner may call or see any of it until it is granted:
--   GRANT USAGE ON SCHEMA tenure TO shop;
--   GRANT EXECUTE ON FUNCTION tenure.enqueue TO shop;

-- Enqueues a job in the transaction of whoever calls it, and answers its id; with a unique key that another job holds, the
-- id of that one.
CREATE FUNCTION enqueue(
    kind text,
    args json DEFAULT '{}',
    queue text DEFAULT 'default',
    priority int DEFAULT 0,
    run_at timestamptz DEFAULT NULL,
    unique_key text DEFAULT NULL,
    ordering_key text DEFAULT NULL,
    tags text[] DEFAULT '{}',
    id uuid DEFAULT NULL
) RETURNS uuid
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off AS $body$
DECLARE
    named CONSTANT text := '^[A-Za-z0-9._:-]{1,128}$';
    new_id uuid := id;
    bits text;
    digest bytea;
    terms jsonb := '{}';
    asked jsonb;
    answer text;
    tag text;
BEGIN
    IF kind IS NULL OR kind !~ named THEN
        RAISE EXCEPTION 'the kind has to be 1 to 128 of A-Z a-z 0-9 . _ : -' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF queue IS NULL OR queue !~ named THEN
        RAISE EXCEPTION 'the queue has to be 1 to 128 of A-Z a-z 0-9 . _ : -' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF priority IS NULL OR priority NOT BETWEEN -100 AND 100 THEN
        RAISE EXCEPTION 'the priority has to be -100 to 100' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF args IS NULL OR octet_length(args::text) > 262144 THEN
        RAISE EXCEPTION 'the args have to be JSON of up to 262144 bytes' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF unique_key = '' OR octet_length(unique_key) > 512 THEN
        RAISE EXCEPTION 'the unique key has to be 1 to 512 bytes' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF ordering_key = '' OR octet_length(ordering_key) > 256 OR ordering_key ~ '[[:cntrl:]]' THEN
        RAISE EXCEPTION 'the ordering key has to be 1 to 256 bytes without control characters'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF cardinality(tags) > 32 THEN
        RAISE EXCEPTION 'a job has up to 32 tags' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    FOREACH tag IN ARRAY coalesce(tags, '{}') LOOP
        IF tag IS NULL OR tag !~ named THEN
            RAISE EXCEPTION 'a tag has to be 1 to 128 of A-Z a-z 0-9 . _ : -' USING ERRCODE = 'invalid_parameter_value';
        END IF;
    END LOOP;
    IF new_id IS NULL THEN
        -- Version 7: the time, then chance.
        bits := replace(gen_random_uuid()::text, '-', '');
        new_id := (lpad(to_hex(micros() / 1000), 12, '0') || '7' || substr(bits, 14))::uuid;
    END IF;
    asked := jsonb_build_object('id', new_id, 'kind', kind, 'queue', queue, 'priority', priority,
        'at', (extract(epoch FROM run_at) * 1000000)::bigint, 'gated', ordering_key IS NOT NULL);
    IF cardinality(tags) > 0 THEN
        asked := asked || jsonb_build_object('tags', tags);
        terms := terms || jsonb_build_object('tags', tags);
    END IF;
    IF unique_key IS NOT NULL THEN
        -- As the library makes it of a kind and a key.
        digest := substr(sha256('kind'::bytea || int8send(octet_length(kind)) || convert_to(kind, 'UTF8')
            || 'key'::bytea || int8send(octet_length(unique_key)) || convert_to(unique_key, 'UTF8')), 1, 16);
        asked := asked || jsonb_build_object('key', encode(digest, 'hex'), 'conflict', 'return');
        terms := terms || jsonb_build_object('unique', jsonb_build_object(
            'key', (SELECT jsonb_agg(get_byte(digest, n) ORDER BY n) FROM generate_series(0, 15) n),
            'window', 'while_unfinished', 'on_conflict', 'return'));
    END IF;
    IF ordering_key IS NOT NULL THEN
        terms := terms || jsonb_build_object('ordering', jsonb_build_object('key', ordering_key));
    END IF;
    IF terms <> '{}' THEN
        asked := asked || jsonb_build_object('terms', terms::text);
    END IF;
    answer := accept(asked, convert_to(args::text, 'UTF8'));
    IF answer LIKE 'id_taken %' THEN
        RAISE EXCEPTION 'job % exists with another kind or args', new_id USING ERRCODE = 'unique_violation';
    END IF;
    RETURN CASE WHEN answer = 'new' THEN new_id ELSE split_part(answer, ' ', 2)::uuid END;
END $body$;

-- Asks for a job to be cancelled. False if there is no such job, or it has ended. It is cancelled by whoever looks for jobs
-- next after the commit; one that runs is told, and has thirty seconds to stop.
CREATE FUNCTION cancel(id uuid, reason text DEFAULT '') RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off AS $body$
DECLARE
    job_seq bigint;
BEGIN
    SELECT j.seq INTO job_seq FROM job j LEFT JOIN standing s ON s.seq = j.seq
        WHERE j.id = cancel.id AND coalesce(s.state, 0) < 2 AND NOT EXISTS (
            SELECT FROM receipt r WHERE r.lane = j.lane AND r.block = j.seq >> 8 AND has_bit(r.seqs, j.seq));
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO arrival (seq, what, id, note) VALUES (job_seq, 3, cancel.id, reason) ON CONFLICT (seq, what) DO NOTHING;
    PERFORM pg_notify(current_schema() || ':tenure', 'da');
    RETURN true;
END $body$;

-- What is to be added to the ledger when a transaction of a user's own commits: numbers there are given under a lock that
-- nobody keeps for longer than a commit takes. It is empty for everybody else.
CREATE TABLE lease_note (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    lease  bigint NOT NULL,
    fence  bigint NOT NULL,
    at     bigint NOT NULL,
    since  bigint,
    until  bigint,
    host   uuid,
    what   smallint NOT NULL,
    who    text NOT NULL,
    meta   text,
    note   text NOT NULL
);

CREATE FUNCTION add_lease_note() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off AS $body$
BEGIN
    PERFORM pg_advisory_xact_lock(1413827149, hashtext(current_schema()));
    INSERT INTO ledger (lease, fence, what, at, present, host, who, meta, since, until, note)
        VALUES (NEW.lease, NEW.fence, NEW.what, NEW.at,
            NEW.what < 2 AND EXISTS (SELECT FROM lease l
                WHERE l.number = NEW.lease AND l.fence = NEW.fence AND l.phase IS NOT NULL),
            NEW.host, NEW.who, NEW.meta, NEW.since, NEW.until, NEW.note);
    DELETE FROM lease_note n WHERE n.number = NEW.number;
    RETURN NULL;
END $body$;

CREATE CONSTRAINT TRIGGER add_lease_note AFTER INSERT ON lease_note DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION add_lease_note();

-- Locks a lease and answers it, so that nobody else changes it before the transaction ends.
CREATE FUNCTION lease_of(lease_name text) RETURNS lease
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off AS $body$
DECLARE
    found_lease lease;
BEGIN
    IF lease_name IS NULL OR octet_length(lease_name) NOT BETWEEN 1 AND 1024 OR lease_name ~ '[\u0001-\u001f\u007f-\u009f]'
        OR lease_name ~ '(^|/)\.\.?(/|$)' THEN
        RAISE EXCEPTION
            'the name of a lease has to be 1 to 1024 bytes without control characters, no part between slashes being . or ..'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT * INTO found_lease FROM lease l WHERE l.name = lease_name FOR NO KEY UPDATE;
    RETURN found_lease;
END $body$;

-- Takes the lease for as long as `ttl` says, and answers the fence of that ownership; NULL if it cannot be had now. It is
-- granted when the transaction of whoever calls it commits, and until then everybody else waits who wants the same lease:
-- keep it short. Whoever asks again under the same id, while it is held under it, is answered the same fence, and holds
-- it for another `ttl`. Whoever asks here has no place in line, and comes after those who wait. The clock is the server's,
-- and is followed wherever it goes: who asks here sees no step of it.
CREATE FUNCTION acquire_lease(
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
    IF acquire_lease.name LIKE ANY (ARRAY['singleton/%', 'reservation/%', 'writer/%']) THEN
        RAISE EXCEPTION 'what begins like the name % belongs to the library', acquire_lease.name
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    l := lease_of(acquire_lease.name);
    IF l.number IS NULL THEN
        INSERT INTO lease (name, fence, forgotten, freed) VALUES (acquire_lease.name, 0, false, 0) ON CONFLICT DO NOTHING;
        l := lease_of(acquire_lease.name);
        -- Somebody else has made it whom this transaction does not see.
        PERFORM surely(l.number IS NOT NULL);
    END IF;
    present := micros();
    IF l.phase = 0 AND (l.until IS NULL OR l.until > present) AND l.id = lease_id THEN
        UPDATE lease u SET ttl = span, until = present + span, look = least(u.look, present + span)
            WHERE u.number = l.number;
        RETURN l.fence;
    END IF;
    IF l.phase = 0 AND (l.until IS NULL OR l.until > present) OR l.phase = 1 AND l.until > present THEN
        -- That somebody was refused is told once for each ownership.
        IF NOT EXISTS (SELECT FROM ledger e WHERE e.lease = l.number AND e.fence = l.fence AND e.who = holder
                AND e.host IS NULL AND e.what = 4) THEN
            INSERT INTO lease_note (lease, fence, at, until, what, who, note)
                VALUES (l.number, l.fence, present, l.until, 4, holder, '');
        END IF;
        RETURN NULL;
    END IF;
    free_since := CASE WHEN l.phase IS NULL OR l.phase = 2 THEN l.freed ELSE coalesce(l.until, l.freed) END;
    SELECT w.place INTO mine FROM lease_line w WHERE w.lease = l.number AND w.id = lease_id AND w.until > present;
    SELECT count(*) INTO ahead FROM lease_line w WHERE w.lease = l.number AND w.until > present
        AND (mine IS NULL OR w.place < mine);
    -- Nobody takes it before those who came first have had a head start, and nobody at all before the bar.
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
        -- Whoever has checked in under the last ownership keeps everybody off until its transaction has ended.
        PERFORM FROM lease u WHERE u.number = l.number FOR UPDATE SKIP LOCKED;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
    END IF;
    IF l.phase = 0 THEN
        INSERT INTO lease_note (lease, fence, at, since, host, what, who, meta, note)
            VALUES (l.number, l.fence, l.until, l.since, l.host, 6, coalesce(l.who, ''), l.meta, '');
    END IF;
    new_fence := greatest(l.fence, (SELECT m.value << 40 FROM meta m WHERE m.name = 'epoch')) + 1;
    UPDATE lease u SET fence = new_fence, forgotten = false, phase = 0, id = lease_id, since = present, ttl = span,
            until = present + span, look = least(u.look, present + span), host = NULL, who = holder, meta = NULL
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

-- Holds the lease for another `ttl`, the one that it was taken for if none is named. False if it is not held any more
-- under this fence: whoever is told so stops what it guards.
CREATE FUNCTION renew_lease(name text, fence bigint, ttl interval DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off AS $body$
DECLARE
    span CONSTANT bigint := (extract(epoch FROM renew_lease.ttl) * 1000000)::bigint;
    l lease;
    present bigint;
BEGIN
    IF span NOT BETWEEN 1000000 AND 86400000000 THEN
        RAISE EXCEPTION 'the ttl of a lease has to be 1 second to 24 hours' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    l := lease_of(renew_lease.name);
    present := micros();
    IF l.number IS NULL OR l.fence IS DISTINCT FROM renew_lease.fence OR l.phase IS DISTINCT FROM 0
        OR l.until <= present THEN
        RETURN false;
    END IF;
    UPDATE lease u SET ttl = coalesce(span, u.ttl), until = present + coalesce(span, u.ttl),
            look = least(u.look, present + coalesce(span, u.ttl))
        WHERE u.number = l.number;
    RETURN true;
END $body$;

-- Gives the lease back when the transaction commits. False if somebody else has had it since, or it was given back already.
CREATE FUNCTION release_lease(name text, fence bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off AS $body$
DECLARE
    l lease;
    present bigint;
    has_lapsed boolean;
BEGIN
    l := lease_of(release_lease.name);
    present := micros();
    IF l.number IS NULL OR l.fence IS DISTINCT FROM release_lease.fence OR l.phase IS NULL THEN
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

-- Jobs as people see them.
CREATE VIEW jobs AS
    SELECT j.id, l.kind, l.queue, j.priority,
        CASE WHEN g.fence IS NOT NULL THEN 'running' WHEN r.fence IS NOT NULL THEN 'succeeded'
            ELSE CASE coalesce(s.state, 0)
                WHEN 1 THEN 'running' WHEN 2 THEN 'succeeded' WHEN 3 THEN 'failed' WHEN 4 THEN 'cancelled'
                ELSE CASE WHEN k.at BETWEEN 2 AND 4 THEN 'blocked'
                    WHEN coalesce(s.due, j.due, j.created) > micros() THEN 'scheduled' ELSE 'queued' END
            END
        END AS state,
        CASE WHEN g.fence IS NOT NULL OR r.fence IS NOT NULL THEN 1 ELSE coalesce(s.attempt, 0) END AS attempt,
        to_timestamp(j.created / 1000000.0) AS created,
        to_timestamp(coalesce(s.due, j.due, j.created) / 1000000.0) AS due,
        to_timestamp(coalesce(s.ended, r.ended) / 1000000.0) AS ended,
        convert_from(j.args, 'UTF8') AS args,
        convert_from(s.output, 'UTF8') AS output,
        s.failure
    FROM job j JOIN lane l ON l.id = j.lane
        LEFT JOIN standing s ON s.seq = j.seq LEFT JOIN keyed k ON k.seq = j.seq
        LEFT JOIN LATERAL (SELECT fence FROM granted
            WHERE s.seq IS NULL AND lane = j.lane AND block = j.seq >> 8 AND has_bit(seqs, j.seq) LIMIT 1) g ON true
        LEFT JOIN LATERAL (SELECT fence, ended FROM receipt
            WHERE s.seq IS NULL AND lane = j.lane AND block = j.seq >> 8 AND has_bit(seqs, j.seq) LIMIT 1) r ON true;

REVOKE ALL ON FUNCTION enqueue(text, json, text, int, timestamptz, text, text, text[], uuid), cancel(uuid, text),
    lease_of(text), add_lease_note(), acquire_lease(text, text, interval, uuid),
    renew_lease(text, bigint, interval), release_lease(text, bigint) FROM PUBLIC;
