-- Every statement of the history, by name. Columns *_at are instants (see text.py).

-- Runs ------------------------------------------------------------------------------------------------------------

-- name: begin_run
INSERT INTO runs (job, engine, source, target, begun_at, begun_why, kind, pid, process_started, boot, host)
VALUES (:job, :engine, :source, :target, :now, :why, :kind, :pid, :process_started, :boot, :host);

-- name: open_runs
SELECT id, job, pid, process_started, boot FROM runs WHERE outcome IS NULL ORDER BY id;

-- name: processes_of_job
SELECT pid, process_started, boot FROM runs INDEXED BY runs_open WHERE outcome IS NULL AND job = :job AND kind = 'run' ORDER BY id;

-- name: heal_run
UPDATE runs SET outcome = 'interrupted', ended_at = :now, why = 'the process ended without a record'
WHERE id = :run AND outcome IS NULL;

-- name: end_run
UPDATE runs SET outcome = :outcome, ended_at = :now, why = :why, cure = :hint, moved_bytes = :moved_bytes,
    took_s = :took_s, resumed = :resumed, attempts = :attempts, points = :points, warnings = :warnings,
    evidence = :evidence
WHERE id = :run;

-- name: place_run
UPDATE runs SET target = :target WHERE id = :run;

-- Of runs that wait for the same thing, one after the other, the first and the newest tell all.
-- name: fold_waits
DELETE FROM runs
WHERE job = :job AND id < :run AND outcome = 'waiting' AND id > (
    SELECT min(id) FROM runs WHERE job = :job AND id > coalesce((
        SELECT id FROM runs WHERE job = :job AND id < :run AND (outcome IS NOT 'waiting' OR why IS NOT :why)
        ORDER BY id DESC LIMIT 1
    ), 0)
);

-- Of the runs that still have details, the newest one of the :most oldest: so that no run waits long for it.
-- name: last_to_thin
SELECT max(id) AS last FROM (
    SELECT id FROM runs WHERE id IN (SELECT DISTINCT run FROM attempts ORDER BY run LIMIT :most) AND ended_at < :before
);

-- The steps go with their attempts.
-- name: thin_attempts
DELETE FROM attempts WHERE run <= :last AND run NOT IN (SELECT id FROM runs WHERE outcome IS NULL);

-- name: thin_events
DELETE FROM events WHERE run <= :last AND run NOT IN (SELECT id FROM runs WHERE outcome IS NULL);

-- name: thin_hooks
DELETE FROM hooks WHERE run <= :last AND run NOT IN (SELECT id FROM runs WHERE outcome IS NULL);

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
UPDATE steps SET ended_at = :now, moved = :moved, proved = :confirmed, exits = :exits, last_words = :last_words,
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
UPDATE points SET confirmed_at = :now, confirmed_by = :run
WHERE job = :job AND place = :place AND name = :name;

-- name: prove_point
UPDATE points SET proved_at = :now, run = coalesce(run, :run) WHERE job = :job AND place = :place AND name = :name;

-- name: prove_current_point
UPDATE points SET proved_at = coalesce(proved_at, :now), run = coalesce(run, :run)
WHERE job = :job AND place = :place AND name = :name;

-- name: doubt_point
UPDATE points SET proved_at = NULL, confirmed_at = NULL WHERE job = :job AND place = :place AND name = :name;

-- name: lose_point
UPDATE points SET gone_at = :now WHERE job = :job AND place = :place AND name = :name AND gone_at IS NULL;

-- name: names_there
SELECT name, taken_at IS NULL AS undated FROM points WHERE job = :job AND place = :place AND gone_at IS NULL;

-- A point that no run of ours made or found as new as the source, at a place where runs of ours made others.
-- name: made_elsewhere
SELECT id FROM points WHERE job = :job AND place = :place AND made_at IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM points
    WHERE job = :job AND place = :place AND name = :name AND (made_at IS NOT NULL OR confirmed_at IS NOT NULL)
) LIMIT 1;

-- name: point_id
SELECT id FROM points WHERE job = :job AND place = :place AND name = :name;

-- Any bad reading makes a point unsound; only a good reading of the whole makes it sound again, and verifies a point
-- whose copying nobody remembers.
-- name: judge_point
UPDATE points SET
    sound = CASE WHEN NOT :sound THEN 0 WHEN :whole THEN 1 ELSE coalesce(sound, 1) END,
    whole_at = iif(:whole, :now, whole_at),
    proved_at = iif(:sound AND :whole, coalesce(proved_at, :now), proved_at)
WHERE id = :point;

