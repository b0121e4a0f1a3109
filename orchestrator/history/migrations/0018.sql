-- A second copy of what decides: the weekly check compares each row with its entry in an index, value by value, so a bit that flipped in
-- either is found (sqlite.org/pragma.html, integrity_check). SQLite itself keeps no check sum of a page. Texts for people are left out.
-- The conditions hold for all rows; with them no statement is answered from one of these in place of the table or a smaller index.
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
