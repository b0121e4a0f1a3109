-- Disks that nobody waits for until an instant.
CREATE TABLE snoozes (
    disk TEXT NOT NULL PRIMARY KEY REFERENCES disks (disk) ON DELETE CASCADE,
    since_at INTEGER NOT NULL,
    until_at INTEGER NOT NULL,
    note ANY NOT NULL
) STRICT, WITHOUT ROWID;