-- A whole reading of a place read what was there when it began; what another found bad stays so until it is read itself.
-- name: points_not_read
SELECT id, bytes FROM points
WHERE job = :job AND place = :place AND gone_at IS NULL AND coalesce(made_at, known_at) <= :began
    AND coalesce(sound, 1) AND coalesce(whole_at < :began, 1)
ORDER BY name;

-- name: point_read
UPDATE points SET sound = 1, whole_at = :began WHERE id = :point;

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
SELECT job, key, value FROM memory WHERE job IN (SELECT value FROM json_each(:jobs));

-- name: facts_of_jobs
SELECT job, value FROM memory WHERE key = :key AND value != '';

-- name: recall
SELECT value FROM memory WHERE job = :job AND key = :key;

-- Views -----------------------------------------------------------------------------------------------------------

-- name: runs
SELECT * FROM runs ORDER BY id DESC LIMIT :limit;

-- name: runs_of_job
SELECT * FROM runs WHERE job = :job ORDER BY id DESC LIMIT :limit;

-- The newest of each, in no order. Of many jobs at once: a page of 300 jobs asks once, not 300 times; so below with :jobs.
-- name: newest_of_jobs
SELECT runs.* FROM json_each(:jobs) AS named CROSS JOIN runs ON runs.id IN (
    SELECT id FROM runs AS own WHERE own.job = named.value ORDER BY id DESC LIMIT :limit);

-- name: runs_before
SELECT * FROM runs WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- name: runs_of_job_before
SELECT * FROM runs WHERE job = :job AND id < :before ORDER BY id DESC LIMIT :limit;

-- name: any_run_before
SELECT id FROM runs WHERE kind = 'run' AND id < :before ORDER BY id LIMIT 1;

-- name: run_of_job_before
SELECT id FROM runs WHERE job = :job AND kind = 'run' AND id < :before AND outcome IN ('done', 'incomplete', 'nothing-to-do') LIMIT 1;

-- name: run
SELECT * FROM runs WHERE id = :run;

-- Few: those that go on now.
-- name: open_runs_of_jobs
SELECT * FROM runs INDEXED BY runs_open
WHERE outcome IS NULL AND job IN (SELECT value FROM json_each(:jobs)) ORDER BY id;

-- name: attempts_of_run
SELECT * FROM attempts WHERE run = :run ORDER BY number;

-- name: steps_of_run
SELECT * FROM steps WHERE run = :run ORDER BY attempt, id;

-- name: open_step_of_run
SELECT * FROM steps WHERE run = :run AND ended_at IS NULL ORDER BY attempt DESC, id DESC LIMIT 1;

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

-- name: point_counts
SELECT value AS job,
    (SELECT count(*) FROM points INDEXED BY points_there WHERE job = named.value AND gone_at IS NULL) AS number,
    (WITH RECURSIVE places (place) AS (
        SELECT min(place) FROM points INDEXED BY points_there WHERE job = named.value AND gone_at IS NULL
        UNION ALL
        SELECT (SELECT min(place) FROM points INDEXED BY points_there
            WHERE job = named.value AND place > places.place AND gone_at IS NULL)
        FROM places WHERE place IS NOT NULL
    ) SELECT max((SELECT max(name) FROM points INDEXED BY points_there
        WHERE job = named.value AND place = places.place AND gone_at IS NULL)) FROM places) AS newest,
    (SELECT count(*) FROM points INDEXED BY points_unsound WHERE job = named.value AND gone_at IS NULL AND sound = 0) AS unsound,
    (SELECT max(whole_at) FROM points INDEXED BY points_whole
        WHERE job = named.value AND gone_at IS NULL AND whole_at IS NOT NULL) AS whole_at
FROM json_each(:jobs) AS named;

-- name: newest_whole_reading
SELECT max(whole_at) AS whole_at FROM points INDEXED BY points_there WHERE gone_at IS NULL AND job = :job AND place = :place;

-- name: findings
SELECT path, verdict, detail FROM findings WHERE reading = :reading ORDER BY number;

