-- Acts that somebody asked the daemon for. about: a point, a span or paths, as text; ended_at null: it goes on, or the
-- daemon ended before it. act_processes: those that do it; a run records its own process, too.
CREATE TABLE acts (
    id INTEGER PRIMARY KEY,
    verb TEXT NOT NULL,
    subject ANY NOT NULL,
    about ANY NOT NULL,
    who ANY NOT NULL,
    asked_at INTEGER NOT NULL,
    ended_at INTEGER,
    well INTEGER,
    said ANY NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX acts_of_subject ON acts (subject, id);
CREATE TABLE act_processes (
    act INTEGER NOT NULL REFERENCES acts (id) ON DELETE CASCADE,
    pid INTEGER NOT NULL,
    PRIMARY KEY (act, pid)
) STRICT, WITHOUT ROWID;
