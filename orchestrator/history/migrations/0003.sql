-- What each channel was told of a job's copy at a place: the trouble that has not ended (begun_at null: there is none),
-- and when those before began. causes, earlier: JSON lists; earlier holds instants.
CREATE TABLE told (
    channel ANY NOT NULL,
    job ANY NOT NULL,
    target ANY NOT NULL,
    begun_at INTEGER,
    told_at INTEGER,
    reminders INTEGER NOT NULL,
    causes TEXT NOT NULL,
    unsteady INTEGER NOT NULL,
    well_since_at INTEGER,
    earlier TEXT NOT NULL,
    PRIMARY KEY (channel, job, target)
) STRICT, WITHOUT ROWID;

-- What goes through a channel, once made until for ever. due_at null: nothing more is done; then sent_at null: given up.
-- held_at: until then a process that is sending it has it for itself.
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    channel ANY NOT NULL,
    kind TEXT NOT NULL,
    about ANY NOT NULL,
    made_at INTEGER NOT NULL,
    subject ANY NOT NULL,
    body ANY NOT NULL,
    facts ANY NOT NULL,
    tries INTEGER NOT NULL DEFAULT 0,
    due_at INTEGER,
    held_at INTEGER,
    sent_at INTEGER,
    error ANY
) STRICT;
CREATE INDEX messages_due ON messages (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX messages_about ON messages (channel, about, kind);

-- The day of the last digest of each channel, or of the one before counting began.
CREATE TABLE digests (
    channel ANY PRIMARY KEY NOT NULL,
    day TEXT NOT NULL
) STRICT, WITHOUT ROWID;
