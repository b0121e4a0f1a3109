"""Engines: one folder of equal shape for each way of copying; `shelf` finds them, `contract` is their interface."""
