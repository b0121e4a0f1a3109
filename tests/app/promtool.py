"""Prometheus' own checker of metrics and rules, where it is installed."""

import shutil

import pytest

PROMTOOL = shutil.which("promtool")
# Why no package of the tests: Debian's prometheus is 96 MB, and opens a port as soon as it is installed.
needs_promtool = pytest.mark.skipif(
    PROMTOOL is None,
    reason="promtool is not there (it comes with Debian's prometheus): its word is one more, not the only",
)
