-- A pool on its way to being made anew. top_guid: of its own dataset as it was; lost: a JSON list of names that may be lost;
-- kits: a JSON object, by job the content of its kit as it was then.
CREATE TABLE rebuilds (
    id INTEGER PRIMARY KEY,
    pool TEXT NOT NULL,
    begun_at INTEGER NOT NULL,
    top_guid TEXT NOT NULL,
    lost TEXT NOT NULL,
    kits ANY NOT NULL,
    ended_at INTEGER
) STRICT;
CREATE INDEX rebuilds_of_pool ON rebuilds (pool, id);
