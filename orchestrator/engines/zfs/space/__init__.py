"""Free space of a target: whether a copy fits, and a forecast of the next one."""
