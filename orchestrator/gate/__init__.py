"""The gate: requests of a key are taken apart, and admitted only as questions that poolferry itself asks."""
