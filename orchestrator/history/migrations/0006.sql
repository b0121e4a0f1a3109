-- The newest recovery kit of each job's source.
CREATE TABLE kits (
    job TEXT NOT NULL PRIMARY KEY,
    made_at INTEGER NOT NULL,
    content ANY NOT NULL,
    layout ANY NOT NULL,
    recovery ANY NOT NULL,
    guids ANY NOT NULL
) STRICT, WITHOUT ROWID;
