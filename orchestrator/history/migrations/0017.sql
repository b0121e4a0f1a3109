-- beside: other devices in use in the case of a disk, as it was let go, so that the case must stay plugged in; empty: none.
ALTER TABLE visits ADD COLUMN beside TEXT NOT NULL DEFAULT '';
