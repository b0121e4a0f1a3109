-- What each host has told: the last batch that was stored, under which incarnation of its history, up to which of its changes.
CREATE TABLE poolferry.progress (
    host integer PRIMARY KEY REFERENCES poolferry.hosts (id) ON DELETE CASCADE,
    incarnation integer NOT NULL DEFAULT 1,
    batch text NOT NULL DEFAULT '' CHECK (length(batch) <= 64),
    seq bigint NOT NULL DEFAULT 0,
    stored_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 60);

-- Runs of all hosts. incarnation: of the host's history, whose numbers begin anew when an older copy of it was put back; seq: of
-- the change at the host that is told here, so that an older one never replaces a newer; born: microseconds, as the host says;
-- arrived_at: this centre's own time, whatever the host's clock says. removed: the host folded it into another one.
CREATE TABLE poolferry.runs (
    host integer NOT NULL REFERENCES poolferry.hosts (id) ON DELETE CASCADE,
    incarnation integer NOT NULL,
    id bigint NOT NULL,
    seq bigint NOT NULL,
    born bigint NOT NULL,
    job text NOT NULL,
    engine text NOT NULL,
    source text NOT NULL,
    target text NOT NULL,
    type text NOT NULL,
    begun_at timestamptz NOT NULL,
    begun_why text NOT NULL,
    ended_at timestamptz,
    outcome text,
    why text,
    hint text,
    moved_bytes bigint,
    took_s double precision,
    resumed boolean,
    attempts integer,
    points jsonb,
    warnings jsonb,
    removed boolean NOT NULL DEFAULT false,
    arrived_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (host, incarnation, id)
);
CREATE INDEX runs_begun ON poolferry.runs (begun_at);
CREATE INDEX runs_bad ON poolferry.runs (begun_at) WHERE outcome IN ('failed', 'refused', 'interrupted', 'incomplete');

-- All else that hosts tell, by its subject: step, point, verdict, drill (a restore test), problem, disk, visit, notice.
CREATE TABLE poolferry.records (
    host integer NOT NULL REFERENCES poolferry.hosts (id) ON DELETE CASCADE,
    subject text NOT NULL,
    incarnation integer NOT NULL,
    key text NOT NULL CHECK (length(key) <= 200),
    seq bigint NOT NULL,
    born bigint NOT NULL,
    body jsonb NOT NULL,
    arrived_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (host, subject, incarnation, key)
);
CREATE INDEX records_disks ON poolferry.records ((body ->> 'identity')) WHERE subject = 'disk';

-- The last sign of life of each host, and what it then said of itself. host_at: by its own clock; seen_at: by this centre's.
-- every_s: within what time it promises the next one.
CREATE TABLE poolferry.beats (
    host integer PRIMARY KEY REFERENCES poolferry.hosts (id) ON DELETE CASCADE,
    seen_at timestamptz NOT NULL DEFAULT now(),
    host_at timestamptz NOT NULL,
    every_s double precision NOT NULL CHECK (every_s > 0),
    version text NOT NULL,
    waiting bigint NOT NULL DEFAULT 0,
    mistakes integer NOT NULL DEFAULT 0
) WITH (fillfactor = 60);

-- Each job as its host judged it last, with the limit by which the centre itself sees that it is late. declared: false once the
-- host's files have it no more. due_at: since when a run is due. late_at: from when on it is late, by
-- this centre's clock: moved by as much as the host's differed when it told so.
CREATE TABLE poolferry.jobs (
    host integer NOT NULL REFERENCES poolferry.hosts (id) ON DELETE CASCADE,
    job text NOT NULL,
    engine text NOT NULL,
    source text NOT NULL,
    target text NOT NULL,
    state text NOT NULL,
    why text NOT NULL,
    hint text NOT NULL,
    late_after_s double precision,
    copied_at timestamptz,
    due_at timestamptz,
    next_at timestamptz,
    running_at timestamptz,
    last_outcome text,
    last_ended_at timestamptz,
    failures integer NOT NULL DEFAULT 0,
    declared boolean NOT NULL DEFAULT true,
    late_at timestamptz,
    changed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (host, job)
) WITH (fillfactor = 80);
-- The front page counts from these alone, and reads the rows of bad jobs only.
CREATE INDEX jobs_states ON poolferry.jobs (state, host) WHERE declared;
CREATE INDEX jobs_late ON poolferry.jobs (late_at) WHERE declared AND state NOT IN ('late', 'failing', 'incomplete', 'paused');

