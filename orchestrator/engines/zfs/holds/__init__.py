"""Holds and bookmarks that we leave on pools: their survey, and the report of who needs them."""
