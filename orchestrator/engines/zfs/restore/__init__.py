"""Restores of datasets: the plan, properties, keys, mounts, and the root dataset of a pool."""