-- The centre's own time stands beside what a host says, and no host can write it.
CREATE FUNCTION poolferry.stamp_arrival() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN NEW.arrived_at := now(); RETURN NEW; END $$;
CREATE FUNCTION poolferry.stamp_beat() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN NEW.seen_at := now(); RETURN NEW; END $$;
CREATE FUNCTION poolferry.stamp_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.changed_at := now();
    NEW.late_at := NEW.copied_at + make_interval(secs => NEW.late_after_s)
        - coalesce((SELECT host_at - seen_at FROM poolferry.beats WHERE host = NEW.host), interval '0');
    RETURN NEW;
END $$;
REVOKE ALL ON FUNCTION poolferry.stamp_arrival(), poolferry.stamp_beat(), poolferry.stamp_change() FROM PUBLIC;
CREATE TRIGGER arrived BEFORE UPDATE ON poolferry.runs FOR EACH ROW EXECUTE FUNCTION poolferry.stamp_arrival();
CREATE TRIGGER arrived BEFORE UPDATE ON poolferry.records FOR EACH ROW EXECUTE FUNCTION poolferry.stamp_arrival();
CREATE TRIGGER seen BEFORE UPDATE ON poolferry.beats FOR EACH ROW EXECUTE FUNCTION poolferry.stamp_beat();
CREATE TRIGGER changed BEFORE INSERT OR UPDATE ON poolferry.jobs FOR EACH ROW EXECUTE FUNCTION poolferry.stamp_change();

-- A host reads and writes rows of its own; it deletes nothing, and the columns of the centre's time are not its to write.
GRANT SELECT ON poolferry.progress, poolferry.runs, poolferry.records, poolferry.beats, poolferry.jobs
    TO poolferry_host, poolferry_reader;
GRANT INSERT (host), UPDATE (incarnation, batch, seq) ON poolferry.progress TO poolferry_host;
GRANT INSERT (host, incarnation, id, seq, born, job, engine, source, target, type, begun_at, begun_why, ended_at, outcome, why,
        hint, moved_bytes, took_s, resumed, attempts, points, warnings),
    UPDATE (seq, job, engine, source, target, type, begun_why, ended_at, outcome, why, hint, moved_bytes, took_s, resumed, attempts,
        points, warnings, removed)
    ON poolferry.runs TO poolferry_host;
GRANT INSERT (host, subject, incarnation, key, seq, born, body), UPDATE (seq, body) ON poolferry.records TO poolferry_host;
GRANT INSERT (host, host_at, every_s, version, waiting, mistakes), UPDATE (host_at, every_s, version, waiting, mistakes)
    ON poolferry.beats TO poolferry_host;
GRANT INSERT (host, job, engine, source, target, state, why, hint, late_after_s, copied_at, due_at, next_at, running_at,
        last_outcome, last_ended_at, failures, declared),
    UPDATE (engine, source, target, state, why, hint, late_after_s, copied_at, due_at, next_at, running_at, last_outcome,
        last_ended_at, failures, declared)
    ON poolferry.jobs TO poolferry_host;

DO $$ DECLARE each text; BEGIN
    FOREACH each IN ARRAY ARRAY['progress', 'runs', 'records', 'beats', 'jobs'] LOOP
        EXECUTE format('ALTER TABLE poolferry.%I ENABLE ROW LEVEL SECURITY', each);
        EXECUTE format('CREATE POLICY own ON poolferry.%I TO poolferry_host USING (host = (SELECT poolferry.this_host()))'
            ' WITH CHECK (host = (SELECT poolferry.this_host()))', each);
        EXECUTE format('CREATE POLICY readers ON poolferry.%I FOR SELECT TO poolferry_reader USING (true)', each);
    END LOOP;
END $$;
