"""Datasets that come back: the plan, properties, keys, mounts, and the root dataset of a pool."""
