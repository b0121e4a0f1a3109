"""Failures of zfs, zpool, mbuffer and ssh: the table of what they say, and the errors that it leads to."""
