-- The centre of a fleet, if this host has joined one: what it is known to have. centre: its id; batch: the last one that it
-- surely has, up to the change stored_last; sending: one on its way that it may have, up to sending_last ('' and 0: none is).
CREATE TABLE fleet (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    centre TEXT NOT NULL,
    batch TEXT NOT NULL,
    sending TEXT NOT NULL,
    sending_last INTEGER NOT NULL,
    stored_last INTEGER NOT NULL
) STRICT;

-- Which rows the centre is still to be told of, each at most once, in the order of their last change: it never grows beyond the
-- rows that are there. back: the row is told only if the centre lacks it.
CREATE TABLE outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    subject TEXT NOT NULL,
    key TEXT NOT NULL,
    back INTEGER NOT NULL DEFAULT 0,
    UNIQUE (subject, key)
) STRICT;

-- From which number on the rows of a subject belong to which incarnation of this history: a history that was put back from an
-- older copy gives numbers to new rows that the centre knows of others. Below all of them: the first, 1.
CREATE TABLE incarnations (
    number INTEGER NOT NULL,
    subject TEXT NOT NULL,
    first INTEGER NOT NULL,
    PRIMARY KEY (subject, number)
) STRICT, WITHOUT ROWID;

-- Why triggers, and not one place in the code: whatever writes a row, now or in years, the centre is told in the same transaction.
-- Why DELETE and INSERT: the statement that fires a trigger would overrule an OR REPLACE here.
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
-- Of a step that was thinned before it was told, nothing is left to tell.
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
