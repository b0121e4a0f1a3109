-- Orders to hosts, of the closed list of acts that a daemon takes. asked: not fetched yet; taken: fetched; begun: the host's daemon
-- does it, as its act; then done, failed, refused (by the host), expired (past its deadline, never begun) or cancelled.
CREATE TABLE poolferry.orders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key uuid NOT NULL UNIQUE DEFAULT gen_random_uuid(),
    host integer NOT NULL REFERENCES poolferry.hosts ON DELETE CASCADE,
    verb text NOT NULL CHECK (verb IN ('run', 'plan', 'pause', 'resume', 'verify', 'drill')),
    job text NOT NULL CHECK (length(job) BETWEEN 1 AND 200),
    point text NOT NULL DEFAULT '',
    span text NOT NULL DEFAULT '',
    asked_by text NOT NULL,
    asked_at timestamptz NOT NULL DEFAULT now(),
    deadline timestamptz NOT NULL,
    state text NOT NULL DEFAULT 'asked'
        CHECK (state IN ('asked', 'taken', 'begun', 'done', 'failed', 'refused', 'expired', 'cancelled')),
    attempt integer NOT NULL DEFAULT 0,
    act bigint,
    said text NOT NULL DEFAULT '' CHECK (length(said) <= 20000),
    told_at timestamptz
);
CREATE INDEX orders_open ON poolferry.orders (host, id) WHERE state IN ('asked', 'taken', 'begun');

-- The open orders of this host, oldest first; what nobody fetched in time is over. Why no lock: each host has one queue and fetches
-- alone, its daemon takes each key once, and a lock would only be left behind by a line that went silent. its_machine: a hash of its
-- id: a copy of the machine, which has the same password, gets no orders.
CREATE FUNCTION poolferry.fetch_orders(its_machine text) RETURNS TABLE (key uuid, verb text, job text, point text, span text, asked_by text,
        state text, attempt integer, late boolean)
    LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE poolferry.orders o SET state = 'expired', told_at = now(), said = 'its deadline passed before the host asked for orders'
        WHERE o.host = poolferry.this_host() AND o.state = 'asked' AND o.deadline < now();
    SELECT o.key, o.verb, o.job, o.point, o.span, o.asked_by, o.state, o.attempt, o.deadline < now()
        FROM poolferry.orders o WHERE o.host = poolferry.this_host() AND o.state IN ('asked', 'taken', 'begun')
        AND its_machine = (SELECT h.machine FROM poolferry.hosts h WHERE h.id = o.host) ORDER BY o.id LIMIT 100
$$;

-- Says what became of an order of this host; one that has ended stays as it is.
CREATE FUNCTION poolferry.report_order(its_key uuid, its_state text, its_attempt integer, its_act bigint, its_words text)
    RETURNS boolean
    LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH told AS (
        UPDATE poolferry.orders o SET state = its_state, attempt = its_attempt, act = its_act, said = left(its_words, 20000), told_at = now()
        WHERE o.key = its_key AND o.host = poolferry.this_host() AND o.state IN ('asked', 'taken', 'begun')
        AND its_state IN ('taken', 'begun', 'done', 'failed', 'refused', 'expired') RETURNING 1
    ) SELECT EXISTS (SELECT FROM told)
$$;

REVOKE ALL ON FUNCTION poolferry.fetch_orders(text), poolferry.report_order(uuid, text, integer, bigint, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION poolferry.fetch_orders(text), poolferry.report_order(uuid, text, integer, bigint, text) TO poolferry_host;
GRANT SELECT ON poolferry.orders TO poolferry_reader;
ALTER TABLE poolferry.orders ENABLE ROW LEVEL SECURITY;
CREATE POLICY readers ON poolferry.orders FOR SELECT TO poolferry_reader USING (true);
