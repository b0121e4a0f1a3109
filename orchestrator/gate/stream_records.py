"""The records of a stream with properties or of several snapshots: all of them are of the one dataset that its head names.

Why each is looked at: such a stream may hold several streams, one behind the other, and zfs receives each of them below the named
dataset, by the name that it bears itself. Where that is not there, zfs looks for its base by its guid in the whole pool, and adds
to what it finds, or clones it. Source: openzfs, include/sys/zfs_ioctl.h, lib/libzfs/libzfs_sendrecv.c (zfs_receive_one, recv_skip).
"""

import struct
from collections.abc import Callable

from orchestrator.domain.gate import GateRefusal
from orchestrator.gate.stream_head import CLONE, RECORD, SUBSTREAM, parse_begin

_LONGEST = 64 << 20  # bytes of one record's content; zfs has 16 MiB at most
_TWO_SIZES, _ONE_SIZE = struct.Struct("<II"), struct.Struct("<Q")


class RecordWatch:
    """Follows a stream from behind the head of the first one in it. `dataset`: its name at the sender; `skip`: bytes before the next record."""

    def __init__(self, dataset: bytes, *, skip: int) -> None:
        self._dataset = dataset
        self._skip = skip
        self._begun = b""

    def follow(self, data: bytes) -> None:
        """Look at what comes next. Raises: GateRefusal before any of it may be passed on."""
        data = self._begun + data if self._begun else data
        at, end = self._skip, len(data)
        while at + RECORD <= end:
            kind, payload = _TWO_SIZES.unpack_from(data, at)
            content = _CONTENT.get(kind)
            size = payload if kind == _BEGIN else content(data, at) if content is not None else -1
            if not 0 <= size <= _LONGEST:
                raise GateRefusal("a stream with a record of an unknown kind or size")
            if kind == _BEGIN:
                self._require_same(data[at : at + RECORD])
            at += RECORD + size
        self._begun = data[at:]
        self._skip = max(0, at - end)

    def _require_same(self, record: bytes) -> None:
        begin = parse_begin(record)
        if begin.header != SUBSTREAM or begin.flags & CLONE or begin.name.partition(b"@")[0] != self._dataset:
            raise GateRefusal("a stream of several datasets, which could add to others or clone them")


def _of_object(data: bytes, at: int) -> int:
    bonus, raw = _TWO_SIZES.unpack_from(data, at + 28)[0], _TWO_SIZES.unpack_from(data, at + 36)[0]
    return -1 if raw and not bonus else raw or (bonus + 7) // 8 * 8


def _of_write(data: bytes, at: int) -> int:
    return int(_ONE_SIZE.unpack_from(data, at + (96 if data[at + 50] else 32))[0])


def _of_spill(data: bytes, at: int) -> int:
    return int(_ONE_SIZE.unpack_from(data, at + 40)[0] or _ONE_SIZE.unpack_from(data, at + 16)[0])


def _of_embedded(data: bytes, at: int) -> int:
    return (int(_TWO_SIZES.unpack_from(data, at + 48)[1]) + 7) // 8 * 8


def _nothing(_: bytes, __: int) -> int:
    return 0


_BEGIN = 0
# What is missing (6) refers to blocks elsewhere; no zfs of ours takes it.
_CONTENT: dict[int, Callable[[bytes, int], int]] = {
    1: _of_object, 2: _nothing, 3: _of_write, 4: _nothing, 5: _nothing, 7: _of_spill, 8: _of_embedded, 9: _nothing, 10: _nothing,
}  # fmt: skip
