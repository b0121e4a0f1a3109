"""Domain values that every package shares: no side effects, no clock, and no imports from other poolferry packages."""
