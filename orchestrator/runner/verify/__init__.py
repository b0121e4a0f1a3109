"""Verification: files are read again, sides compared, sums exported, within the budget of a visit."""
