"""Engines: one folder of equal form for each way of copying; `registry` finds them, `contract` is their interface."""
