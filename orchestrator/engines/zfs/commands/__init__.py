"""Command lines of zfs, zpool and mbuffer, the scripts that they need, and the progress of a stream."""
