-- A run that a job owes; there is at most one. It stands for all slots from slot_at to newest_at.
CREATE TABLE owed (
    job ANY NOT NULL PRIMARY KEY,
    slot_at INTEGER NOT NULL,
    newest_at INTEGER NOT NULL,
    slots INTEGER NOT NULL,
    why ANY NOT NULL,
    noted_at INTEGER NOT NULL,
    after_run INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    tried INTEGER NOT NULL,
    not_before_at INTEGER,
    told ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- Up to where the slots of a job have been seen to, and by which schedule.
CREATE TABLE anchors (
    job ANY NOT NULL PRIMARY KEY,
    at_at INTEGER NOT NULL,
    schedule TEXT NOT NULL,
    run INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What each daemon wrote down of itself: from it the next one knows since when nobody looked.
CREATE TABLE beats (
    id INTEGER PRIMARY KEY,
    boot TEXT NOT NULL,
    pid INTEGER NOT NULL,
    begun_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    orderly INTEGER NOT NULL
) STRICT;

-- Jobs that somebody told to rest. until_at null: until somebody resumes them.
CREATE TABLE pauses (
    job ANY NOT NULL PRIMARY KEY,
    since_at INTEGER NOT NULL,
    until_at INTEGER,
    why ANY NOT NULL
) STRICT, WITHOUT ROWID;
