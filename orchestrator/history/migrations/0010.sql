-- Of a visit: what the disk said is wrong with it (empty: that it is well; NULL: it said nothing), and what was told of a copy
-- that would have taken too long.
ALTER TABLE visits ADD COLUMN health ANY;
ALTER TABLE visits ADD COLUMN slow ANY NOT NULL DEFAULT '';
