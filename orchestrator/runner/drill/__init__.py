"""Restore tests: what is chosen, brought back, compared, and kept as evidence."""
