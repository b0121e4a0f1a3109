-- What a host tells can be read by all who look: no time that no calendar has, no number that no sum holds. One such value of one host
-- would end each look at the whole fleet.
CREATE FUNCTION poolferry.is_of_this_world(moment timestamptz) RETURNS boolean LANGUAGE sql IMMUTABLE
    RETURN moment BETWEEN '1900-01-01 00:00+00' AND '9000-01-01 00:00+00';

-- What was told before is made readable: a run is shown no more, a host and its jobs tell anew within minutes.
UPDATE poolferry.runs SET removed = true,
    begun_at = CASE WHEN poolferry.is_of_this_world(begun_at) THEN begun_at ELSE arrived_at END,
    ended_at = CASE WHEN poolferry.is_of_this_world(ended_at) THEN ended_at END,
    moved_bytes = CASE WHEN moved_bytes BETWEEN 0 AND 1152921504606846976 THEN moved_bytes END,
    took_s = CASE WHEN took_s BETWEEN 0 AND 1e10 THEN took_s END
    WHERE NOT (poolferry.is_of_this_world(begun_at) AND coalesce(poolferry.is_of_this_world(ended_at), true)
        AND coalesce(moved_bytes BETWEEN 0 AND 1152921504606846976, true) AND coalesce(took_s BETWEEN 0 AND 1e10, true));
DELETE FROM poolferry.beats WHERE NOT (poolferry.is_of_this_world(host_at) AND every_s BETWEEN 0 AND 4e7);
DELETE FROM poolferry.jobs WHERE NOT (coalesce(late_after_s BETWEEN 0 AND 4e9, true) AND coalesce(poolferry.is_of_this_world(copied_at), true)
    AND coalesce(poolferry.is_of_this_world(due_at), true) AND coalesce(poolferry.is_of_this_world(next_at), true)
    AND coalesce(poolferry.is_of_this_world(running_at), true) AND coalesce(poolferry.is_of_this_world(last_ended_at), true));

ALTER TABLE poolferry.runs
    ADD CHECK (poolferry.is_of_this_world(begun_at)), ADD CHECK (poolferry.is_of_this_world(ended_at)),
    ADD CHECK (moved_bytes BETWEEN 0 AND 1152921504606846976), ADD CHECK (took_s BETWEEN 0 AND 1e10);
ALTER TABLE poolferry.beats ADD CHECK (poolferry.is_of_this_world(host_at)), ADD CHECK (every_s BETWEEN 0 AND 4e7);
ALTER TABLE poolferry.jobs
    ADD CHECK (late_after_s BETWEEN 0 AND 4e9), ADD CHECK (poolferry.is_of_this_world(copied_at)),
    ADD CHECK (poolferry.is_of_this_world(due_at)), ADD CHECK (poolferry.is_of_this_world(next_at)),
    ADD CHECK (poolferry.is_of_this_world(running_at)), ADD CHECK (poolferry.is_of_this_world(last_ended_at));

-- A host hardly holds up the permits of others: a request locks its limits for milliseconds, and who waits for such a lock holds none. (One that
-- waits for another lock of its own meanwhile is not found.) A host
-- that holds one at each of several looks within a fifth of a second is cut off by the next one that asks, with all its sessions, and how
-- often stands here, for the watch to name it. Why looks, and not the age of its transaction: an honest one grows old in the queue; and a
-- dishonest one gives back and takes again, so that no transaction is old. Why not by timeouts of its session: it can set those itself.
ALTER TABLE poolferry.hosts ADD COLUMN held_up_at timestamptz, ADD COLUMN held_up_times integer NOT NULL DEFAULT 0;
CREATE FUNCTION poolferry.permit_holders() RETURNS TABLE (id integer, role name, transaction text)
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS
$$ SELECT DISTINCT h.id, a.usename, a.pid || ' ' || a.xact_start
   FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid JOIN poolferry.hosts h ON h.role = a.usename
   WHERE l.granted AND l.locktype = 'relation' AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND l.relation IN ('poolferry.limits'::regclass, 'poolferry.permits'::regclass) AND l.pid <> pg_backend_pid()
   AND coalesce(a.wait_event_type, '') NOT IN ('Lock', 'LWLock', 'IO', 'IPC', 'BufferPin') $$;
