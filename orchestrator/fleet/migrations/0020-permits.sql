-- Limits: how many slots of a link, a pool or a site the centre lends at once, and at which times of day of a zone.
CREATE TABLE poolferry.limits (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (name ~ '^[A-Za-z][A-Za-z0-9._-]{0,99}$'),
    slots integer NOT NULL CHECK (slots BETWEEN 1 AND 100000),
    opens time,
    closes time,
    zone text NOT NULL DEFAULT 'UTC',
    declared_at timestamptz NOT NULL DEFAULT now(),
    CHECK ((opens IS NULL) = (closes IS NULL)),
    CHECK (opens <> closes)
);

-- Permits, asked for and lent; one for each job of a host. The id is the order of asking, and the key of an advisory lock that the
-- asking session holds: while it lives, the permit lives. taken: the run went on without being lent one, and is counted all the same.
CREATE TABLE poolferry.permits (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    host integer NOT NULL REFERENCES poolferry.hosts ON DELETE CASCADE,
    job text NOT NULL CHECK (length(job) BETWEEN 1 AND 200),
    weight integer NOT NULL CHECK (weight >= 1),
    backend integer,
    asked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    granted_at timestamptz,
    lease interval NOT NULL,
    taken boolean NOT NULL DEFAULT false,
    UNIQUE (host, job)
);

CREATE TABLE poolferry.permit_parts (
    permit integer NOT NULL REFERENCES poolferry.permits ON DELETE CASCADE,
    in_limit integer NOT NULL REFERENCES poolferry.limits ON DELETE CASCADE,
    weight integer NOT NULL CHECK (weight >= 1),
    PRIMARY KEY (in_limit, permit)
);
CREATE INDEX ON poolferry.permit_parts (permit);

CREATE FUNCTION poolferry.is_open(of_limit poolferry.limits) RETURNS boolean
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
    RETURN (SELECT CASE WHEN of_limit.opens IS NULL THEN true
        WHEN of_limit.opens < of_limit.closes THEN clock >= of_limit.opens AND clock < of_limit.closes
        ELSE clock >= of_limit.opens OR clock < of_limit.closes END
        FROM (SELECT (clock_timestamp() AT TIME ZONE of_limit.zone)::time AS clock) AS there);

-- The permits whose session lives: the very backend that asked holds the lock of the permit's number.
-- Why the backend, too: any role may take an advisory lock, and could keep another host's permit alive.
CREATE FUNCTION poolferry.living_permits() RETURNS SETOF integer
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS
$$ SELECT p.id FROM poolferry.permits p JOIN pg_locks l ON l.objid = p.id::oid AND l.pid = p.backend
   WHERE l.locktype = 'advisory' AND l.classid = 28780::oid AND l.objsubid = 2 AND l.granted
   AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) $$;

-- What is lent still: its session lives, or was seen a moment ago, or the server itself has begun a moment ago.
-- Why the last two: after a cut, or a crash of the centre, a run goes on and comes again within that time.
CREATE FUNCTION poolferry.is_held(of_permit poolferry.permits, living integer[]) RETURNS boolean
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
    RETURN of_permit.granted_at IS NOT NULL AND (of_permit.id = ANY (living)
        OR clock_timestamp() < greatest(of_permit.seen_at, pg_postmaster_start_time()) + of_permit.lease);

-- Asks for a permit, asks again whether it is one's turn, or says that the run goes on (taken). An earlier permit that waits is
-- overtaken only while one of its own limits is closed. All limits are locked in one order, so no two wait for each other.
CREATE FUNCTION poolferry.ask_permit(its_job text, its_limits text[], its_weight integer, its_lease integer, is_taken boolean)
    RETURNS TABLE (permit integer, granted boolean, busy boolean, place integer, in_limit text, used integer, slots integer,
        opens text, unknown text[], clamped text[])
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    me integer := poolferry.this_host();
    mine poolferry.permits;
    living integer[];
    locked boolean;
    its_length interval := make_interval(secs => least(greatest(its_lease, 1), 300));