-- The newest instant at which a place held a verified copy; `name` is the point that gave it. An instant after :latest, which a
-- wrong clock gave, counts only where there is no other. Why from place to place: GROUP BY would look at each point of years.
-- name: newest_copies
WITH RECURSIVE places (job, place) AS (
    SELECT value, (SELECT min(place) FROM points INDEXED BY points_newest
        WHERE points.job = value AND gone_at IS NULL AND proved_at IS NOT NULL AND sound IS NOT 0)
    FROM json_each(:jobs)
    UNION ALL
    SELECT job, (SELECT min(place) FROM points INDEXED BY points_newest
        WHERE points.job = places.job AND place > places.place AND gone_at IS NULL AND proved_at IS NOT NULL AND sound IS NOT 0)
    FROM places WHERE place IS NOT NULL
)
SELECT points.job, points.place, points.name, coalesce(confirmed_at, taken_at, made_at) AS current_at
FROM places CROSS JOIN points ON points.id = coalesce(
    (SELECT id FROM points INDEXED BY points_newest
        WHERE job = places.job AND place = places.place AND coalesce(confirmed_at, taken_at, made_at) <= :latest
        AND gone_at IS NULL AND proved_at IS NOT NULL AND sound IS NOT 0
        ORDER BY coalesce(confirmed_at, taken_at, made_at) DESC LIMIT 1),
    (SELECT id FROM points INDEXED BY points_newest
        WHERE job = places.job AND place = places.place AND gone_at IS NULL AND proved_at IS NOT NULL AND sound IS NOT 0
        ORDER BY coalesce(confirmed_at, taken_at, made_at) DESC LIMIT 1));

-- name: totals
SELECT job, outcome, count(*) AS runs, coalesce(sum(moved_bytes), 0) AS moved_bytes, coalesce(sum(took_s), 0.0) AS took_s
FROM runs WHERE outcome IS NOT NULL AND kind = 'run' GROUP BY job, outcome ORDER BY job, outcome;

-- name: broken_copies
SELECT value AS job FROM json_each(:jobs) AS named WHERE EXISTS (
    SELECT 1 FROM points INDEXED BY points_unsound WHERE points.job = named.value AND gone_at IS NULL AND sound = 0);

-- name: first_begun
SELECT begun_at FROM runs WHERE job = :job ORDER BY id LIMIT 1;

-- name: first_begun_into
SELECT begun_at FROM runs WHERE job = :job AND target = :target ORDER BY id LIMIT 1;

-- name: last_well
SELECT runs.* FROM json_each(:jobs) AS named CROSS JOIN runs ON runs.id = (
    SELECT id FROM runs AS own WHERE own.job = named.value AND outcome IN ('done', 'nothing-to-do', 'incomplete') AND kind = 'run'
    ORDER BY id DESC LIMIT 1);

-- :jobs here and below: the number of the last good run of each job, by job.
-- name: badly_since
SELECT named.key AS job, (
    SELECT count(*) FROM runs
    WHERE job = named.key AND outcome IN ('failed', 'refused', 'interrupted') AND kind IN ('run', 'verify') AND id > named.value
) AS number FROM json_each(:jobs) AS named;

-- The newest failure that nothing has made good: a good run does so, and a good verification for one before it.
-- Why 'interrupted' twice: by the first the index is found.
-- name: last_failed
SELECT runs.* FROM json_each(:jobs) AS named CROSS JOIN runs ON runs.id = (
    SELECT id FROM runs AS own
    WHERE job = named.key AND outcome IN ('failed', 'refused', 'interrupted') AND kind IN ('run', 'verify') AND id > named.value
        AND outcome <> 'interrupted' AND NOT (kind = 'verify' AND EXISTS (
            SELECT 1 FROM runs AS later WHERE later.job = own.job AND later.id > own.id
            AND later.kind = 'verify' AND later.outcome IN ('done', 'nothing-to-do')))
    ORDER BY id DESC LIMIT 1);

-- Notices ---------------------------------------------------------------------------------------------------------

-- name: told
SELECT job, target, begun_at, told_at, reminders, causes, unsteady, well_since_at, earlier FROM told WHERE channel = :channel;

-- name: keep_told
INSERT INTO told (channel, job, target, begun_at, told_at, reminders, causes, unsteady, well_since_at, earlier)
VALUES (:channel, :job, :target, :begun, :told, :reminders, :causes, :unsteady, :well_since, :earlier)
ON CONFLICT (channel, job, target) DO UPDATE SET
    begun_at = excluded.begun_at, told_at = excluded.told_at, reminders = excluded.reminders,
    causes = excluded.causes, unsteady = excluded.unsteady, well_since_at = excluded.well_since_at, earlier = excluded.earlier;

-- name: forget_told
DELETE FROM told WHERE channel = :channel AND job = :job AND target = :target;

-- name: make_message
INSERT INTO messages (channel, kind, about, made_at, subject, body, facts, due_at)
VALUES (:channel, :kind, :about, :made, :subject, :body, :facts, :made);

-- A ping tells what is true now: an older one of the same job, which nobody took yet, is not told any more.
-- name: drop_pings
DELETE FROM messages WHERE channel = :channel AND about = :about AND kind IN
    ('start', 'success', 'fail', 'protected', 'unprotected');

-- name: messages_queued
SELECT * FROM messages WHERE due_at IS NOT NULL ORDER BY due_at;