CREATE FUNCTION poolferry.end_holders() RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    seen text[];
    holder record;
BEGIN
    SELECT array_agg(p.transaction) INTO seen FROM poolferry.permit_holders() p;
    FOR look IN 1..4 LOOP
        EXIT WHEN seen IS NULL;
        PERFORM pg_sleep(0.05);
        PERFORM pg_stat_clear_snapshot();
        SELECT array_agg(p.transaction) INTO seen FROM poolferry.permit_holders() p WHERE p.transaction = ANY (seen);
    END LOOP;
    FOR holder IN SELECT DISTINCT p.id, p.role FROM poolferry.permit_holders() p WHERE p.transaction = ANY (seen) LOOP
        PERFORM pg_terminate_backend(a.pid) FROM pg_stat_activity a WHERE a.usename = holder.role;
        PERFORM pg_terminate_backend(a.pid, 200) FROM pg_stat_activity a WHERE a.usename = holder.role;
        UPDATE poolferry.hosts h SET held_up_at = clock_timestamp(),
            held_up_times = 1 + CASE WHEN h.held_up_at > now() - interval '1 day' THEN h.held_up_times ELSE 0 END
            WHERE h.id = (SELECT o.id FROM poolferry.hosts o WHERE o.id = holder.id FOR NO KEY UPDATE SKIP LOCKED);
    END LOOP;
EXCEPTION WHEN insufficient_privilege THEN
    NULL;  -- of a centre that no superuser made
END $$;
REVOKE ALL ON FUNCTION poolferry.is_of_this_world(timestamptz), poolferry.permit_holders(), poolferry.end_holders() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION poolferry.is_of_this_world(timestamptz) TO poolferry_host;

ALTER FUNCTION poolferry.ask_permit(text, text[], integer, integer, boolean) RENAME TO lend_permit;
REVOKE ALL ON FUNCTION poolferry.lend_permit(text, text[], integer, integer, boolean) FROM PUBLIC, poolferry_host;
CREATE FUNCTION poolferry.ask_permit(its_job text, its_limits text[], its_weight integer, its_lease integer, is_taken boolean)
    RETURNS TABLE (permit integer, granted boolean, busy boolean, place integer, in_limit text, used integer, slots integer,
        opens text, unknown text[], clamped text[])
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM set_config('lock_timeout', '250ms', true);
    RETURN QUERY SELECT * FROM poolferry.lend_permit(its_job, its_limits, its_weight, its_lease, is_taken);
EXCEPTION WHEN lock_not_available THEN
    PERFORM poolferry.end_holders();
    PERFORM set_config('lock_timeout', '5s', true);
    RETURN QUERY SELECT * FROM poolferry.lend_permit(its_job, its_limits, its_weight, its_lease, is_taken);
END $$;
REVOKE ALL ON FUNCTION poolferry.ask_permit(text, text[], integer, integer, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION poolferry.ask_permit(text, text[], integer, integer, boolean) TO poolferry_host;

-- As before, also when the centre's clock was set back: what was seen in a time to come holds no slot.
CREATE OR REPLACE FUNCTION poolferry.is_held(of_permit poolferry.permits, living integer[]) RETURNS boolean
    LANGUAGE sql VOLATILE
    RETURN of_permit.granted_at IS NOT NULL AND (of_permit.id = ANY (living)
        OR clock_timestamp() BETWEEN of_permit.seen_at - interval '1 minute' AND of_permit.seen_at + of_permit.lease
        OR clock_timestamp() BETWEEN pg_postmaster_start_time() - interval '1 minute' AND pg_postmaster_start_time() + of_permit.lease);
