-- What all runs come to, by job and outcome, without reading them: metrics ask for it often.
CREATE INDEX runs_ended ON runs (job, outcome, moved_bytes, took_s) WHERE outcome IS NOT NULL AND kind = 'run';
