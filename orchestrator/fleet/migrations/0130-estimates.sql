-- What a host may read, it may also have explained: and the estimates of the planner come from the rows of all hosts, whatever the policies say. By
-- them a host could ask for the names and paths of others, letter by letter. So nothing is gathered of texts; of a few that are words of ours
-- alone, by which questions are planned, it is: how many runs failed says no name. What was gathered before, `poolferry fleet init` removes.
DO $$ DECLARE each record; BEGIN
    FOR each IN SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE c.relnamespace = 'poolferry'::regnamespace AND c.relkind = 'r' AND a.atttypid IN ('text'::regtype, 'name'::regtype, 'jsonb'::regtype)
        AND a.attname NOT IN ('state', 'engine', 'outcome', 'type', 'subject', 'verb') LOOP
        EXECUTE format('ALTER TABLE poolferry.%I ALTER COLUMN %I SET STATISTICS 0', each.relname, each.attname);
    END LOOP;
END $$;
ALTER INDEX poolferry.records_disks ALTER COLUMN 1 SET STATISTICS 0;
