"""The strict reader of packed nvlists that strangers made: what it reads, zfs reads in the same way.

Source: openzfs, module/nvpair/nvpair.c: a native list goes on behind the size that a pair tells; an XDR list goes on behind the
value itself, whatever size the pair tells. So here both must be the same.
"""

import struct

_HEAD = 4 + 4 + 4  # encoding and byte order, version, flags
_MOST_DEEP = 20
_STRING, _BYTES, _STRINGS, _LIST, _LISTS = 9, 10, 17, 19, 20
_SINGLES = {1: 0, 2: 4, 3: 4, 4: 4, 5: 4, 6: 4, 7: 8, 8: 8, 18: 8, 21: 4, 22: 4, 23: 4, 27: 8}
_ARRAYS = {11: 4, 12: 4, 13: 4, 14: 4, 15: 8, 16: 8, 24: 4, 25: 4, 26: 4}


def pair_names(data: bytes) -> tuple[str, ...]:
    """Return the names of the pairs at the top of a list, as often as they are there. Raises: ValueError."""
    try:
        encoding, little = struct.unpack_from("BB", data)
        if encoding == 1:
            return _xdr_list(data, _HEAD, 0)[0]
        if encoding == 0:
            return _native_names(data, "<" if little else ">")
    except (struct.error, IndexError) as error:
        raise ValueError(f"a list that ends too early: {error}") from error
    raise ValueError("neither native nor XDR")


def _native_names(data: bytes, order: str) -> tuple[str, ...]:
    at, names = _HEAD, list[str]()
    while (size := struct.unpack_from(f"{order}i", data, at)[0]) > 0:
        _, long, _, _, _ = struct.unpack_from(f"{order}ihhii", data, at)
        name = data[at + 16 : at + 16 + long]
        if long < 1 or 16 + long > size or at + size > len(data) or name.find(b"\0") != long - 1:
            raise ValueError("a pair whose sizes differ")
        names.append(name[:-1].decode())
        at += size
    return tuple(names)


def _xdr_list(data: bytes, at: int, deep: int) -> tuple[tuple[str, ...], int]:
    """Return the names in a list that begins there, behind its version and flags, and where it ends."""
    if deep > _MOST_DEEP:
        raise ValueError("lists too deep in lists")
    names: list[str] = []
    while True:
        size, decoded = struct.unpack_from(">ii", data, at)
        if size == 0 and decoded == 0:
            return tuple(names), at + 8
        name, value = _xdr_string(data, at + 8)
        if b"\0" in name:
            raise ValueError("a name with a NUL")
        kind, count = struct.unpack_from(">ii", data, value)
        end = _xdr_value(data, value + 8, kind, count, deep)
        if end != at + size or end > len(data) or count < 0:
            raise ValueError("a pair whose sizes differ")
        names.append(name.decode())
        at = end


def _xdr_value(data: bytes, at: int, kind: int, count: int, deep: int) -> int:
    """Return where a value ends."""
    if kind in _SINGLES:
        return at + _SINGLES[kind]
    if kind == _STRING:
        return _xdr_string(data, at)[1]
    if kind == _BYTES:
        return at + (count + 3) // 4 * 4
    if kind in _ARRAYS:
        if struct.unpack_from(">i", data, at)[0] != count:
            raise ValueError("an array whose sizes differ")
        return at + 4 + count * _ARRAYS[kind]
    if kind not in (_STRINGS, _LIST, _LISTS) or count > len(data):
        raise ValueError("a value of an unknown kind")
    for _ in range(1 if kind == _LIST else count):
        at = _xdr_string(data, at)[1] if kind == _STRINGS else _xdr_list(data, at + 8, deep + 1)[1]
    return at


def _xdr_string(data: bytes, at: int) -> tuple[bytes, int]:
    (long,) = struct.unpack_from(">i", data, at)
    end = at + 4 + (long + 3) // 4 * 4
    if long < 0 or end > len(data):
        raise ValueError("a string that ends too late")
    return data[at + 4 : at + 4 + long], end
