-- by_order: the key of the centre's order that an act came from, with the number of the attempt; each is taken once.
ALTER TABLE acts ADD COLUMN by_order TEXT;
CREATE UNIQUE INDEX acts_by_order ON acts (by_order) WHERE by_order IS NOT NULL;
