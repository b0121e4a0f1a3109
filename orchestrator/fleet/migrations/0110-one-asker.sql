-- As before, and one session at a time asks for a job, as one at a time holds its permit. Before, two runs of one job that began at once shared one
-- place in the queue, were both lent the permit, and the one that then found the job running gave it back for both.
CREATE OR REPLACE FUNCTION poolferry.lend_permit(its_job text, its_limits text[], its_weight integer, its_lease integer, is_taken boolean)
    RETURNS TABLE (permit integer, granted boolean, busy boolean, place integer, in_limit text, used integer, slots integer,
        opens text, unknown text[], clamped text[])
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    me integer;
    mine poolferry.permits;
    ids integer[];
    living integer[];
    its_length interval := make_interval(secs => least(greatest(its_lease, 1), 300));
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE feature_not_supported USING MESSAGE = 'a permit is asked for in a transaction that sees what others were lent meanwhile: read committed';
    END IF;
    SELECT h.id INTO me FROM poolferry.hosts h WHERE h.role = session_user AND h.joined_at IS NOT NULL AND h.left_at IS NULL;
    IF me IS NULL THEN
        RAISE insufficient_privilege USING MESSAGE = 'this host has not joined, or has left';
    END IF;
    IF cardinality(its_limits) > 50 THEN
        RAISE invalid_parameter_value USING MESSAGE = 'more than 50 limits for one job';
    END IF;
    PERFORM pg_try_advisory_lock(me, pg_backend_pid());

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
        UPDATE poolferry.permits p SET backend = NULL WHERE p.host = me AND p.backend = mine.backend AND p.id <> mine.id;
        INSERT INTO poolferry.permit_parts (permit, in_limit, weight)
            SELECT mine.id, l.id, least(its_weight, l.slots) FROM poolferry.limits l WHERE l.id = ANY (ids);
        RETURN QUERY SELECT mine.id, true, false, 0, ''::text, 0, 0, ''::text,
            ARRAY(SELECT each FROM unnest(its_limits) AS each WHERE each NOT IN (SELECT l.name FROM poolferry.limits l WHERE l.id = ANY (ids))),
            ARRAY(SELECT l.name FROM poolferry.limits l WHERE l.id = ANY (ids) AND l.slots < its_weight);
        RETURN;
    END IF;

    SELECT coalesce(array_agg(each), '{}') INTO living FROM poolferry.living_permits() AS each;
    IF mine.id IS NOT NULL AND NOT is_taken AND mine.backend IS DISTINCT FROM pg_backend_pid() THEN
        IF mine.id = ANY (living) THEN
            RETURN QUERY SELECT NULL::integer, false, true, 0, ''::text, 0, 0, ''::text, '{}'::text[], '{}'::text[];
            RETURN;
        END IF;
        IF mine.granted_at IS NOT NULL THEN
            DELETE FROM poolferry.permits p WHERE p.id = mine.id;  -- of a run of this job that was killed
            mine := NULL;
        END IF;
    END IF;
    DELETE FROM poolferry.permits p WHERE p.granted_at IS NULL AND p.seen_at < clock_timestamp() - interval '2 hours'
        AND (p.id = mine.id OR p.id <> ALL (living))
        AND (p.host = me OR EXISTS (SELECT FROM poolferry.permit_parts d WHERE d.permit = p.id AND d.in_limit = ANY (ids)));
    IF NOT EXISTS (SELECT FROM poolferry.permits p WHERE p.id = mine.id) THEN
        INSERT INTO poolferry.permits (host, job, weight, lease) VALUES (me, its_job, its_weight, its_length)
        RETURNING * INTO mine;
    END IF;
    UPDATE poolferry.permits p SET backend = NULL WHERE p.host = me AND p.backend = pg_backend_pid() AND p.id <> mine.id;
    UPDATE poolferry.permits p SET seen_at = clock_timestamp(), lease = its_length, weight = its_weight,
        backend = CASE WHEN mine.id = ANY (living) THEN p.backend ELSE pg_backend_pid() END,
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
