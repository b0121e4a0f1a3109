"""The parser of resume tokens: the stream that was interrupted, and its progress."""

import struct
import zlib
from collections.abc import Iterator, Mapping

from orchestrator.engines.zfs.model import ResumeToken, SendFlags
from orchestrator.engines.zfs.survey.packed_list import pair_names

_VERSION = 1
_HEAD = 4 + 4 + 4  # encoding and byte order, version, flags
_BOOLEAN, _UINT64, _STRING = 1, 8, 9
_LONGEST = 64 << 10  # bytes unpacked; a token has names and numbers


def parse_token(text: str) -> ResumeToken | None:
    """Parse a resume token; None for one that is damaged, or of an unknown newer version.

    Source: openzfs, `zfs_receive_resume_token_to_nvlist` and `get_receive_resume_token_impl`: version, the first word of
    the fletcher-4 sum and the length in hexadecimal, then a packed list of pairs, compressed.
    """
    try:
        plain = _plain(text)
        return None if plain is None else _token(text, unpack(plain))
    except (ValueError, KeyError, TypeError, zlib.error, struct.error):
        return None


def token_names(text: str) -> tuple[str, ...]:
    """Return the names of all pairs in a resume token that `parse_token` reads, of every kind and as often as they are there.

    Raises: ValueError for a list that zfs might read otherwise than we do.
    """
    plain = _plain(text) or b""
    return pair_names(plain)


def _plain(text: str) -> bytes | None:
    """Return the packed list of a token; None for a damaged one. Raises: ValueError, zlib.error for no token at all."""
    version, checksum, length, payload = text.split("-")
    packed, long = bytes.fromhex(payload), int(length, 16)
    if int(version) != _VERSION or int(checksum, 16) != _fletcher(packed) or long > _LONGEST:
        return None
    plain = zlib.decompressobj().decompress(packed, _LONGEST)
    return plain if len(plain) == long else None


def _token(text: str, pairs: Mapping[str, int | str | bool]) -> ResumeToken:
    return ResumeToken(
        text=text,
        to_guid=int(pairs["toguid"]),
        to_name=str(pairs["toname"]),
        from_guid=int(pairs["fromguid"]) if "fromguid" in pairs else None,
        object=int(pairs["object"]),
        offset=int(pairs["offset"]),
        bytes=int(pairs.get("bytes", 0)),
        flags=SendFlags(
            raw="rawok" in pairs, large="largeblockok" in pairs, compressed="compressok" in pairs,
            embedded="embedok" in pairs,
        ),
    )  # fmt: skip


def _fletcher(data: bytes) -> int:
    whole = len(data) // 4 * 4
    return int(sum(word for (word,) in struct.iter_unpack("<I", data[:whole]))) & (1 << 64) - 1


def unpack(data: bytes) -> dict[str, int | str | bool]:
    """Parse the numbers, strings and flags of a packed nvlist, native or XDR; other values are left out.

    Source: openzfs, module/nvpair/nvpair.c. Raises: ValueError, struct.error for other data.
    """
    encoding, little = struct.unpack_from("BB", data)
    if encoding == 1:
        return dict(_xdr_pairs(data))
    if encoding != 0:
        raise ValueError("neither native nor XDR")
    return dict(_native_pairs(data, "<" if little else ">"))


def _native_pairs(data: bytes, order: str) -> Iterator[tuple[str, int | str | bool]]:
    """Yield the pairs. Each: size, name size, a gap, number of values, kind; name, then value, aligned to 8 bytes."""
    at = _HEAD
    while (size := struct.unpack_from(f"{order}i", data, at)[0]) > 0:
        _, name_size, _, _, kind = struct.unpack_from(f"{order}ihhii", data, at)
        name = data[at + 16 : at + 16 + name_size - 1].decode()
        value = data[at + (16 + name_size + 7) // 8 * 8 : at + size]
        if kind == _UINT64:
            yield name, struct.unpack_from(f"{order}Q", value)[0]
        elif kind == _STRING:
            yield name, value.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")
        elif kind == _BOOLEAN:
            yield name, True
        at += size


def _xdr_pairs(data: bytes) -> Iterator[tuple[str, int | str | bool]]:
    """Yield the pairs. Each: size, size in memory, name, kind, number of values, value; aligned to 4 bytes."""
    at = _HEAD
    while (size := struct.unpack_from(">i", data, at)[0]) > 0:
        length = struct.unpack_from(">i", data, at + 8)[0]
        name = data[at + 12 : at + 12 + length].decode()
        value = at + 12 + (length + 3) // 4 * 4
        kind = struct.unpack_from(">i", data, value)[0]
        if kind == _UINT64:
            yield name, struct.unpack_from(">Q", data, value + 8)[0]
        elif kind == _STRING:
            long = struct.unpack_from(">i", data, value + 8)[0]
            yield name, data[value + 12 : value + 12 + long].decode("utf-8", "surrogateescape")
        elif kind == _BOOLEAN:
            yield name, True
        at += size
