"""Failures of zfs, zpool, mbuffer and ssh: the table of their messages, and the errors made from it."""
