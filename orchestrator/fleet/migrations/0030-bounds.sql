-- Bounds: how much a host may tell, how many permits it may ask for, how long its texts may be. And the same work for less.

-- How many bytes of rows each host has told, and how many it may. Counted for each statement, not for each row.
CREATE TABLE poolferry.quotas (
    host integer PRIMARY KEY REFERENCES poolferry.hosts (id) ON DELETE CASCADE,
    bytes bigint NOT NULL DEFAULT 0,
    most bigint NOT NULL DEFAULT 2147483648 CHECK (most >= 0)
) WITH (fillfactor = 60);
ALTER TABLE poolferry.quotas ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON poolferry.quotas FOR SELECT TO poolferry_host USING (host = (SELECT poolferry.this_host()));
CREATE POLICY readers ON poolferry.quotas FOR SELECT TO poolferry_reader USING (true);
GRANT SELECT ON poolferry.quotas TO poolferry_host, poolferry_reader;

-- A row counts with its columns and 100 bytes for its place in tables and indexes. One of more than a mebibyte is not taken.
-- Why of the rows before and after a change: a host could tell small rows, and make them large.
CREATE FUNCTION poolferry.count_told() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    each record;
    its_most bigint;
    its_bytes bigint;
BEGIN
    FOR each IN SELECT host, sum(pg_column_size(told) + 100) AS bytes, max(pg_column_size(told)) AS largest FROM told GROUP BY host LOOP
        IF each.largest > 1048576 THEN
            RAISE string_data_right_truncation USING MESSAGE = 'a row of ' || each.largest || ' bytes is more than the centre takes';
        END IF;
        IF TG_OP = 'UPDATE' THEN
            each.bytes := each.bytes - (SELECT coalesce(sum(pg_column_size(was) + 100), 0) FROM was WHERE was.host = each.host);
            CONTINUE WHEN each.bytes = 0;
        END IF;
        UPDATE poolferry.quotas q SET bytes = greatest(q.bytes + each.bytes, 0) WHERE q.host = each.host RETURNING q.bytes, q.most
            INTO its_bytes, its_most;
        IF NOT FOUND THEN
            RAISE foreign_key_violation USING MESSAGE = 'there is no such host';
        END IF;
        -- Why more for rows that are there already: a host whose quota is used up still says how its jobs stand.
        IF each.bytes > 0 AND its_bytes > its_most + (CASE TG_OP WHEN 'UPDATE' THEN its_most / 10 + 1048576 ELSE 0 END) THEN
            RAISE configuration_limit_exceeded USING MESSAGE = 'this host has told ' || pg_size_pretty(its_most) || ', its whole quota';
        END IF;
    END LOOP;
    RETURN NULL;
END $$;
CREATE FUNCTION poolferry.count_removed() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE poolferry.quotas q SET bytes = greatest(q.bytes - gone.bytes, 0)
        FROM (SELECT host, sum(pg_column_size(was) + 100) AS bytes FROM was GROUP BY host) AS gone WHERE q.host = gone.host;
    RETURN NULL;
END $$;

-- The rows of a host go with it. Why not by a foreign key: it would look the host up once more for each row that is told. The lock
-- makes it wait for a batch that is on its way.
CREATE FUNCTION poolferry.remove_told() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM poolferry.quotas WHERE host = OLD.id FOR UPDATE;
    DELETE FROM poolferry.runs WHERE host = OLD.id;
    DELETE FROM poolferry.records WHERE host = OLD.id;
    RETURN OLD;
END $$;
CREATE FUNCTION poolferry.begin_quota() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO poolferry.quotas (host) VALUES (NEW.id);
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION poolferry.count_told(), poolferry.count_removed(), poolferry.remove_told(), poolferry.begin_quota() FROM PUBLIC;