-- Whoever moves the instant on has the message for himself until then.
-- name: claim_message
UPDATE messages SET due_at = :until, held_at = :until, tries = tries + 1 WHERE id = :message AND due_at = :due;

-- name: message_sent
UPDATE messages SET sent_at = :now, due_at = NULL, error = NULL WHERE id = :message;

-- name: message_failed
UPDATE messages SET due_at = :due, held_at = NULL, error = :error WHERE id = :message AND sent_at IS NULL;

-- name: messages
SELECT * FROM messages ORDER BY id DESC LIMIT :limit;

-- name: last_about
SELECT * FROM messages WHERE channel = :channel AND about = :about AND kind = :kind ORDER BY id DESC LIMIT 1;

-- name: digest
SELECT day FROM digests WHERE channel = :channel;

-- name: keep_digest
INSERT INTO digests (channel, day) VALUES (:channel, :day)
ON CONFLICT (channel) DO UPDATE SET day = excluded.day;

-- The clock -------------------------------------------------------------------------------------------------------

-- name: version
PRAGMA data_version;

-- name: owed
SELECT * FROM owed ORDER BY job;

-- name: owe
INSERT INTO owed (job, slot_at, newest_at, slots, why, noted_at, after_run, tries, tried, not_before_at, told)
VALUES (:job, :slot, :newest, :slots, :why, :noted, :after_run, :tries, :tried, :not_before, :told)
ON CONFLICT (job) DO UPDATE SET
    slot_at = excluded.slot_at, newest_at = excluded.newest_at, slots = excluded.slots, why = excluded.why,
    noted_at = excluded.noted_at, after_run = excluded.after_run, tries = excluded.tries, tried = excluded.tried,
    not_before_at = excluded.not_before_at, told = excluded.told;

-- name: owe_no_more
DELETE FROM owed WHERE job = :job;

-- name: try_at_once
UPDATE owed SET not_before_at = NULL WHERE not_before_at IS NOT NULL;

-- name: anchors
SELECT * FROM anchors ORDER BY job;

-- name: anchor
INSERT INTO anchors (job, at_at, schedule, run) VALUES (:job, :at, :schedule, :run)
ON CONFLICT (job) DO UPDATE SET at_at = excluded.at_at, schedule = excluded.schedule, run = excluded.run;

-- name: forget_anchor
DELETE FROM anchors WHERE job = :job;

-- name: last_beat
SELECT boot, pid, begun_at, seen_at, orderly FROM beats ORDER BY id DESC LIMIT 1;

-- name: begin_beat
INSERT INTO beats (boot, pid, begun_at, seen_at, orderly) VALUES (:boot, :pid, :now, :now, 0);

-- name: forget_beats
DELETE FROM beats WHERE id <= :beat - 20;

-- name: beat
UPDATE beats SET seen_at = :now, orderly = :orderly WHERE id = :beat;

-- name: pauses
SELECT * FROM pauses ORDER BY job;

-- name: pause
INSERT INTO pauses (job, since_at, until_at, why) VALUES (:job, :now, :until, :why)
ON CONFLICT (job) DO UPDATE SET until_at = excluded.until_at, why = excluded.why;

-- name: resume
DELETE FROM pauses WHERE job = :job;

-- name: last_run
SELECT runs.job, runs.id, begun_at, begun_why, ended_at, outcome, why FROM json_each(:jobs) AS named CROSS JOIN runs ON runs.id = (
    SELECT id FROM runs AS own WHERE own.job = named.value AND kind = 'run' ORDER BY id DESC LIMIT 1);

-- name: last_ended_run
SELECT runs.job, runs.id, begun_at, begun_why, ended_at, outcome, why FROM json_each(:jobs) AS named CROSS JOIN runs ON runs.id = (
    SELECT id FROM runs AS own WHERE own.job = named.value AND kind = 'run' AND outcome IS NOT NULL ORDER BY id DESC LIMIT 1);

-- :jobs: the number of the last run before, by job.
-- name: runs_since
SELECT runs.job, runs.id, begun_at, begun_why, ended_at, outcome, why FROM json_each(:jobs) AS named CROSS JOIN runs ON runs.job = named.key AND runs.id > named.value AND kind = 'run';

-- name: going_on
SELECT job, pid, process_started, boot FROM runs WHERE outcome IS NULL ORDER BY id;

-- Removable disks -------------------------------------------------------------------------------------------------

-- name: disks
SELECT * FROM disks;

-- name: keep_disk
INSERT INTO disks (disk, name, set_name, identity, content, size, serial, model, wwn, generation, written, enrolled_at, standing)
VALUES (:disk, :name, :set, :identity, :content, :size, :serial, :model, :wwn, :generation, :written, :enrolled, :standing)
ON CONFLICT (disk) DO UPDATE SET
    name = excluded.name, set_name = excluded.set_name, identity = excluded.identity, content = excluded.content,
    size = excluded.size, serial = excluded.serial, model = excluded.model, wwn = excluded.wwn,
    generation = excluded.generation, written = excluded.written, standing = excluded.standing;

