-- Every statement of the history, by name. Columns *_at are instants (see text.py).

-- Runs ------------------------------------------------------------------------------------------------------------

-- name: begin_run
INSERT INTO runs (job, engine, source, target, begun_at, begun_why, kind, pid, process_started, boot, host)
VALUES (:job, :engine, :source, :target, :now, :why, :kind, :pid, :process_started, :boot, :host);

-- name: open_runs
SELECT id, pid, process_started, boot FROM runs WHERE outcome IS NULL ORDER BY id;

-- name: heal_run
UPDATE runs SET outcome = 'interrupted', ended_at = :now, why = 'the process died'
WHERE id = :run AND outcome IS NULL;

-- name: end_run
UPDATE runs SET outcome = :outcome, ended_at = :now, why = :why, cure = :cure, moved_bytes = :moved_bytes,
    took_s = :took_s, resumed = :resumed, attempts = :attempts, points = :points, warnings = :warnings,
    evidence = :evidence
WHERE id = :run;

-- name: begin_attempt
INSERT INTO attempts (run, number, begun_at) VALUES (:run, :number, :now);

-- name: end_attempt
UPDATE attempts SET ended_at = :now, why = :why, evidence = :evidence WHERE run = :run AND number = :number;

-- name: keep_plan
UPDATE attempts SET plan = :plan WHERE run = :run AND number = :number;

-- name: keep_refusal
UPDATE attempts SET refusal = :refusal WHERE run = :run AND number = :number;

-- name: begin_step
INSERT INTO steps (run, attempt, number, does, why, lane, commands, expected, begun_at)
VALUES (:run, :attempt, :number, :does, :why, :lane, :commands, :expected, :now);

-- name: end_step
UPDATE steps SET ended_at = :now, moved = :moved, proved = :proved, exits = :exits, last_words = :last_words,
    error = :error
WHERE id = :step;

-- name: prove_step
UPDATE steps SET proved = 1 WHERE id = :step;

-- name: say
INSERT INTO events (run, said_at, level, text) VALUES (:run, :now, :level, :text);

-- name: call_hook
INSERT INTO hooks (run, called_at, event, argv, exit, took_s, output)
VALUES (:run, :now, :event, :argv, :exit, :took_s, :output);

-- Points ----------------------------------------------------------------------------------------------------------

-- A point made again under the name of one that had gone is another point: what was known of the first is void.
-- name: make_point
INSERT INTO points (job, place, name, run, taken_at, made_at, known_at, entries, bytes)
VALUES (:job, :place, :name, :run, :taken, :now, :now, :entries, :bytes)
ON CONFLICT (job, place, name) DO UPDATE SET
    run = excluded.run, taken_at = excluded.taken_at, made_at = excluded.made_at, known_at = excluded.known_at,
    entries = excluded.entries, bytes = excluded.bytes, gone_at = NULL,
    proved_at = iif(gone_at IS NULL, proved_at, NULL),
    confirmed_at = iif(gone_at IS NULL, confirmed_at, NULL),
    confirmed_by = iif(gone_at IS NULL, confirmed_by, NULL),
    sound = iif(gone_at IS NULL, sound, NULL),
    whole_at = iif(gone_at IS NULL, whole_at, NULL);

-- name: know_point
INSERT INTO points (job, place, name, taken_at, known_at) VALUES (:job, :place, :name, :taken, :now)
ON CONFLICT (job, place, name) DO UPDATE SET gone_at = NULL, taken_at = coalesce(taken_at, excluded.taken_at);

-- name: confirm_point
UPDATE points SET confirmed_at = max(coalesce(confirmed_at, :now), :now), confirmed_by = :run
WHERE job = :job AND place = :place AND name = :name;

-- name: prove_point
UPDATE points SET proved_at = :now, run = coalesce(run, :run) WHERE job = :job AND place = :place AND name = :name;

-- name: lose_point
UPDATE points SET gone_at = :now WHERE job = :job AND place = :place AND name = :name AND gone_at IS NULL;

-- name: names_there
SELECT name, taken_at IS NULL AS undated FROM points WHERE job = :job AND place = :place AND gone_at IS NULL;