ALTER TABLE poolferry.runs DROP CONSTRAINT runs_host_fkey;
ALTER TABLE poolferry.records DROP CONSTRAINT records_host_fkey;
CREATE TRIGGER gone BEFORE DELETE ON poolferry.hosts FOR EACH ROW EXECUTE FUNCTION poolferry.remove_told();
CREATE TRIGGER invited AFTER INSERT ON poolferry.hosts FOR EACH ROW EXECUTE FUNCTION poolferry.begin_quota();
DO $$ DECLARE each text; BEGIN
    FOREACH each IN ARRAY ARRAY['runs', 'records', 'jobs'] LOOP
        EXECUTE format('CREATE TRIGGER told AFTER INSERT ON poolferry.%I REFERENCING NEW TABLE AS told FOR EACH STATEMENT'
            ' EXECUTE FUNCTION poolferry.count_told()', each);
        EXECUTE format('CREATE TRIGGER told_again AFTER UPDATE ON poolferry.%I REFERENCING OLD TABLE AS was NEW TABLE AS told'
            ' FOR EACH STATEMENT EXECUTE FUNCTION poolferry.count_told()', each);
        EXECUTE format('CREATE TRIGGER removed AFTER DELETE ON poolferry.%I REFERENCING OLD TABLE AS was FOR EACH STATEMENT'
            ' EXECUTE FUNCTION poolferry.count_removed()', each);
    END LOOP;
END $$;
INSERT INTO poolferry.quotas (host, bytes)
    SELECT h.id, coalesce((SELECT sum(pg_column_size(r) + 100) FROM poolferry.runs r WHERE r.host = h.id), 0)
        + coalesce((SELECT sum(pg_column_size(r) + 100) FROM poolferry.records r WHERE r.host = h.id), 0)
        + coalesce((SELECT sum(pg_column_size(j) + 100) FROM poolferry.jobs j WHERE j.host = h.id), 0)
    FROM poolferry.hosts h;
UPDATE poolferry.quotas SET most = 2 * bytes WHERE bytes > most;  -- what a centre took until today, it goes on to take

ALTER TABLE poolferry.beats ADD CHECK (length(version) <= 200);

-- Both as before, without a SET: a body that was taken apart when it was made needs none, and is put into the statement that calls it.
CREATE OR REPLACE FUNCTION poolferry.is_open(of_limit poolferry.limits) RETURNS boolean
    LANGUAGE sql VOLATILE
    RETURN CASE WHEN of_limit.opens IS NULL THEN true
        WHEN of_limit.opens < of_limit.closes THEN (clock_timestamp() AT TIME ZONE of_limit.zone)::time >= of_limit.opens
            AND (clock_timestamp() AT TIME ZONE of_limit.zone)::time < of_limit.closes
        ELSE (clock_timestamp() AT TIME ZONE of_limit.zone)::time >= of_limit.opens
            OR (clock_timestamp() AT TIME ZONE of_limit.zone)::time < of_limit.closes END;
CREATE OR REPLACE FUNCTION poolferry.is_held(of_permit poolferry.permits, living integer[]) RETURNS boolean
    LANGUAGE sql VOLATILE
    RETURN of_permit.granted_at IS NOT NULL AND (of_permit.id = ANY (living)
        OR clock_timestamp() < greatest(of_permit.seen_at, pg_postmaster_start_time()) + of_permit.lease);

-- As before, in a language that keeps its plan. Neither waits for the disk: a crash that loses the end of a permit, or that its run goes
-- on, costs its slot until the lease is over, or nothing. What is lent is on the disk before it is said.
CREATE OR REPLACE FUNCTION poolferry.living_permits() RETURNS SETOF integer
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT p.id FROM pg_lock_status() l JOIN poolferry.permits p ON l.objid = p.id::oid AND l.pid = p.backend
        WHERE l.locktype = 'advisory' AND l.classid = 28780::oid AND l.objsubid = 2 AND l.granted
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database());
END $$;
CREATE OR REPLACE FUNCTION poolferry.release_permit(its_permit integer) RETURNS void
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    DELETE FROM poolferry.permits p USING poolferry.hosts h WHERE p.id = its_permit AND h.id = p.host AND h.role = session_user
        AND h.joined_at IS NOT NULL AND h.left_at IS NULL;
END $$;

-- As before, and quick in the two cases that are nearly all: a run that goes on says so again, and locks no limit; and where all is
-- open, nobody waits and there is room, even if all dead holders are counted, nothing else is looked up.
-- A host has at most 1,000 permits and places in queues, and a place whose session is gone for two hours is over.
CREATE OR REPLACE FUNCTION poolferry.ask_permit(its_job text, its_limits text[], its_weight integer, its_lease integer, is_taken boolean)
    RETURNS TABLE (permit integer, granted boolean, busy boolean, place integer, in_limit text, used integer, slots integer,
        opens text, unknown text[], clamped text[])
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    me integer;
    mine poolferry.permits;
    ids integer[];
    living integer[];
    locked boolean;
    its_length interval := make_interval(secs => least(greatest(its_lease, 1), 300));
