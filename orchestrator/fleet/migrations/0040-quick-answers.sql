-- Puts a permit that was lent a moment ago on the disk, with all that was committed before. Why not where it is lent: all who ask for
-- one limit would wait for each other's disk there. A session that lends without waiting calls this before it believes what it was lent.
CREATE FUNCTION poolferry.settle_permit(its_permit integer) RETURNS void
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'on', true);
    UPDATE poolferry.permits p SET seen_at = clock_timestamp() WHERE p.id = its_permit AND p.backend = pg_backend_pid();
END $$;
REVOKE ALL ON FUNCTION poolferry.settle_permit(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION poolferry.settle_permit(integer) TO poolferry_host;

-- How many jobs of each host are in which state, so that a front page counts hosts and not jobs. Counted anew for a host whose jobs
-- changed their state, which most signs of life do not.
CREATE TABLE poolferry.job_counts (
    host integer NOT NULL REFERENCES poolferry.hosts (id) ON DELETE CASCADE,
    state text NOT NULL,
    number integer NOT NULL,
    PRIMARY KEY (host, state)
) WITH (fillfactor = 80);
ALTER TABLE poolferry.job_counts ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON poolferry.job_counts FOR SELECT TO poolferry_host USING (host = (SELECT poolferry.this_host()));
CREATE POLICY readers ON poolferry.job_counts FOR SELECT TO poolferry_reader USING (true);
GRANT SELECT ON poolferry.job_counts TO poolferry_host, poolferry_reader;

CREATE FUNCTION poolferry.count_jobs(its_hosts integer[]) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM poolferry.quotas q WHERE q.host = ANY (its_hosts) ORDER BY q.host FOR NO KEY UPDATE;  -- one at a time for each host
    DELETE FROM poolferry.job_counts c WHERE c.host = ANY (its_hosts)
        AND NOT EXISTS (SELECT FROM poolferry.jobs j WHERE j.host = c.host AND j.state = c.state AND j.declared);
    INSERT INTO poolferry.job_counts AS c (host, state, number)
        SELECT j.host, j.state, count(*) FROM poolferry.jobs j WHERE j.host = ANY (its_hosts) AND j.declared GROUP BY j.host, j.state
        ON CONFLICT (host, state) DO UPDATE SET number = excluded.number WHERE c.number <> excluded.number;
END $$;
CREATE FUNCTION poolferry.recount_jobs() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    its_hosts integer[];
BEGIN
    IF TG_OP = 'UPDATE' THEN
        SELECT array_agg(DISTINCT t.host) INTO its_hosts FROM told t JOIN was w ON w.host = t.host AND w.job = t.job
            WHERE (t.state, t.declared) <> (w.state, w.declared);
    ELSIF TG_OP = 'INSERT' THEN
        SELECT array_agg(DISTINCT t.host) INTO its_hosts FROM told t;
    ELSE
        SELECT array_agg(DISTINCT w.host) INTO its_hosts FROM was w;
    END IF;
    IF its_hosts IS NOT NULL THEN
        PERFORM poolferry.count_jobs(its_hosts);
    END IF;
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION poolferry.count_jobs(integer[]), poolferry.recount_jobs() FROM PUBLIC;
CREATE TRIGGER counted AFTER INSERT ON poolferry.jobs REFERENCING NEW TABLE AS told FOR EACH STATEMENT
    EXECUTE FUNCTION poolferry.recount_jobs();
CREATE TRIGGER counted_again AFTER UPDATE ON poolferry.jobs REFERENCING OLD TABLE AS was NEW TABLE AS told FOR EACH STATEMENT
    EXECUTE FUNCTION poolferry.recount_jobs();
CREATE TRIGGER uncounted AFTER DELETE ON poolferry.jobs REFERENCING OLD TABLE AS was FOR EACH STATEMENT
    EXECUTE FUNCTION poolferry.recount_jobs();
INSERT INTO poolferry.job_counts (host, state, number)
    SELECT host, state, count(*) FROM poolferry.jobs WHERE declared GROUP BY host, state;
DROP INDEX poolferry.jobs_states;
CREATE INDEX jobs_bad ON poolferry.jobs (host) WHERE declared AND state IN ('late', 'failing', 'incomplete');
CREATE INDEX jobs_pools ON poolferry.jobs (host) WHERE declared AND engine = 'pool';