BEGIN
    IF me IS NULL THEN
        RAISE insufficient_privilege USING MESSAGE = 'this host has not joined, or has left';
    END IF;
    IF cardinality(its_limits) > 50 THEN
        RAISE invalid_parameter_value USING MESSAGE = 'more than 50 limits for one job';
    END IF;
    PERFORM 1 FROM poolferry.limits l WHERE l.name = ANY (its_limits) ORDER BY l.id FOR UPDATE;
    SELECT coalesce(array_agg(each), '{}') INTO living FROM poolferry.living_permits() AS each;

    SELECT * INTO mine FROM poolferry.permits p WHERE p.host = me AND p.job = its_job FOR UPDATE;
    IF mine.granted_at IS NOT NULL AND NOT is_taken AND mine.backend IS DISTINCT FROM pg_backend_pid() THEN
        IF mine.id = ANY (living) THEN
            RETURN QUERY SELECT NULL::integer, false, true, 0, ''::text, 0, 0, ''::text, '{}'::text[], '{}'::text[];
            RETURN;
        END IF;
        DELETE FROM poolferry.permits p WHERE p.id = mine.id;  -- of a run of this job that was killed
        mine := NULL;
    END IF;
    IF mine.id IS NOT NULL AND mine.granted_at IS NULL AND mine.seen_at < clock_timestamp() - interval '2 hours' THEN
        DELETE FROM poolferry.permits p WHERE p.id = mine.id;  -- nobody has asked for so long: its place is over
        mine := NULL;
    END IF;
    IF mine.id IS NULL THEN
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
    DELETE FROM poolferry.permit_parts d WHERE d.permit = mine.id
        AND d.in_limit NOT IN (SELECT l.id FROM poolferry.limits l WHERE l.name = ANY (its_limits));
    INSERT INTO poolferry.permit_parts (permit, in_limit, weight)
        SELECT mine.id, l.id, least(its_weight, l.slots) FROM poolferry.limits l WHERE l.name = ANY (its_limits)
        ON CONFLICT (in_limit, permit) DO UPDATE SET weight = excluded.weight;

    DELETE FROM poolferry.permits p WHERE p.granted_at IS NOT NULL AND p.id <> mine.id AND NOT poolferry.is_held(p, living)
        AND EXISTS (SELECT FROM poolferry.permit_parts d JOIN poolferry.limits l ON l.id = d.in_limit
            WHERE d.permit = p.id AND l.name = ANY (its_limits));

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
        ARRAY(SELECT each FROM unnest(its_limits) AS each WHERE each NOT IN (SELECT l.name FROM poolferry.limits l)),
        ARRAY(SELECT n.name FROM needed n WHERE n.slots < its_weight)
    FROM (SELECT 1) AS one LEFT JOIN blocked b ON true LEFT JOIN lent ON true;
END $$;

-- Gives a permit back, or leaves the queue. Its lock ends with the session.
CREATE FUNCTION poolferry.release_permit(its_permit integer) RETURNS void
    LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ DELETE FROM poolferry.permits WHERE id = its_permit AND host = poolferry.this_host() $$;

-- What administrators see: each limit with what is lent of it, and the permits that are held or wait.
CREATE VIEW poolferry.limits_now AS
    WITH living AS MATERIALIZED (SELECT coalesce(array_agg(each), '{}') AS ids FROM poolferry.living_permits() AS each)
    SELECT l.name, l.slots, l.opens, l.closes, l.zone,
        coalesce(sum(d.weight) FILTER (WHERE poolferry.is_held(p, living.ids)), 0)::integer AS lent,
        (count(p.id) FILTER (WHERE p.granted_at IS NULL AND p.id = ANY (living.ids)))::integer AS waiting
    FROM living, poolferry.limits l LEFT JOIN poolferry.permit_parts d ON d.in_limit = l.id
        LEFT JOIN poolferry.permits p ON p.id = d.permit
    GROUP BY l.id;
CREATE VIEW poolferry.permits_now AS
    WITH living AS MATERIALIZED (SELECT coalesce(array_agg(each), '{}') AS ids FROM poolferry.living_permits() AS each)
    SELECT p.id, h.name AS host, p.job, p.weight, p.taken, p.asked_at, p.granted_at, p.id = ANY (living.ids) AS lives,
        ARRAY(SELECT l.name FROM poolferry.permit_parts d JOIN poolferry.limits l ON l.id = d.in_limit
            WHERE d.permit = p.id ORDER BY l.name) AS limits
    FROM living, poolferry.permits p JOIN poolferry.hosts h ON h.id = p.host
    WHERE poolferry.is_held(p, living.ids) OR (p.granted_at IS NULL AND p.id = ANY (living.ids));

REVOKE ALL ON FUNCTION poolferry.is_open(poolferry.limits), poolferry.living_permits(), poolferry.is_held(poolferry.permits, integer[]),
    poolferry.ask_permit(text, text[], integer, integer, boolean), poolferry.release_permit(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION poolferry.ask_permit(text, text[], integer, integer, boolean), poolferry.release_permit(integer)
    TO poolferry_host;
GRANT EXECUTE ON FUNCTION poolferry.is_open(poolferry.limits), poolferry.living_permits(), poolferry.is_held(poolferry.permits, integer[])
    TO poolferry_reader;
GRANT SELECT ON poolferry.limits, poolferry.permits, poolferry.permit_parts, poolferry.limits_now, poolferry.permits_now TO poolferry_reader;

-- Hosts have no right to any of them; should one ever be given, they would still see nothing.
DO $$ DECLARE each text; BEGIN
    FOREACH each IN ARRAY ARRAY['limits', 'permits', 'permit_parts'] LOOP
        EXECUTE format('ALTER TABLE poolferry.%I ENABLE ROW LEVEL SECURITY', each);
        EXECUTE format('CREATE POLICY readers ON poolferry.%I FOR SELECT TO poolferry_reader USING (true)', each);
    END LOOP;
END $$;