-- name: disk_standing
UPDATE disks SET standing = :standing WHERE disk = :disk;

-- name: next_generation
UPDATE disks SET generation = :generation WHERE disk = :disk;

-- name: generation_written
UPDATE disks SET written = :generation WHERE disk = :disk;

-- name: begin_visit
INSERT INTO visits (disk, arrived_at, jobs, outcome, why, safe) VALUES (:disk, :now, '[]', 'open', '', 0);

-- name: visit_ended
UPDATE visits SET jobs = :jobs, outcome = :outcome, why = :why, released_at = :released, safe = :safe, beside = :beside
WHERE id = :visit;

-- name: visit_health
UPDATE visits SET health = :health WHERE id = :visit;

-- name: visit_is_slow
UPDATE visits SET slow = :why
WHERE outcome = 'open' AND id = (SELECT max(visits.id) FROM visits JOIN disks USING (disk) WHERE disks.name = :name);

-- name: visits_died
UPDATE visits SET outcome = 'interrupted', why = :why WHERE disk = :disk AND outcome = 'open';

-- name: visits_of_disk
SELECT * FROM visits WHERE disk = :disk ORDER BY id DESC LIMIT :limit;

-- name: last_visits
SELECT visits.* FROM disks CROSS JOIN visits
WHERE visits.id = (SELECT max(id) FROM visits WHERE disk = disks.disk);

-- name: last_healths
SELECT visits.* FROM disks CROSS JOIN visits
WHERE visits.id = (SELECT max(id) FROM visits WHERE disk = disks.disk AND health IS NOT NULL);

-- name: disk_is_at
INSERT INTO whereabouts (disk, since_at, place, note) VALUES (:disk, :now, :place, :note);

-- name: whereabouts_of_disk
SELECT since_at, place, note FROM whereabouts WHERE disk = :disk ORDER BY id DESC LIMIT :limit;

-- name: snooze_disk
INSERT INTO snoozes (disk, since_at, until_at, note) VALUES (:disk, :now, :until, :note)
ON CONFLICT (disk) DO UPDATE SET since_at = :now, until_at = :until, note = :note;

-- name: wake_disk
DELETE FROM snoozes WHERE disk = :disk;

-- name: snoozes
SELECT * FROM snoozes;

-- name: disks_are_at
SELECT whereabouts.disk, since_at, place, note FROM disks CROSS JOIN whereabouts
WHERE whereabouts.id = (SELECT max(id) FROM whereabouts WHERE disk = disks.disk);

-- name: keep_kit
INSERT INTO kits (job, made_at, content, layout, recovery, guids)
VALUES (:job, :now, :content, :layout, :recovery, :guids)
ON CONFLICT (job) DO UPDATE SET
    made_at = excluded.made_at, content = excluded.content, layout = excluded.layout, recovery = excluded.recovery,
    guids = excluded.guids;

-- name: kit
SELECT made_at, content, layout, recovery, guids FROM kits WHERE job = :job;

-- Drills ----------------------------------------------------------------------------------------------------------

-- name: keep_drill
INSERT INTO drills (run, job, place, point, drilled_at, outcome, why, whole, proves, seed, files, bytes, of_files, of_bytes,
    restore_s, differences, check_argv, check_exit, check_output)
VALUES (:run, :job, :place, :point, :now, :outcome, :why, :whole, :self_test, :seed, :files, :bytes, :of_files, :of_bytes,
    :restore_s, :differences, :check_argv, :check_exit, :check_output);

-- The newest of each job, in no order.
-- name: newest_drills
SELECT drills.* FROM json_each(:jobs) AS named CROSS JOIN drills ON drills.run IN (
    SELECT run FROM drills AS own WHERE own.job = named.value ORDER BY run DESC LIMIT :limit);

-- name: drill_of_run
SELECT * FROM drills WHERE run = :run;

-- Pools made anew -------------------------------------------------------------------------------------------------

-- name: begin_rebuild
INSERT INTO rebuilds (pool, begun_at, top_guid, lost, kits) VALUES (:pool, :now, :top_guid, :lost, :kits);

-- name: renew_rebuild
UPDATE rebuilds SET begun_at = :now, top_guid = :top_guid, lost = :lost, kits = :kits WHERE id = :rebuild;

-- name: end_rebuild
UPDATE rebuilds SET ended_at = :now WHERE id = :rebuild AND ended_at IS NULL;

