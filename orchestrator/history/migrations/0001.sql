-- Instants: INTEGER microseconds since 1970 in UTC, columns *_at. ANY: text, or the bytes of text that is no Unicode.
-- A run is open while its outcome is null.
CREATE TABLE runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    job ANY NOT NULL,
    engine TEXT NOT NULL,
    source ANY NOT NULL,
    target ANY NOT NULL,
    begun_at INTEGER NOT NULL,
    begun_why ANY NOT NULL,
    kind TEXT NOT NULL,
    pid INTEGER NOT NULL,
    process_started INTEGER NOT NULL,
    boot TEXT NOT NULL,
    host ANY NOT NULL,
    outcome TEXT,
    ended_at INTEGER,
    why ANY,
    cure ANY,
    moved_bytes INTEGER,
    took_s REAL,
    resumed INTEGER,
    attempts INTEGER,
    points TEXT,
    warnings TEXT,
    evidence TEXT
) STRICT;
CREATE INDEX runs_of_job ON runs (job, id);
CREATE INDEX runs_open ON runs (id) WHERE outcome IS NULL;
CREATE INDEX runs_well ON runs (job, id) WHERE outcome IN ('done', 'nothing-to-do') AND kind = 'run';
CREATE INDEX runs_badly ON runs (job, id) WHERE outcome IN ('failed', 'refused', 'interrupted') AND kind IN ('run', 'verify');

CREATE TABLE attempts (
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    begun_at INTEGER NOT NULL,
    ended_at INTEGER,
    why ANY,
    evidence TEXT,
    plan ANY,
    refusal ANY,
    UNIQUE (run, number)
) STRICT;

CREATE TABLE steps (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    number INTEGER NOT NULL,
    does ANY NOT NULL,
    why ANY NOT NULL,
    lane ANY NOT NULL,
    commands TEXT NOT NULL,
    expected INTEGER,
    begun_at INTEGER NOT NULL,
    ended_at INTEGER,
    moved INTEGER,
    proved INTEGER,
    exits TEXT,
    last_words TEXT,
    error ANY,
    FOREIGN KEY (run, attempt) REFERENCES attempts (run, number) ON DELETE CASCADE
) STRICT;
CREATE INDEX steps_of_attempt ON steps (run, attempt, id);

CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    said_at INTEGER NOT NULL,
    level TEXT NOT NULL,
    text ANY NOT NULL
) STRICT;
CREATE INDEX events_of_run ON events (run, id);

CREATE TABLE hooks (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    called_at INTEGER NOT NULL,
    event TEXT NOT NULL,
    argv TEXT NOT NULL,
    exit INTEGER,
    took_s REAL NOT NULL,
    output ANY NOT NULL
) STRICT;
CREATE INDEX hooks_of_run ON hooks (run, id);

-- A point that was seen on a target, not made by a run we remember, has neither run nor made_at.
-- sound: null never read, 0 the last word is bad, 1 the last word is good. whole_at: the last reading of all of it.
CREATE TABLE points (
    id INTEGER PRIMARY KEY,
    job ANY NOT NULL,
    place ANY NOT NULL,
    name ANY NOT NULL,
    run INTEGER REFERENCES runs (id) ON DELETE SET NULL,
    taken_at INTEGER,
    made_at INTEGER,
    known_at INTEGER NOT NULL,
    entries INTEGER,
    bytes INTEGER,
    proved_at INTEGER,
    confirmed_at INTEGER,
    confirmed_by INTEGER REFERENCES runs (id) ON DELETE SET NULL,
    gone_at INTEGER,
    sound INTEGER,
    whole_at INTEGER,
    UNIQUE (job, place, name)
) STRICT;
CREATE INDEX points_there ON points (job, place, name) WHERE gone_at IS NULL;
CREATE INDEX points_of_run ON points (run);
CREATE INDEX points_confirmed_by ON points (confirmed_by);

CREATE TABLE readings (
    id INTEGER PRIMARY KEY,
    point INTEGER NOT NULL REFERENCES points (id) ON DELETE CASCADE,
    read_at INTEGER NOT NULL,
    scope TEXT NOT NULL,
    entries INTEGER NOT NULL,
    files_read INTEGER NOT NULL,
    bytes_read INTEGER NOT NULL,
    took_s REAL NOT NULL,
    sound INTEGER NOT NULL,
    counts TEXT NOT NULL,
    left_out INTEGER NOT NULL
) STRICT;
CREATE INDEX readings_of_point ON readings (point, id);

CREATE TABLE findings (
    reading INTEGER NOT NULL REFERENCES readings (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    path ANY NOT NULL,
    verdict TEXT NOT NULL,
    detail ANY NOT NULL,
    PRIMARY KEY (reading, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE memory (
    job ANY NOT NULL,
    key ANY NOT NULL,
    value ANY NOT NULL,
    PRIMARY KEY (job, key)
) STRICT, WITHOUT ROWID;
