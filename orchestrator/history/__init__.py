"""The only room that opens SQLite: what happened, which points exist, and what was found in them.

store     `open_history`: the one who writes       views   `open_reader`: the one who looks
values    what a look returns                      door    the connection: transactions, and errors made plain
opening   pragmas, migrations, versions            text    how instants, names and lists lie in columns
failures  SQLite's errors in plain words           queries every statement, by name, from queries.sql

Losing this file loses the past, never the ability to continue: what is true lies on the targets.

Why a rollback journal that is truncated, and not WAL. Tried with SQLite 3.40 on ext4, 100 small transactions each:

    mode      ms each   syncs each   unprivileged reader, no writer there   commit outlives a power cut at once after it
    wal       0.2       1            fails: it may not make the -shm file   yes
    delete    0.6-0.9   4            reads                                  not promised: the deletion is not synced
    truncate  0.6       5            reads                                  yes: the fifth sync is the truncated journal
    persist   0.6       5            reads                                  yes, with a journal that stays large

A run that finds nothing to do needs three transactions, so WAL would save about 1 ms, and the page that shows the
history to an unprivileged user would fail whenever nothing runs. WAL also has a known fault before SQLite 3.51.3: two
connections that write and checkpoint at once may corrupt it.

The price: a reader that holds a look open makes a commit wait. So views read all rows at once, and both sides wait.
After a crash in the middle of a write the next one who may write rolls back; until then others are told so.

Changes things.
"""
