-- The life of the server that lends: since it was started, or had to recover from a crash of one of its processes, which sets its statistics
-- back. When another one answers, as after a failover to a copy or after a copy was put back on a new server, too, each permit that it finds
-- lent gets its whole lease once more: meanwhile its run had nobody to tell that it goes on. Why not by the time of the start alone: a standby
-- that takes over may have been started weeks ago.
CREATE FUNCTION poolferry.server_life() RETURNS timestamptz LANGUAGE sql VOLATILE
    RETURN greatest(pg_postmaster_start_time(), pg_stat_get_bgwriter_stat_reset_time());
CREATE TABLE poolferry.lender (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    lives_since timestamptz NOT NULL
);
INSERT INTO poolferry.lender (lives_since) VALUES (poolferry.server_life());
ALTER TABLE poolferry.lender ENABLE ROW LEVEL SECURITY;
CREATE POLICY readers ON poolferry.lender FOR SELECT TO poolferry_reader USING (true);
GRANT SELECT ON poolferry.lender TO poolferry_reader;

CREATE FUNCTION poolferry.take_over() RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM poolferry.lender n WHERE n.lives_since <> poolferry.server_life()) THEN
        PERFORM FROM poolferry.lender n WHERE n.lives_since <> poolferry.server_life() FOR UPDATE;
        IF FOUND THEN  -- and nobody else was faster
            UPDATE poolferry.permits p SET seen_at = clock_timestamp() WHERE p.granted_at IS NOT NULL;
            UPDATE poolferry.lender n SET lives_since = poolferry.server_life();
        END IF;
    END IF;
END $$;
REVOKE ALL ON FUNCTION poolferry.server_life(), poolferry.take_over() FROM PUBLIC;

-- As before, and a look at the server first.
CREATE OR REPLACE FUNCTION poolferry.ask_permit(its_job text, its_limits text[], its_weight integer, its_lease integer, is_taken boolean)
    RETURNS TABLE (permit integer, granted boolean, busy boolean, place integer, in_limit text, used integer, slots integer,
        opens text, unknown text[], clamped text[])
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM set_config('lock_timeout', '250ms', true);
    PERFORM poolferry.take_over();
    RETURN QUERY SELECT * FROM poolferry.lend_permit(its_job, its_limits, its_weight, its_lease, is_taken);
EXCEPTION WHEN lock_not_available THEN
    PERFORM poolferry.end_holders();
    PERFORM set_config('lock_timeout', '5s', true);
    PERFORM poolferry.take_over();
    RETURN QUERY SELECT * FROM poolferry.lend_permit(its_job, its_limits, its_weight, its_lease, is_taken);
END $$;

-- As before, and two more who hold a limit up: one that waits for a lock which a session of its own host has outside of permits, and one
-- that lets others compute for it. Whoever only asks for permits waits for others who ask, or for the administrator.
CREATE OR REPLACE FUNCTION poolferry.permit_holders() RETURNS TABLE (id integer, role name, transaction text)
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS
$$ WITH locked AS MATERIALIZED (
       SELECT DISTINCT l.pid FROM pg_locks l WHERE l.granted AND l.locktype = 'relation'
       AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
       AND l.relation IN ('poolferry.limits'::regclass, 'poolferry.permits'::regclass) AND l.pid <> pg_backend_pid()
   )
   SELECT h.id, a.usename, a.pid || ' ' || a.xact_start
   FROM locked JOIN pg_stat_activity a ON a.pid = locked.pid JOIN poolferry.hosts h ON h.role = a.usename
   WHERE coalesce(a.wait_event_type, '') NOT IN ('Lock', 'LWLock', 'IO', 'IPC', 'BufferPin')
   OR EXISTS (SELECT FROM pg_stat_activity w WHERE w.leader_pid = a.pid AND w.pid <> a.pid)
   OR (a.wait_event_type = 'Lock' AND EXISTS (
       SELECT FROM pg_stat_activity o WHERE o.pid = ANY (pg_blocking_pids(a.pid)) AND o.usename = a.usename
       AND o.pid NOT IN (SELECT pid FROM locked))) $$;

-- A job whose file is gone: its host tells of its copies until its owner says that it is over.
DROP INDEX poolferry.jobs_bad;
CREATE INDEX jobs_bad ON poolferry.jobs (host) WHERE declared AND state IN ('late', 'failing', 'incomplete', 'no-file');
