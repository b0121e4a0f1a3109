"""The hashes of an interpreter that has no modules of its own for them are those of hashlib."""

import hashlib
import importlib
import sys

import pytest

from orchestrator.domain import hashes


def test_another_interpreter_takes_those_of_hashlib(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as other:
        for name in ("_blake2", "_sha2", "_sha256"):
            other.setitem(sys.modules, name, None)
        assert importlib.reload(hashes).sha256 is hashlib.sha256
        assert hashes.blake2b(b"x").digest() == hashlib.blake2b(b"x").digest()
    importlib.reload(hashes)
    assert hashes.sha256_for(1).digest() == hashlib.sha256().digest()
