-- Removable disks by our own id. generation: the last one decided; written: the last one that is on the disk for certain.
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

-- One stay of a disk. released_at null: it is here, or was pulled out. jobs: a JSON list.
CREATE TABLE visits (
    id INTEGER PRIMARY KEY,
    disk TEXT NOT NULL REFERENCES disks (disk) ON DELETE CASCADE,
    arrived_at INTEGER NOT NULL,
    jobs TEXT NOT NULL,
    outcome TEXT NOT NULL,
    why ANY NOT NULL,
    released_at INTEGER,
    safe INTEGER NOT NULL
) STRICT;
CREATE INDEX visits_of_disk ON visits (disk, id);

-- Where each disk was, from when on.
CREATE TABLE whereabouts (
    id INTEGER PRIMARY KEY,
    disk TEXT NOT NULL REFERENCES disks (disk) ON DELETE CASCADE,
    since_at INTEGER NOT NULL,
    place ANY NOT NULL,
    note ANY NOT NULL
) STRICT;
CREATE INDEX whereabouts_of_disk ON whereabouts (disk, id);
