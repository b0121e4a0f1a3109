"""Restore tests: choose data, restore them, compare them, and keep the result as evidence."""
