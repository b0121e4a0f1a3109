-- Clocks that jump. When a job is late is reckoned once, when its copy is told: a clock that is set by a year afterwards, here or there, makes that
-- job neither late nor well. And no copy is newer than the moment in which the centre heard of it: of a host whose clock was set back, the
-- last copy of before seemed to have been made in a time to come, and the job was called well for all that time.
CREATE OR REPLACE FUNCTION poolferry.stamp_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.changed_at := now();
    IF TG_OP = 'UPDATE' AND OLD.late_at IS NOT NULL AND NEW.copied_at IS NOT DISTINCT FROM OLD.copied_at AND OLD.changed_at <= now() THEN
        NEW.late_at := OLD.late_at + make_interval(secs => NEW.late_after_s - OLD.late_after_s);
    ELSIF NEW.copied_at IS NULL OR NEW.late_after_s IS NULL THEN
        NEW.late_at := NULL;
    ELSE
        NEW.late_at := make_interval(secs => NEW.late_after_s) + least(now(),
            NEW.copied_at - coalesce((SELECT host_at - seen_at FROM poolferry.beats WHERE host = NEW.host), interval '0'));
    END IF;
    RETURN NEW;
END $$;

-- Where the centre's own clock was ahead and was set back, what was told meanwhile is reckoned anew at the next sign of life.
CREATE FUNCTION poolferry.reckon_again() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE poolferry.jobs j SET failures = j.failures WHERE j.host = NEW.host AND j.changed_at > now();
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION poolferry.reckon_again() FROM PUBLIC;
CREATE TRIGGER set_back AFTER UPDATE ON poolferry.beats FOR EACH ROW WHEN (OLD.seen_at > NEW.seen_at + interval '1 minute')
    EXECUTE FUNCTION poolferry.reckon_again();
