"""The only package that opens SQLite: past runs, existing points, and the results of their verification.

store      `open_history`: for writing      views     `open_reader`: for reading
values     values that views return         database  the connection: transactions, migrations, errors, backups
columns    the types of columns, checked before a row is used
failures   SQLite's errors as messages      foreign   a history from another machine, checked before use
write_check   whether a run could be recorded, without a change

disks, drills, due_runs, kits, notification_queue and rebuilds hold the records of one subject each; outbox names the rows that the
centre of a fleet is still to be told.

SQLite keeps no check sums: what decides is stored twice, in the table and in an index (migrations/0018.sql), and the weekly check compares both.

A lost file loses the past, never the ability to continue: the state itself is on the targets.

Why a rollback journal that is truncated, and not WAL. SQLite 3.40, synchronous=FULL, ext4 on a virtual disk, one small INSERT
per transaction; the modes were measured in random order, 400 a round (quiet: the mean of three rounds), so that other load
affected all alike. Milliseconds:

    mode        syncs   quiet: median, p99   beside a writer that syncs: median, p90, p99
    wal         1       0.26   0.4           0.3   2.7    5
    delete      4       0.77   2.3           1.2   6.0   12
    truncate    5       0.80   2.6           1.3   6.9   14
    persist     5       0.76   1.8           1.1   6.1   12

The rollback modes do not differ in speed, and WAL is three times as fast. For the three transactions of a run that
finds nothing to do, WAL would save 2 ms on a quiet disk and 13 ms (p90) on a busy one. Not measured: a spinning disk,
where 15 syncs against 3 may weigh more than anything else in such a run.

Speed does not decide. Tried: an unprivileged reader of a WAL database fails once the last writer has closed it
(SQLITE_READONLY_DIRECTORY), so a program that shows the history would fail whenever nothing runs; reading works in all rollback
modes. According to SQLite's documentation, not tried here: WAL before 3.51.3 may, rarely, be corrupted by two connections that
write and checkpoint at once.

Truncate among the rollback modes: its fifth sync, after the journal is emptied, was seen in a system call trace; delete
makes none after the journal is unlinked, and SQLite's manual offers synchronous=EXTRA for that gap. Persist syncs as
well, and keeps a journal file as large as the largest transaction. No power cut was tried.

The cost: a reader with an open read transaction makes a commit wait. So views read all rows at once, and both sides wait. After
a crash during a write the next process that may write rolls it back; until then others get an error that says so.
"""
