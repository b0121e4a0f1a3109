"""Restore tests of datasets, and scratch clones of a point."""