-- name: point_id
SELECT id FROM points WHERE job = :job AND place = :place AND name = :name;

-- Any bad reading makes a point unsound; only a good reading of the whole makes it sound again, and proves a point
-- whose copying nobody remembers.
-- name: judge_point
UPDATE points SET
    sound = CASE WHEN NOT :sound THEN 0 WHEN :whole THEN 1 ELSE coalesce(sound, 1) END,
    whole_at = iif(:whole, :now, whole_at),
    proved_at = iif(:sound AND :whole, coalesce(proved_at, :now), proved_at)
WHERE id = :point;

-- name: keep_reading
INSERT INTO readings (point, read_at, scope, entries, files_read, bytes_read, took_s, sound, counts, left_out)
VALUES (:point, :now, :scope, :entries, :files_read, :bytes_read, :took_s, :sound, :counts, :left_out);

-- name: keep_finding
INSERT INTO findings (reading, number, path, verdict, detail) VALUES (:reading, :number, :path, :verdict, :detail);

-- Memory ----------------------------------------------------------------------------------------------------------

-- name: remember
INSERT INTO memory (job, key, value) VALUES (:job, :key, :value)
ON CONFLICT (job, key) DO UPDATE SET value = excluded.value;

-- name: memory
SELECT key, value FROM memory WHERE job = :job;

-- name: recall
SELECT value FROM memory WHERE job = :job AND key = :key;

-- Views -----------------------------------------------------------------------------------------------------------

-- name: runs
SELECT * FROM runs ORDER BY id DESC LIMIT :limit;

-- name: runs_of_job
SELECT * FROM runs WHERE job = :job ORDER BY id DESC LIMIT :limit;

-- name: run
SELECT * FROM runs WHERE id = :run;

-- name: open_run_of_job
SELECT * FROM runs WHERE outcome IS NULL AND job = :job ORDER BY id DESC LIMIT 1;

-- name: attempts_of_run
SELECT * FROM attempts WHERE run = :run ORDER BY number;

-- name: steps_of_run
SELECT * FROM steps WHERE run = :run ORDER BY attempt, id;

-- name: events_of_run
SELECT * FROM events WHERE run = :run ORDER BY id;

-- name: hooks_of_run
SELECT * FROM hooks WHERE run = :run ORDER BY id;

-- name: points_there
SELECT points.*, readings.id AS reading, read_at, scope, readings.entries AS entries_read, files_read, bytes_read,
    took_s, readings.sound AS reading_sound, counts, left_out
FROM points INDEXED BY points_there
LEFT JOIN readings ON readings.id = (SELECT max(id) FROM readings WHERE point = points.id)
WHERE gone_at IS NULL
ORDER BY job, place, name;

-- name: points_there_of_job
SELECT points.*, readings.id AS reading, read_at, scope, readings.entries AS entries_read, files_read, bytes_read,
    took_s, readings.sound AS reading_sound, counts, left_out
FROM points INDEXED BY points_there
LEFT JOIN readings ON readings.id = (SELECT max(id) FROM readings WHERE point = points.id)
WHERE gone_at IS NULL AND job = :job
ORDER BY place, name;

-- name: findings
SELECT path, verdict, detail FROM findings WHERE reading = :reading ORDER BY number;

-- The newest instant at which a place held a proved copy; `name` is the point that gave it.
-- name: newest_copies
SELECT place, name, max(coalesce(confirmed_at, taken_at, made_at)) AS current_at
FROM points INDEXED BY points_there
WHERE job = :job AND gone_at IS NULL AND proved_at IS NOT NULL AND sound IS NOT 0
GROUP BY place;

-- name: first_begun
SELECT begun_at FROM runs WHERE job = :job ORDER BY id LIMIT 1;

-- name: last_well
SELECT * FROM runs WHERE job = :job AND outcome IN ('done', 'nothing-to-do') AND kind = 'run' ORDER BY id DESC LIMIT 1;

-- name: badly_since
SELECT count(*) AS number FROM runs
WHERE job = :job AND outcome IN ('failed', 'refused', 'interrupted') AND kind IN ('run', 'verify') AND id > :run;
