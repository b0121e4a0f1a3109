-- What happened in a month is found without reading all years.
CREATE INDEX runs_begun ON runs (begun_at);
CREATE INDEX points_made ON points (made_at) WHERE made_at IS NOT NULL;
CREATE INDEX readings_read ON readings (read_at);
CREATE INDEX drills_drilled ON drills (drilled_at);
CREATE INDEX acts_asked ON acts (asked_at);
CREATE INDEX acts_open ON acts (id) WHERE ended_at IS NULL;
