"""Command lines of zfs, zpool and mbuffer, their scripts, and the progress of a stream."""
