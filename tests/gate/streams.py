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


def record(kind: int, content: bytes = b"", **fields: tuple[str, int]) -> bytes:
    """A record of a kind with a content. `fields`: by their place, what is there."""
    made = bytearray(struct.pack("<I", kind).ljust(312, b"\0"))
    for place, (form, value) in fields.items():
        struct.pack_into(f"<{form}", made, int(place[1:]), value)
    return bytes(made) + content


# A content that looks like the head of another stream is only a content.
INNER = begin(name="tank/other@a").ljust(512, b"x")
RECORDS = (
    record(2), record(4), record(9), record(10), end(),
    record(1, b"b" * 8, _28=("I", 5)), record(1), record(1, b"r" * 320, _28=("I", 5), _36=("I", 320)),
    record(3, INNER, _32=("Q", 512)), record(3, INNER, _32=("Q", 131072), _50=("B", 2), _96=("Q", 512)),
    record(7, INNER, _16=("Q", 512)), record(7, INNER, _16=("Q", 9999), _40=("Q", 512)), record(8, b"e" * 16, _52=("I", 9)),
    begin(name="tank/p@b"), begin(name="tank/p@c", payload=40) + b"p" * 40,
)  # fmt: skip
