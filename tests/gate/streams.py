"""Heads of zfs streams, as a sender makes them: of one dataset, and those with properties or of several snapshots."""

import struct

from tests.engines.zfs.survey.token_maker import xdr

SINGLE = xdr({"tosnap": "a", "not_recursive": True})


def begin(
    *,
    header: int = 1,
    kind: int = 2,
    flags: int = 0,
    name: str = "tank/p@a",
    payload: int = 0,
    magic: int = 0x2F5BACBAC,
) -> bytes:
    head = struct.pack("<IIQQQIIQQ", 0, payload, magic, header | 0x1234 << 2, 1, kind, flags, 7, 0)
    return head + name.encode().ljust(256, b"\0")


def end() -> bytes:
    return struct.pack("<I", 5).ljust(312, b"\0")


def compound(listed: bytes = SINGLE, *, inner: bytes | None = None) -> bytes:
    return begin(header=2, kind=0, payload=len(listed)) + listed + end() + (inner or begin())
