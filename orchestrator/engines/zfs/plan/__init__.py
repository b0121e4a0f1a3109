"""Decisions on datasets: what is common, what is new, what is in the way; and the steps that carry it."""
