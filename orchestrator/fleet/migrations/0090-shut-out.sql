-- A host that filled the table of locks, which all sessions share, is shut out until it is invited again.
ALTER TABLE poolferry.hosts ADD COLUMN shut_out_at timestamptz;
