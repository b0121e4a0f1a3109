-- For status: the newest copy of each place, points that are not sound, and the newest reading, without a look at each point.
CREATE INDEX points_newest ON points (job, place, coalesce(confirmed_at, taken_at, made_at))
WHERE gone_at IS NULL AND proved_at IS NOT NULL AND sound IS NOT 0;
CREATE INDEX points_unsound ON points (job) WHERE gone_at IS NULL AND sound = 0;
CREATE INDEX points_whole ON points (job, whole_at) WHERE gone_at IS NULL AND whole_at IS NOT NULL;
