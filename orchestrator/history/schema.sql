-- The whole schema of the history: what the scripts in migrations/ leave, one after the other, word for word. A new history begins with
-- it. Why each table and column is there, the scripts say.

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

CREATE TABLE anchors (
    job ANY NOT NULL PRIMARY KEY,
    at_at INTEGER NOT NULL,
    schedule TEXT NOT NULL,
    run INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE beats (
    id INTEGER PRIMARY KEY,
    boot TEXT NOT NULL,
    pid INTEGER NOT NULL,
    begun_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    orderly INTEGER NOT NULL
) STRICT;

CREATE TABLE pauses (
    job ANY NOT NULL PRIMARY KEY,
    since_at INTEGER NOT NULL,
    until_at INTEGER,
    why ANY NOT NULL
) STRICT, WITHOUT ROWID;

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

CREATE TABLE digests (
    channel ANY PRIMARY KEY NOT NULL,
    day TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_ended ON runs (job, outcome, moved_bytes, took_s) WHERE outcome IS NOT NULL AND kind = 'run';

CREATE TABLE disks (
    disk TEXT NOT NULL PRIMARY KEY,
    name ANY NOT NULL,
    set_name ANY NOT NULL,
    identity TEXT NOT NULL,
    content TEXT NOT NULL,
    size INTEGER NOT NULL,
    serial ANY NOT NULL,
    model ANY NOT NULL,
    wwn ANY NOT NULL,
    generation INTEGER NOT NULL,
    written INTEGER NOT NULL,
    enrolled_at INTEGER NOT NULL,
    standing TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE visits (
    id INTEGER PRIMARY KEY,
    disk TEXT NOT NULL REFERENCES disks (disk) ON DELETE CASCADE,
    arrived_at INTEGER NOT NULL,
    jobs TEXT NOT NULL,
    outcome TEXT NOT NULL,
    why ANY NOT NULL,
    released_at INTEGER,
    safe INTEGER NOT NULL
, health ANY, slow ANY NOT NULL DEFAULT '', beside TEXT NOT NULL DEFAULT '') STRICT;
CREATE INDEX visits_of_disk ON visits (disk, id);

CREATE TABLE whereabouts (
    id INTEGER PRIMARY KEY,
    disk TEXT NOT NULL REFERENCES disks (disk) ON DELETE CASCADE,
    since_at INTEGER NOT NULL,
    place ANY NOT NULL,
    note ANY NOT NULL
) STRICT;
CREATE INDEX whereabouts_of_disk ON whereabouts (disk, id);

CREATE TABLE kits (
    job TEXT NOT NULL PRIMARY KEY,
    made_at INTEGER NOT NULL,
    content ANY NOT NULL,
    layout ANY NOT NULL,
    recovery ANY NOT NULL,
    guids ANY NOT NULL
) STRICT, WITHOUT ROWID;

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

CREATE TABLE snoozes (
    disk TEXT NOT NULL PRIMARY KEY REFERENCES disks (disk) ON DELETE CASCADE,
    since_at INTEGER NOT NULL,
    until_at INTEGER NOT NULL,
    note ANY NOT NULL
) STRICT, WITHOUT ROWID;

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
CREATE INDEX runs_well ON runs (job, id) WHERE outcome IN ('done', 'nothing-to-do', 'incomplete') AND kind = 'run';

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
, by_order TEXT) STRICT;
CREATE INDEX acts_of_subject ON acts (subject, id);

CREATE TABLE act_processes (
    act INTEGER NOT NULL REFERENCES acts (id) ON DELETE CASCADE,
    pid INTEGER NOT NULL,
    PRIMARY KEY (act, pid)
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_begun ON runs (begun_at);
CREATE INDEX points_made ON points (made_at) WHERE made_at IS NOT NULL;
CREATE INDEX readings_read ON readings (read_at);
CREATE INDEX drills_drilled ON drills (drilled_at);
CREATE INDEX acts_asked ON acts (asked_at);
CREATE INDEX acts_open ON acts (id) WHERE ended_at IS NULL;

CREATE TABLE fleet (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    centre TEXT NOT NULL,
    batch TEXT NOT NULL,
    sending TEXT NOT NULL,
    sending_last INTEGER NOT NULL,
    stored_last INTEGER NOT NULL
) STRICT;

CREATE TABLE outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    subject TEXT NOT NULL,
    key TEXT NOT NULL,
    back INTEGER NOT NULL DEFAULT 0,
    UNIQUE (subject, key)
) STRICT;

CREATE TABLE incarnations (
    number INTEGER NOT NULL,
    subject TEXT NOT NULL,
    first INTEGER NOT NULL,
    PRIMARY KEY (subject, number)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER run_made AFTER INSERT ON runs WHEN EXISTS (SELECT 1 FROM fleet) BEGIN
    DELETE FROM outbox WHERE subject = 'run' AND key = CAST(new.id AS TEXT);
    INSERT INTO outbox (subject, key) VALUES ('run', CAST(new.id AS TEXT));
END;

CREATE TRIGGER run_changed AFTER UPDATE ON runs WHEN EXISTS (SELECT 1 FROM fleet) BEGIN
    DELETE FROM outbox WHERE subject = 'run' AND key = CAST(new.id AS TEXT);
    INSERT INTO outbox (subject, key) VALUES ('run', CAST(new.id AS TEXT));
END;

CREATE TRIGGER run_removed AFTER DELETE ON runs WHEN EXISTS (SELECT 1 FROM fleet) BEGIN
    DELETE FROM outbox WHERE subject = 'run' AND key = CAST(old.id AS TEXT);
    INSERT INTO outbox (subject, key) VALUES ('run', CAST(old.id AS TEXT));
END;

CREATE TRIGGER step_made AFTER INSERT ON steps WHEN EXISTS (SELECT 1 FROM fleet) BEGIN
    DELETE FROM outbox WHERE subject = 'step' AND key = CAST(new.id AS TEXT);
    INSERT INTO outbox (subject, key) VALUES ('step', CAST(new.id AS TEXT));
END;

CREATE TRIGGER step_changed AFTER UPDATE ON steps WHEN EXISTS (SELECT 1 FROM fleet) BEGIN
    DELETE FROM outbox WHERE subject = 'step' AND key = CAST(new.id AS TEXT);
    INSERT INTO outbox (subject, key) VALUES ('step', CAST(new.id AS TEXT));
END;

CREATE TRIGGER step_removed AFTER DELETE ON steps WHEN EXISTS (SELECT 1 FROM fleet) BEGIN
    DELETE FROM outbox WHERE subject = 'step' AND key = CAST(old.id AS TEXT);
END;

CREATE TRIGGER point_made AFTER INSERT ON points WHEN EXISTS (SELECT 1 FROM fleet) BEGIN
    DELETE FROM outbox WHERE subject = 'point' AND key = CAST(new.id AS TEXT);
    INSERT INTO outbox (subject, key) VALUES ('point', CAST(new.id AS TEXT));
END;

CREATE TRIGGER point_changed AFTER UPDATE ON points WHEN EXISTS (SELECT 1 FROM fleet) BEGIN
    DELETE FROM outbox WHERE subject = 'point' AND key = CAST(new.id AS TEXT);
    INSERT INTO outbox (subject, key) VALUES ('point', CAST(new.id AS TEXT));
END;

CREATE TRIGGER verdict_made AFTER INSERT ON readings WHEN EXISTS (SELECT 1 FROM fleet) BEGIN
    DELETE FROM outbox WHERE subject = 'verdict' AND key = CAST(new.id AS TEXT);
    INSERT INTO outbox (subject, key) VALUES ('verdict', CAST(new.id AS TEXT));
END;

CREATE TRIGGER drill_made AFTER INSERT ON drills WHEN EXISTS (SELECT 1 FROM fleet) BEGIN
    DELETE FROM outbox WHERE subject = 'drill' AND key = CAST(new.run AS TEXT);
    INSERT INTO outbox (subject, key) VALUES ('drill', CAST(new.run AS TEXT));
END;

CREATE TRIGGER drill_changed AFTER UPDATE ON drills WHEN EXISTS (SELECT 1 FROM fleet) BEGIN
    DELETE FROM outbox WHERE subject = 'drill' AND key = CAST(new.run AS TEXT);
    INSERT INTO outbox (subject, key) VALUES ('drill', CAST(new.run AS TEXT));
END;

CREATE TRIGGER problem_made AFTER INSERT ON problems WHEN EXISTS (SELECT 1 FROM fleet) BEGIN
    DELETE FROM outbox WHERE subject = 'problem' AND key = CAST(new.id AS TEXT);
    INSERT INTO outbox (subject, key) VALUES ('problem', CAST(new.id AS TEXT));
END;

CREATE TRIGGER problem_changed AFTER UPDATE ON problems WHEN EXISTS (SELECT 1 FROM fleet) BEGIN
    DELETE FROM outbox WHERE subject = 'problem' AND key = CAST(new.id AS TEXT);
    INSERT INTO outbox (subject, key) VALUES ('problem', CAST(new.id AS TEXT));
END;

CREATE TRIGGER disk_made AFTER INSERT ON disks WHEN EXISTS (SELECT 1 FROM fleet) BEGIN
    DELETE FROM outbox WHERE subject = 'disk' AND key = new.disk;
    INSERT INTO outbox (subject, key) VALUES ('disk', new.disk);
END;

CREATE TRIGGER disk_changed AFTER UPDATE ON disks WHEN EXISTS (SELECT 1 FROM fleet) BEGIN
    DELETE FROM outbox WHERE subject = 'disk' AND key = new.disk;
    INSERT INTO outbox (subject, key) VALUES ('disk', new.disk);
END;

CREATE TRIGGER visit_made AFTER INSERT ON visits WHEN EXISTS (SELECT 1 FROM fleet) BEGIN
    DELETE FROM outbox WHERE subject = 'visit' AND key = CAST(new.id AS TEXT);
    INSERT INTO outbox (subject, key) VALUES ('visit', CAST(new.id AS TEXT));
END;

CREATE TRIGGER visit_changed AFTER UPDATE ON visits WHEN EXISTS (SELECT 1 FROM fleet) BEGIN
    DELETE FROM outbox WHERE subject = 'visit' AND key = CAST(new.id AS TEXT);
    INSERT INTO outbox (subject, key) VALUES ('visit', CAST(new.id AS TEXT));
END;

CREATE TRIGGER notice_made AFTER INSERT ON messages WHEN EXISTS (SELECT 1 FROM fleet) BEGIN
    DELETE FROM outbox WHERE subject = 'notice' AND key = CAST(new.id AS TEXT);
    INSERT INTO outbox (subject, key) VALUES ('notice', CAST(new.id AS TEXT));
END;

CREATE TRIGGER notice_changed AFTER UPDATE OF sent_at, error, about ON messages WHEN EXISTS (SELECT 1 FROM fleet) BEGIN
    DELETE FROM outbox WHERE subject = 'notice' AND key = CAST(new.id AS TEXT);
    INSERT INTO outbox (subject, key) VALUES ('notice', CAST(new.id AS TEXT));
END;
CREATE UNIQUE INDEX acts_by_order ON acts (by_order) WHERE by_order IS NOT NULL;
CREATE INDEX points_newest ON points (job, place, coalesce(confirmed_at, taken_at, made_at))
WHERE gone_at IS NULL AND proved_at IS NOT NULL AND sound IS NOT 0;
CREATE INDEX points_unsound ON points (job) WHERE gone_at IS NULL AND sound = 0;
CREATE INDEX points_whole ON points (job, whole_at) WHERE gone_at IS NULL AND whole_at IS NOT NULL;
CREATE INDEX runs_twice ON runs (job, kind, outcome, resumed, begun_at, ended_at, source, target, moved_bytes, points) WHERE begun_at >= 0;
CREATE INDEX points_twice ON points (
    job, place, name, run, entries, bytes, taken_at, made_at, known_at, proved_at, confirmed_at, confirmed_by, gone_at, sound, whole_at
) WHERE known_at >= 0;
CREATE INDEX readings_twice ON readings (
    point, read_at, scope, entries, files_read, bytes_read, sound, counts, left_out
) WHERE read_at >= 0;
CREATE INDEX memory_twice ON memory (value) WHERE key >= '';
CREATE INDEX problems_twice ON problems (job, place, kind, point, paths, number, since_at, tried, ended_at) WHERE since_at >= 0;
CREATE INDEX drills_twice ON drills (
    job, place, point, drilled_at, outcome, whole, proves, seed, files, bytes, differences
) WHERE drilled_at >= 0;
CREATE INDEX disks_twice ON disks (
    name, set_name, identity, content, size, serial, model, wwn, generation, written, enrolled_at, standing
) WHERE size >= 0;
CREATE INDEX visits_twice ON visits (disk, arrived_at, jobs, outcome, released_at, safe) WHERE arrived_at >= 0;
CREATE INDEX whereabouts_twice ON whereabouts (disk, since_at, place) WHERE since_at >= 0;
CREATE INDEX rebuilds_twice ON rebuilds (pool, begun_at, top_guid, lost, kits, ended_at) WHERE begun_at >= 0;
CREATE INDEX kits_twice ON kits (made_at, guids) WHERE made_at >= 0;
CREATE INDEX owed_twice ON owed (slot_at, newest_at, slots, noted_at, after_run, tries, tried, not_before_at) WHERE slots >= 0;
CREATE INDEX anchors_twice ON anchors (at_at, schedule, run) WHERE at_at >= 0;
CREATE INDEX pauses_twice ON pauses (since_at, until_at) WHERE since_at >= 0;
CREATE INDEX snoozes_twice ON snoozes (since_at, until_at) WHERE since_at >= 0;
CREATE INDEX acts_twice ON acts (verb, subject, about, asked_at, ended_at, well) WHERE asked_at >= 0;
CREATE INDEX outbox_twice ON outbox (subject, key, back) WHERE back >= 0;

PRAGMA user_version = 19;
