"""One run from owed to done: lock, record, look, decide, do, prove, record."""