-- name: open_rebuild
SELECT id, begun_at, top_guid, lost, kits FROM rebuilds WHERE pool = :pool AND ended_at IS NULL ORDER BY id DESC LIMIT 1;

-- Problems --------------------------------------------------------------------------------------------------------

-- name: open_problems
SELECT * FROM problems INDEXED BY problems_open WHERE job IN (SELECT value FROM json_each(:jobs)) AND ended_at IS NULL;

-- name: problems_of_job
SELECT * FROM problems WHERE job = :job ORDER BY id;

-- name: open_problem
INSERT INTO problems (job, place, kind, point, why, paths, number, since_at, tried)
VALUES (:job, :place, :kind, :point, :why, :paths, :number, :now, :tried)
ON CONFLICT (job, place, kind, point) WHERE ended_at IS NULL DO UPDATE SET
    why = excluded.why, paths = excluded.paths, number = excluded.number, tried = excluded.tried;

-- name: end_problem
UPDATE problems SET ended_at = :now, ended_by = :by
WHERE job = :job AND place = :place AND kind = :kind AND (:point IS NULL OR point = :point) AND ended_at IS NULL;

-- name: mend_point
UPDATE points SET sound = iif(whole_at IS NULL, NULL, 1)
WHERE job = :job AND place = :place AND name = :name AND sound = 0;

-- Acts ------------------------------------------------------------------------------------------------------------

-- name: newest_acts
SELECT * FROM acts ORDER BY id DESC LIMIT :limit;

-- name: newest_acts_of
SELECT * FROM acts WHERE subject = :subject ORDER BY id DESC LIMIT :limit;

-- name: act
SELECT * FROM acts WHERE id = :act;

-- name: act_of_order
SELECT * FROM acts WHERE by_order = :order;

-- name: acts_between
SELECT * FROM acts WHERE asked_at >= :first AND asked_at < :last ORDER BY asked_at;

-- name: runs_of_act
SELECT id FROM runs WHERE begun_at >= :first AND begun_at <= coalesce(:last, 9223372036854775807)
    AND pid IN (SELECT pid FROM act_processes WHERE act = :act) ORDER BY begun_at DESC, id DESC LIMIT 200;

-- name: ask_act
INSERT INTO acts (verb, subject, about, who, asked_at, by_order) VALUES (:verb, :subject, :about, :who, :now, :order);

-- name: forget_acts
DELETE FROM acts WHERE id <= :act;

-- name: begin_act
INSERT OR IGNORE INTO act_processes (act, pid) VALUES (:act, :pid);

-- name: end_act
UPDATE acts SET ended_at = :now, well = :well, said = :said WHERE id = :act;

-- What a daemon left open whose runs all ended, so that no other attempt is made: it is told by the newest of them.
-- name: end_acts_by_runs
UPDATE acts SET ended_at = :now,
    well = (SELECT min(r.outcome IN ('done', 'nothing-to-do')) FROM act_processes p JOIN runs r ON r.pid = p.pid
        WHERE p.act = acts.id AND r.begun_at >= acts.asked_at AND r.job = acts.subject),
    said = coalesce((SELECT why FROM runs WHERE id = (SELECT max(r.id) FROM act_processes p JOIN runs r ON r.pid = p.pid
        WHERE p.act = acts.id AND r.begun_at >= acts.asked_at AND r.job = acts.subject)), '')
WHERE ended_at IS NULL AND verb IN ('run', 'verify', 'drill')
    AND (SELECT count(*) > 0 AND sum(coalesce(r.outcome, 'interrupted') = 'interrupted') = 0 FROM act_processes p JOIN runs r ON r.pid = p.pid
        WHERE p.act = acts.id AND r.begun_at >= acts.asked_at AND r.job = acts.subject);

-- name: end_open_acts
UPDATE acts SET ended_at = :now, well = 0, said = :said WHERE ended_at IS NULL;

-- Months: counted by whoever asks, as a count by job would be sorted first ---------------------------------------------

-- name: runs_begun_between
SELECT job, outcome, begun_at, ended_at, moved_bytes FROM runs INDEXED BY runs_begun
WHERE begun_at >= :first AND begun_at < :last AND kind = 'run' AND outcome IS NOT NULL;

-- name: last_good_end_before
SELECT ended_at FROM runs
WHERE job = :job AND begun_at < :first AND outcome IN ('done', 'nothing-to-do', 'incomplete') AND kind = 'run' ORDER BY id DESC LIMIT 1;

-- name: points_made_between
SELECT job FROM points WHERE made_at >= :first AND made_at < :last;

-- name: readings_between
SELECT points.job AS job, points.place AS place, bytes_read, readings.sound AS reading_sound
FROM readings JOIN points ON points.id = readings.point WHERE read_at >= :first AND read_at < :last;

