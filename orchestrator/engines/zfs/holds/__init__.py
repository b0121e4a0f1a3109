"""Holds and bookmarks that poolferry leaves on pools: their survey, and the jobs that need them."""
