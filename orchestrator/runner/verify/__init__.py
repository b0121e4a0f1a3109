"""Verification: read files again, compare both sides, export sums; also within the budget of a visit."""
