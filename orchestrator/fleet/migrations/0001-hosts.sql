-- The centre itself: an id, by which a host sees that it speaks to another one than before.
CREATE TABLE poolferry.centre (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    made_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO poolferry.centre DEFAULT VALUES;

-- Hosts. machine: a hash of the machine's id, so that two machines of one name are told apart; joined_at null: invited only.
CREATE TABLE poolferry.hosts (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (name ~ '^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$'),
    role name NOT NULL UNIQUE,
    machine text CHECK (length(machine) <= 64),
    invited_at timestamptz NOT NULL DEFAULT now(),
    joined_at timestamptz,
    left_at timestamptz
);

-- The host that this session speaks for; null: none, or one that has not joined or has left.
-- Why session_user: SET ROLE does not change it, and inside a function with its owner's rights current_user is the owner.
CREATE FUNCTION poolferry.this_host() RETURNS integer
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    RETURN (SELECT id FROM poolferry.hosts WHERE role = session_user AND joined_at IS NOT NULL AND left_at IS NULL);

-- A token lives for a day, and joins once.
CREATE FUNCTION poolferry.enrol(its_machine text) RETURNS TABLE (host integer, host_name text)
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY UPDATE poolferry.hosts SET machine = its_machine, joined_at = now()
    WHERE role = session_user AND joined_at IS NULL AND left_at IS NULL AND invited_at > now() - interval '1 day'
    RETURNING id, name;
END $$;

CREATE FUNCTION poolferry.leave() RETURNS void
    LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ UPDATE poolferry.hosts SET left_at = now() WHERE role = session_user AND left_at IS NULL $$;

REVOKE ALL ON FUNCTION poolferry.this_host(), poolferry.enrol(text), poolferry.leave() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION poolferry.this_host(), poolferry.enrol(text), poolferry.leave() TO poolferry_host;
GRANT EXECUTE ON FUNCTION poolferry.this_host() TO poolferry_reader;

ALTER TABLE poolferry.hosts ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON poolferry.hosts FOR SELECT TO poolferry_host USING (role = session_user);
CREATE POLICY readers ON poolferry.hosts FOR SELECT TO poolferry_reader USING (true);
GRANT SELECT ON poolferry.hosts, poolferry.centre TO poolferry_host, poolferry_reader;