-- name: drills_between
SELECT job, outcome FROM drills WHERE drilled_at >= :first AND drilled_at < :last;

-- By job: since when a reading counts. Why grouped here: 300 jobs have 28,000 points.
-- name: read_totals
-- What a wrong clock dated later than :latest says nothing: neither that it was read, nor since when it is there.
WITH named AS MATERIALIZED (SELECT key, value FROM json_each(:jobs)),
dated AS (
    SELECT points.job AS job, place, bytes, named.value AS since, CASE WHEN whole_at <= :latest THEN whole_at END AS read_at,
        CASE WHEN made_at <= :latest THEN made_at WHEN taken_at <= :latest THEN taken_at END AS came_at
    FROM points INDEXED BY points_there CROSS JOIN named ON named.key = points.job WHERE gone_at IS NULL
)
SELECT job, place, count(*) AS number, count(read_at) AS reads, count(coalesce(read_at, came_at)) AS dated,
    min(coalesce(read_at, came_at)) AS oldest_at, count(bytes) AS sized, coalesce(sum(bytes), 0) AS bytes,
    count(*) FILTER (WHERE read_at >= since) AS fresh, coalesce(sum(bytes) FILTER (WHERE read_at >= since), 0) AS fresh_bytes
FROM dated GROUP BY job, place;

-- Renames ---------------------------------------------------------------------------------------------------------

-- name: knows_job
SELECT job FROM runs WHERE job = :job UNION ALL SELECT job FROM points WHERE job = :job
UNION ALL SELECT job FROM memory WHERE job = :job UNION ALL SELECT job FROM problems WHERE job = :job;

-- name: rename_in_runs
UPDATE runs SET job = :now WHERE job = :before;

-- name: rename_in_points
UPDATE points SET job = :now WHERE job = :before;

-- name: rename_in_memory
UPDATE memory SET job = :now WHERE job = :before;

-- name: knows_place
SELECT id FROM points WHERE job = :job AND place = :place LIMIT 1;

-- name: place_of_point
SELECT place FROM points WHERE job = :job AND place != :place AND gone_at IS NULL AND name = :name LIMIT 1;

-- name: place_in_points
UPDATE OR IGNORE points SET place = :now WHERE job = :job AND place = :before;

-- name: place_in_problems
UPDATE OR IGNORE problems SET place = :now WHERE job = :job AND place = :before;

-- name: place_in_drills
UPDATE drills SET place = :now WHERE job = :job AND place = :before;

-- Small facts of a job at a place end in its name.
-- name: place_in_memory
UPDATE OR IGNORE memory SET key = substr(key, 1, length(key) - length(:before)) || :now
WHERE job = :job AND (key LIKE '% at %' OR key LIKE '% on %' OR key LIKE '% from %' OR key LIKE '%:%')
    AND substr(key, -length(:before) - 1) IN (' ' || :before, ':' || :before);

-- name: rename_in_owed
UPDATE OR REPLACE owed SET job = :now WHERE job = :before;

-- name: rename_in_anchors
UPDATE OR REPLACE anchors SET job = :now WHERE job = :before;

-- name: rename_in_pauses
UPDATE OR REPLACE pauses SET job = :now WHERE job = :before;

-- name: rename_in_told
UPDATE OR REPLACE told SET job = :now WHERE job = :before;

-- name: rename_in_kits
UPDATE kits SET job = :now WHERE job = :before;

-- name: rename_in_drills
UPDATE drills SET job = :now WHERE job = :before;

-- name: rename_in_problems
UPDATE problems SET job = :now WHERE job = :before;

-- name: rename_in_acts
UPDATE acts SET subject = :now WHERE subject = :before;

-- name: rename_in_messages
UPDATE messages SET about = :now WHERE about = :before;

-- name: renamed_visits
SELECT id, jobs FROM visits WHERE instr(jobs, :quoted);

-- name: rename_in_visit
UPDATE visits SET jobs = :jobs WHERE id = :visit;

-- name: renamed_rebuilds
SELECT id, kits FROM rebuilds WHERE ended_at IS NULL;

-- name: rename_in_rebuild
UPDATE rebuilds SET kits = :kits WHERE id = :rebuild;

-- The centre of a fleet ------------------------------------------------------------------------------------------------

-- name: fleet
SELECT centre, batch, sending, sending_last, stored_last FROM fleet;

-- name: join_fleet
INSERT INTO fleet (one, centre, batch, sending, sending_last, stored_last) VALUES (1, :centre, :batch, '', 0, :last)
ON CONFLICT (one) DO UPDATE SET
    centre = excluded.centre, batch = excluded.batch, sending = '', sending_last = 0, stored_last = excluded.stored_last;

