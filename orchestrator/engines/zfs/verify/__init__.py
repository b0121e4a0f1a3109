"""Comparison of both sides by guid and by content, and the reading of a copy."""
