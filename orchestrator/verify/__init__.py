"""Proves that bytes are bytes: lists trees, writes manifests, reads again, compares. Starts no programs. Pure."""
