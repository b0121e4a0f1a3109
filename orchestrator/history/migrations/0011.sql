-- Problems of copies that end only when they are over; at most one open of each kind at a place and point. point '': of no
-- single point. paths: a JSON list of the first. tried: a run could not mend it. ended_at null: it is not over.
CREATE TABLE problems (
    id INTEGER PRIMARY KEY,
    job ANY NOT NULL,
    place ANY NOT NULL,
    kind TEXT NOT NULL,
    point ANY NOT NULL,
    why ANY NOT NULL,
    paths TEXT NOT NULL,
    number INTEGER NOT NULL,
    since_at INTEGER NOT NULL,
    tried INTEGER NOT NULL DEFAULT 0,
    ended_at INTEGER,
    ended_by ANY NOT NULL DEFAULT ''
) STRICT;
CREATE UNIQUE INDEX problems_open ON problems (job, place, kind, point) WHERE ended_at IS NULL;
CREATE INDEX problems_of_job ON problems (job, id);
INSERT INTO problems (job, place, kind, point, why, paths, number, since_at)
SELECT job, place, 'damaged', name, 'a reading found damage', '[]', 0, coalesce(whole_at, known_at)
FROM points WHERE gone_at IS NULL AND sound = 0;

-- A run that left files out has made a copy, too.
DROP INDEX runs_well;
CREATE INDEX runs_well ON runs (job, id) WHERE outcome IN ('done', 'nothing-to-do', 'incomplete') AND kind = 'run';
