-- Tickets: of two copies of one machine, with one password and one machine-id, only one speaks for the host. At each visit a host shows the ticket
-- of its last one and takes a new one, which it made up and wrote down before. So whoever shows an older one is a copy of another that went on, or
-- was put back to an older copy: it is refused while the other one is heard, and taken in once that has been silent for 15 minutes.
-- A centre that was itself put back, or a standby that took over, may have older tickets than its hosts: there each ticket is taken in.
-- Why no number of the boot or of the process: a machine that is copied while it runs takes all of these along.
CREATE TABLE poolferry.tickets (
    host integer PRIMARY KEY REFERENCES poolferry.hosts (id) ON DELETE CASCADE,
    ticket uuid NOT NULL,
    shown_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    life text NOT NULL,  -- of the centre, when it was shown
    other_at timestamptz  -- when an older one was shown last, while this one was heard
) WITH (fillfactor = 60);
ALTER TABLE poolferry.tickets ENABLE ROW LEVEL SECURITY;
CREATE POLICY readers ON poolferry.tickets FOR SELECT TO poolferry_reader USING (true);
GRANT SELECT (host, shown_at, other_at) ON poolferry.tickets TO poolferry_reader;

-- The life of this centre: of its server, as for permits, and of its tables, which a copy that is put back makes anew.
CREATE FUNCTION poolferry.centre_life() RETURNS text LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
    RETURN poolferry.server_life()::text || ' ' || 'poolferry.tickets'::regclass::oid;
REVOKE ALL ON FUNCTION poolferry.centre_life() FROM PUBLIC;

-- accepted: its ticket is the newest, or it is taken in; null: ask again with a new one. valid: the newest ticket now, if accepted. heard: how many
-- seconds ago the other one was. its_tickets: the one that it had last, and one that it sent without an answer; its_new null: it only looks.
CREATE FUNCTION poolferry.show_ticket(its_machine text, its_tickets uuid[], its_new uuid)
    RETURNS TABLE (accepted boolean, valid uuid, heard double precision)
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    me integer := poolferry.this_host();
    mine poolferry.tickets;
    its_life text := poolferry.centre_life();
    ago double precision;
BEGIN
    IF me IS NULL THEN
        RETURN;  -- it has not joined, or has left: what it asks for says so
    END IF;
    IF its_machine IS DISTINCT FROM (SELECT h.machine FROM poolferry.hosts h WHERE h.id = me) THEN
        RETURN QUERY SELECT false, NULL::uuid, NULL::double precision;
        RETURN;
    END IF;
    IF its_new IS NOT NULL THEN
        INSERT INTO poolferry.tickets (host, ticket, life) VALUES (me, its_new, its_life) ON CONFLICT (host) DO NOTHING;
    END IF;
    SELECT * INTO mine FROM poolferry.tickets t WHERE t.host = me FOR UPDATE;
    ago := extract(epoch FROM clock_timestamp() - mine.shown_at);
    IF mine.ticket = ANY (its_tickets) OR mine.ticket = its_new THEN
        IF its_new IS DISTINCT FROM mine.ticket AND its_new IS NOT NULL OR ago NOT BETWEEN 0 AND 60 OR mine.life <> its_life THEN
            UPDATE poolferry.tickets t SET ticket = coalesce(its_new, t.ticket), life = its_life, shown_at = clock_timestamp() WHERE t.host = me;
        END IF;
        RETURN QUERY SELECT true, coalesce(its_new, mine.ticket), 0::double precision;
    ELSIF its_new IS NULL THEN
        RETURN QUERY SELECT NULL::boolean, NULL::uuid, NULL::double precision;
    ELSIF ago BETWEEN -60 AND 900 AND mine.life = its_life THEN
        UPDATE poolferry.tickets t SET other_at = clock_timestamp() WHERE t.host = me;
        RETURN QUERY SELECT false, NULL::uuid, greatest(ago, 0);
    ELSE
        UPDATE poolferry.tickets t SET ticket = its_new, life = its_life, shown_at = clock_timestamp(), other_at = NULL WHERE t.host = me;
        -- The other one may have begun what it took: only a history that knows so says what became of it.
        UPDATE poolferry.orders o SET state = 'begun' WHERE o.host = me AND o.state = 'taken';
        RETURN QUERY SELECT true, its_new, 0::double precision;
    END IF;
END $$;

-- Takes an order before it is begun. False: it is over, or another copy of the host has the newest ticket, or it was taken with this one already.
ALTER TABLE poolferry.orders ADD COLUMN ticket uuid;
CREATE FUNCTION poolferry.take_order(its_key uuid, its_attempt integer, its_ticket uuid) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM poolferry.tickets t WHERE t.host = poolferry.this_host() AND t.ticket = its_ticket FOR SHARE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE poolferry.orders o SET state = 'taken', attempt = its_attempt, ticket = its_ticket, act = NULL, said = '', told_at = now()
        WHERE o.key = its_key AND o.host = poolferry.this_host() AND o.state IN ('asked', 'taken', 'begun') AND o.ticket IS DISTINCT FROM its_ticket;
    RETURN FOUND;
END $$;
REVOKE ALL ON FUNCTION poolferry.show_ticket(text, uuid[], uuid), poolferry.take_order(uuid, integer, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION poolferry.show_ticket(text, uuid[], uuid), poolferry.take_order(uuid, integer, uuid) TO poolferry_host;