BEGIN
    SELECT h.id INTO me FROM poolferry.hosts h WHERE h.role = session_user AND h.joined_at IS NOT NULL AND h.left_at IS NULL;
    IF me IS NULL THEN
        RAISE insufficient_privilege USING MESSAGE = 'this host has not joined, or has left';
    END IF;
    IF cardinality(its_limits) > 50 THEN
        RAISE invalid_parameter_value USING MESSAGE = 'more than 50 limits for one job';
    END IF;

    IF is_taken THEN
        UPDATE poolferry.permits p SET seen_at = clock_timestamp(), lease = its_length
            WHERE p.host = me AND p.job = its_job AND p.granted_at IS NOT NULL AND p.backend = pg_backend_pid() AND p.weight = its_weight
            AND (SELECT array_agg(d.in_limit ORDER BY d.in_limit) FROM poolferry.permit_parts d WHERE d.permit = p.id)
                = (SELECT array_agg(l.id ORDER BY l.id) FROM poolferry.limits l WHERE l.name = ANY (its_limits))
            RETURNING * INTO mine;
        IF FOUND THEN
            PERFORM set_config('synchronous_commit', 'off', true);
            RETURN QUERY SELECT mine.id, true, false, 0, ''::text, 0, 0, ''::text, '{}'::text[], '{}'::text[];
            RETURN;
        END IF;
    END IF;

    SELECT coalesce(array_agg(l.id), '{}') INTO ids
        FROM (SELECT l.id FROM poolferry.limits l WHERE l.name = ANY (its_limits) ORDER BY l.id FOR UPDATE) AS l;
    SELECT * INTO mine FROM poolferry.permits p WHERE p.host = me AND p.job = its_job FOR UPDATE;
    IF mine.id IS NULL AND (SELECT count(*) FROM poolferry.permits p WHERE p.host = me) >= 1000 THEN
        RAISE configuration_limit_exceeded USING MESSAGE = 'this host has 1000 permits and places in queues already';
    END IF;
    IF mine.id IS NULL AND NOT is_taken AND NOT EXISTS (
        SELECT FROM poolferry.limits l LEFT JOIN poolferry.permit_parts d ON d.in_limit = l.id
            LEFT JOIN poolferry.permits p ON p.id = d.permit
        WHERE l.id = ANY (ids) GROUP BY l.id
        HAVING NOT poolferry.is_open(l) OR bool_or(p.id IS NOT NULL AND p.granted_at IS NULL)
            OR coalesce(sum(d.weight), 0) + least(its_weight, l.slots) > l.slots)
    THEN
        INSERT INTO poolferry.permits AS p (host, job, weight, lease, backend, granted_at)
            VALUES (me, its_job, its_weight, its_length, pg_backend_pid(), clock_timestamp()) RETURNING * INTO mine;
        PERFORM pg_try_advisory_lock(28780, mine.id);
        INSERT INTO poolferry.permit_parts (permit, in_limit, weight)
            SELECT mine.id, l.id, least(its_weight, l.slots) FROM poolferry.limits l WHERE l.id = ANY (ids);
        RETURN QUERY SELECT mine.id, true, false, 0, ''::text, 0, 0, ''::text,
            ARRAY(SELECT each FROM unnest(its_limits) AS each WHERE each NOT IN (SELECT l.name FROM poolferry.limits l WHERE l.id = ANY (ids))),
            ARRAY(SELECT l.name FROM poolferry.limits l WHERE l.id = ANY (ids) AND l.slots < its_weight);
        RETURN;
    END IF;

    SELECT coalesce(array_agg(each), '{}') INTO living FROM poolferry.living_permits() AS each;
    IF mine.granted_at IS NOT NULL AND NOT is_taken AND mine.backend IS DISTINCT FROM pg_backend_pid() THEN
        IF mine.id = ANY (living) THEN
            RETURN QUERY SELECT NULL::integer, false, true, 0, ''::text, 0, 0, ''::text, '{}'::text[], '{}'::text[];
            RETURN;
        END IF;
        DELETE FROM poolferry.permits p WHERE p.id = mine.id;  -- of a run of this job that was killed
        mine := NULL;
    END IF;
    DELETE FROM poolferry.permits p WHERE p.granted_at IS NULL AND p.seen_at < clock_timestamp() - interval '2 hours'
        AND (p.id = mine.id OR p.id <> ALL (living))
        AND (p.host = me OR EXISTS (SELECT FROM poolferry.permit_parts d WHERE d.permit = p.id AND d.in_limit = ANY (ids)));
    IF NOT EXISTS (SELECT FROM poolferry.permits p WHERE p.id = mine.id) THEN
        INSERT INTO poolferry.permits (host, job, weight, lease) VALUES (me, its_job, its_weight, its_length)
        RETURNING * INTO mine;
    END IF;
    locked := mine.id = ANY (living) AND mine.backend = pg_backend_pid() OR pg_try_advisory_lock(28780, mine.id);
    UPDATE poolferry.permits p SET seen_at = clock_timestamp(), lease = its_length, weight = its_weight,
        backend = CASE WHEN locked THEN pg_backend_pid() ELSE p.backend END,
        granted_at = CASE WHEN is_taken THEN coalesce(p.granted_at, clock_timestamp()) ELSE p.granted_at END,
        taken = p.taken OR (is_taken AND p.granted_at IS NULL)
        WHERE p.id = mine.id RETURNING * INTO mine;
    living := living || mine.id;
    DELETE FROM poolferry.permit_parts d WHERE d.permit = mine.id AND d.in_limit <> ALL (ids);
    INSERT INTO poolferry.permit_parts (permit, in_limit, weight)
        SELECT mine.id, l.id, least(its_weight, l.slots) FROM poolferry.limits l WHERE l.id = ANY (ids)
        ON CONFLICT (in_limit, permit) DO UPDATE SET weight = excluded.weight;

    DELETE FROM poolferry.permits p WHERE p.granted_at IS NOT NULL AND p.id <> mine.id AND NOT poolferry.is_held(p, living)
        AND EXISTS (SELECT FROM poolferry.permit_parts d WHERE d.permit = p.id AND d.in_limit = ANY (ids));

    RETURN QUERY
    WITH needed AS (
        SELECT l.id, l.name, l.slots, l.opens, l.zone, d.weight, poolferry.is_open(l) AS open,
            coalesce((SELECT sum(o.weight) FROM poolferry.permit_parts o JOIN poolferry.permits h ON h.id = o.permit
                WHERE o.in_limit = l.id AND h.granted_at IS NOT NULL AND h.id <> mine.id), 0)::integer AS used
        FROM poolferry.permit_parts d JOIN poolferry.limits l ON l.id = d.in_limit WHERE d.permit = mine.id
    ), before AS (
        SELECT p.id, d.in_limit FROM poolferry.permits p JOIN poolferry.permit_parts d ON d.permit = p.id
        WHERE p.granted_at IS NULL AND p.id < mine.id AND p.id = ANY (living) AND d.in_limit IN (SELECT id FROM needed)
        AND NOT EXISTS (SELECT FROM poolferry.permit_parts c JOIN poolferry.limits l ON l.id = c.in_limit
            WHERE c.permit = p.id AND NOT poolferry.is_open(l))
    ), blocked AS (
        SELECT n.* FROM needed n WHERE mine.granted_at IS NULL AND (NOT n.open OR n.used + n.weight > n.slots
            OR n.id IN (SELECT in_limit FROM before)) ORDER BY n.open, n.id LIMIT 1
    ), lent AS (
        UPDATE poolferry.permits p SET granted_at = clock_timestamp()
        WHERE p.id = mine.id AND p.granted_at IS NULL AND NOT EXISTS (SELECT FROM blocked) RETURNING p.id
    )
    SELECT mine.id, b.id IS NULL, false, CASE WHEN b.id IS NULL THEN 0 ELSE 1 + (SELECT count(DISTINCT id) FROM before)::integer END,
        coalesce(b.name, ''), coalesce(b.used, 0), coalesce(b.slots, 0),
        CASE WHEN b.open THEN '' ELSE coalesce(to_char(b.opens, 'HH24:MI') || ' (' || b.zone || ')', '') END,
        ARRAY(SELECT each FROM unnest(its_limits) AS each WHERE each NOT IN (SELECT n.name FROM needed n)),
        ARRAY(SELECT n.name FROM needed n WHERE n.slots < its_weight)
    FROM (SELECT 1) AS one LEFT JOIN blocked b ON true LEFT JOIN lent ON true;
END $$;