-- name: leave_fleet
DELETE FROM fleet;

-- name: empty_outbox
DELETE FROM outbox;

-- name: fleet_sending
UPDATE fleet SET sending = :batch, sending_last = :last;

-- name: fleet_stored
UPDATE fleet SET batch = sending, stored_last = sending_last, sending = '', sending_last = 0 WHERE sending = :batch;

-- name: outbox_stored
DELETE FROM outbox WHERE seq <= :last;

-- name: outbox_drop
DELETE FROM outbox WHERE seq = :seq;

-- name: outbox_count
SELECT count(*) AS number FROM outbox;

-- name: outbox_page
SELECT seq, subject, key, back FROM outbox WHERE seq > :after ORDER BY seq LIMIT :most;

-- The number of a row that is removed again is never given twice.
-- name: raise_outbox
INSERT OR IGNORE INTO outbox (seq, subject, key) VALUES (:seq, '', '');

-- name: incarnations
SELECT number, subject, first FROM incarnations ORDER BY subject, number;

-- name: begin_incarnation
INSERT OR REPLACE INTO incarnations (number, subject, first) VALUES (:number, :subject, :first);

-- name: outbox_run
SELECT seq, runs.* FROM outbox CROSS JOIN runs ON runs.id = CAST(key AS INTEGER)
WHERE seq BETWEEN :first AND :last AND subject = 'run';

-- name: outbox_step
SELECT seq, id, run, attempt, number, does, why, expected, begun_at, ended_at, moved, proved, error
FROM outbox CROSS JOIN steps ON steps.id = CAST(key AS INTEGER) WHERE seq BETWEEN :first AND :last AND subject = 'step';

-- name: outbox_point
SELECT seq, points.* FROM outbox CROSS JOIN points ON points.id = CAST(key AS INTEGER)
WHERE seq BETWEEN :first AND :last AND subject = 'point';

-- name: outbox_verdict
SELECT seq, readings.id AS id, job, place, name, read_at, scope, readings.entries AS entries, files_read, bytes_read, took_s,
    readings.sound AS reading_sound, counts
FROM outbox CROSS JOIN readings ON readings.id = CAST(key AS INTEGER) JOIN points ON points.id = readings.point
WHERE seq BETWEEN :first AND :last AND subject = 'verdict';

-- name: outbox_drill
SELECT seq, run, job, place, point, drilled_at, outcome, why, whole, files, bytes, of_files, of_bytes, restore_s
FROM outbox CROSS JOIN drills ON drills.run = CAST(key AS INTEGER) WHERE seq BETWEEN :first AND :last AND subject = 'drill';

-- name: outbox_problem
SELECT seq, id, job, place, kind, point, why, number, since_at, tried, ended_at, ended_by
FROM outbox CROSS JOIN problems ON problems.id = CAST(key AS INTEGER) WHERE seq BETWEEN :first AND :last AND subject = 'problem';

-- name: outbox_disk
SELECT seq, disks.* FROM outbox CROSS JOIN disks ON disks.disk = key WHERE seq BETWEEN :first AND :last AND subject = 'disk';

-- name: outbox_visit
SELECT seq, visits.* FROM outbox CROSS JOIN visits ON visits.id = CAST(key AS INTEGER)
WHERE seq BETWEEN :first AND :last AND subject = 'visit';

-- name: outbox_notice
SELECT seq, id, channel, kind, about, made_at, messages.subject AS subject, tries, sent_at, error
FROM outbox CROSS JOIN messages ON messages.id = CAST(key AS INTEGER)
WHERE seq BETWEEN :first AND :last AND outbox.subject = 'notice';

-- name: births_run
SELECT id, begun_at AS born_at FROM runs ORDER BY id;

-- name: births_step
SELECT id, begun_at AS born_at FROM steps ORDER BY id;

-- name: births_point
SELECT id, known_at AS born_at FROM points ORDER BY id;

-- name: births_verdict
SELECT id, read_at AS born_at FROM readings ORDER BY id;

-- name: births_drill
SELECT run AS id, drilled_at AS born_at FROM drills ORDER BY run;

-- name: births_problem
SELECT id, since_at AS born_at FROM problems ORDER BY id;

-- name: births_visit
SELECT id, arrived_at AS born_at FROM visits ORDER BY id;

-- name: births_notice
SELECT id, made_at AS born_at FROM messages ORDER BY id;

-- name: births_disk
SELECT disk AS key, enrolled_at AS born_at FROM disks ORDER BY disk;

-- name: tell_again
INSERT OR IGNORE INTO outbox (subject, key, back) VALUES (:subject, :key, :back);
