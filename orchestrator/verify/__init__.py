"""Verification of bytes: lists trees, writes manifests, reads again, compares. It starts no programs.

Why xxh128 is the default digest: rsync computes it during the copy and reports it at no cost (%C), and reading again with it
costs 1.02 to 1.07 of a bare cold read. BLAKE3 costs 1.18, SHA-256 1.9 of it, and both a second reading of all moved data. It
detects bit rot; where a person might forge a copy, `digest = "sha256"` or "blake3" is the choice.
"""
