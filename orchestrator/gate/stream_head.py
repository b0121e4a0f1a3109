"""The first records of a zfs stream: what kind of dataset comes, and whether it is one dataset or a whole tree of them.

Source: openzfs, include/sys/zfs_ioctl.h (dmu_replay_record), lib/libzfs/libzfs_sendrecv.c (zfs_receive_package).
"""

import struct

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.gate import GateRefusal
from orchestrator.engines.zfs.model import DatasetType
from orchestrator.engines.zfs.survey.packed_list import pair_names

_RECORD = 312
_MAGIC = 0x2F5BACBAC
_BEGIN, _END = 0, 5
_SUBSTREAM, _COMPOUND = 1, 2
_KINDS = {2: DatasetType.FILESYSTEM, 3: DatasetType.VOLUME}
_CLONE = 1
_LONGEST = 64 << 20  # of the list before a stream with properties: 100 bytes for each snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamHead:
    """The head of a stream. `clone`: it starts from a snapshot of another dataset; `newest`: the snapshot that it ends with, without @."""

    kind: DatasetType
    clone: bool
    newest: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Begin:
    header: int
    kind: int
    flags: int
    name: bytes
    payload: int


def missing_bytes(data: bytes) -> int:
    """Return how many more bytes are needed at least to know the head; 0: it is there. Raises: GateRefusal."""
    if len(data) < _RECORD:
        return _RECORD - len(data)
    begin = _parse_begin(data[:_RECORD])
    if begin.header != _COMPOUND:
        return 0
    return max(0, 3 * _RECORD + begin.payload - len(data))


def parse_head(data: bytes) -> StreamHead:
    """Return the head of a stream of one dataset. Raises: GateRefusal for any other, and for what is no stream."""
    begin = whole = _parse_begin(data[:_RECORD])
    if begin.header == _COMPOUND:
        _require_single(data[_RECORD : _RECORD + begin.payload])
        at = _RECORD + begin.payload
        if int.from_bytes(data[at : at + 4], "little") != _END:
            raise GateRefusal("a stream of an unknown form")
        begin = _parse_begin(data[at + _RECORD : at + 2 * _RECORD])
        if begin.name.partition(b"@")[0] != whole.name.partition(b"@")[0]:
            raise GateRefusal("a stream of several datasets, which could rename or replace some")
    kind = _KINDS.get(begin.kind)
    if begin.header != _SUBSTREAM or kind is None:
        raise GateRefusal("a stream of an unknown form")
    return StreamHead(kind=kind, clone=bool(begin.flags & _CLONE), newest=whole.name.partition(b"@")[2])


def _parse_begin(record: bytes) -> _Begin:
    what, payload, magic, version, _, kind, flags = struct.unpack_from("<IIQQQII", record)
    if what != _BEGIN or magic != _MAGIC or payload > _LONGEST:
        raise GateRefusal("what comes is no zfs stream, or one of a machine with another order of bytes")
    return _Begin(header=version & 3, kind=kind, flags=flags, name=record[56:312].split(b"\0")[0], payload=payload)


def _require_single(packed: bytes) -> None:
    """Check the list before a stream with properties. Raises: GateRefusal for one that tells of several datasets (-R)."""
    try:
        names = pair_names(packed)
    except ValueError as error:
        raise GateRefusal(f"a stream whose list cannot be read: {error}") from None
    if packed[:1] != b"\1" or names.count("not_recursive") != 1:
        raise GateRefusal("a stream of several datasets (-R), which could rename or replace some")
