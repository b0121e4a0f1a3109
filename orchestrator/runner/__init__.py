"""Execution of one run from due to done: lock, record, survey, decide, act, confirm, record."""
