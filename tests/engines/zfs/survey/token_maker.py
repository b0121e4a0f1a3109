"""Packed lists and resume tokens, made as the kernel makes them, of any pairs."""

import struct
import zlib

from hypothesis import strategies as st

PAIRS = st.fixed_dictionaries(
    {"object": st.integers(0, 2**64 - 1), "offset": st.integers(0, 2**64 - 1), "toguid": st.integers(0, 2**64 - 1),
     "toname": st.text("abc/@é:- ", max_size=40)},
    optional={"bytes": st.integers(0, 2**64 - 1), "fromguid": st.integers(0, 2**64 - 1), "rawok": st.just(True),
              "largeblockok": st.just(True), "compressok": st.just(True), "embedok": st.just(True), "savedok": st.just(True)},
)  # fmt: skip


def packed(pairs: dict[str, int | str | bool], order: str = "<", *, kinds: dict[str, int] | None = None) -> bytes:
    """A list of pairs as the kernel packs it."""
    body = b""
    for name, value in pairs.items():
        text = name.encode() + b"\0"
        kind = 1 if value is True else 8 if isinstance(value, int) else 9
        told = (
            b""
            if value is True
            else struct.pack(f"{order}Q", value)
            if isinstance(value, int)
            else value.encode() + b"\0"
        )
        head = 16 + len(text)
        front = b"\0" * (-head % 8)
        back = b"\0" * (-len(told) % 8)
        size = head + len(front) + len(told) + len(back)
        kind = (kinds or {}).get(name, kind)
        body += struct.pack(f"{order}ihhii", size, len(text), 0, 1, kind) + text + front + told + back
    return (
        bytes((0, order == "<", 0, 0))
        + struct.pack(f"{order}ii", 0, 1)
        + body
        + struct.pack(f"{order}i", 0)
        + b"\0" * 4
    )


def xdr(pairs: dict[str, int | str | bool]) -> bytes:
    """The same in XDR."""

    def text(value: str) -> bytes:
        raw = value.encode()
        return struct.pack(">i", len(raw)) + raw + b"\0" * (-len(raw) % 4)

    body = b""
    for name, value in pairs.items():
        kind = 1 if value is True else 8 if isinstance(value, int) else 9
        told = b"" if value is True else struct.pack(">Q", value) if isinstance(value, int) else text(value)
        rest = text(name) + struct.pack(">ii", kind, 0 if value is True else 1) + told
        body += struct.pack(">ii", len(rest) + 8, 0) + rest
    return bytes((1, 1, 0, 0)) + struct.pack(">ii", 0, 1) + body + struct.pack(">ii", 0, 0)


def token(plain: bytes, *, version: int = 1, length: int | None = None, sum_off: int = 0) -> str:
    data = zlib.compress(plain)
    total = sum(struct.unpack(f"<{len(data) // 4}I", data[: len(data) // 4 * 4])) + sum_off
    return f"{version}-{total:x}-{len(plain) if length is None else length:x}-{data.hex()}"
