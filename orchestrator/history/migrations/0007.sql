-- What each drill found. point null: it did not come to one. differences, check_argv: JSON lists; check_exit null with a
-- check_argv: it took too long.
CREATE TABLE drills (
    run INTEGER PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    job ANY NOT NULL,
    place ANY NOT NULL,
    point ANY,
    drilled_at INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    why ANY NOT NULL,
    whole INTEGER NOT NULL,
    proves INTEGER NOT NULL,
    seed INTEGER NOT NULL,
    files INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    of_files INTEGER,
    of_bytes INTEGER,
    restore_s REAL,
    differences TEXT NOT NULL,
    check_argv TEXT,
    check_exit INTEGER,
    check_output ANY
) STRICT;
CREATE INDEX drills_of_job ON drills (job, run);
