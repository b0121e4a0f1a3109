"""The first records of a zfs stream: what kind of dataset comes, and whether it is one dataset or a whole tree of them.

Source: openzfs, include/sys/zfs_ioctl.h (dmu_replay_record), lib/libzfs/libzfs_sendrecv.c (zfs_receive_package).
"""

import struct

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.gate import GateRefusal
from orchestrator.engines.zfs.model import DatasetType
from orchestrator.engines.zfs.survey.packed_list import pair_names

RECORD = 312
_MAGIC = 0x2F5BACBAC
_BEGIN, _END = 0, 5
SUBSTREAM, _COMPOUND = 1, 2
_KINDS = {2: DatasetType.FILESYSTEM, 3: DatasetType.VOLUME}
CLONE = 1
_PARENT, _NONE = b"parentfromsnap\0\0", struct.pack(">iiQ", 8, 1, 0)
_LONGEST = 64 << 20  # of the list before a stream with properties: 100 bytes for each snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamHead:
    """The head of a stream. `clone`: it starts from a snapshot of another dataset; `newest`: the snapshot that it ends with, without @.

    `of_several`: the dataset's name at the sender, where more streams may follow in it; `skip`: so many bytes come before its next record.
    """

    kind: DatasetType
    clone: bool
    newest: bytes = b""
    of_several: bytes | None = None
    skip: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamBegin:
    """The record that begins a stream. `payload`: so many bytes follow it."""

    header: int
    kind: int
    flags: int
    name: bytes
    payload: int


def missing_bytes(data: bytes) -> int:
    """Return how many more bytes are needed at least to know the head; 0: it is there. Raises: GateRefusal."""
    if len(data) < RECORD:
        return RECORD - len(data)
    begin = parse_begin(data[:RECORD])
    if begin.header != _COMPOUND:
        return 0
    return max(0, 3 * RECORD + begin.payload - len(data))


def parse_head(data: bytes) -> StreamHead:
    """Return the head of a stream of one dataset. Raises: GateRefusal for any other, and for what is no stream."""
    begin = whole = parse_begin(data[:RECORD])
    if begin.header == _COMPOUND:
        _require_single(data[RECORD : RECORD + begin.payload])
        at = RECORD + begin.payload
        if int.from_bytes(data[at : at + 4], "little") != _END:
            raise GateRefusal("a stream of an unknown form")
        begin = parse_begin(data[at + RECORD : at + 2 * RECORD])
        if begin.name.partition(b"@")[0] != whole.name.partition(b"@")[0]:
            raise GateRefusal("a stream of several datasets, which could rename or replace some")
    kind = _KINDS.get(begin.kind)
    if begin.header != SUBSTREAM or kind is None:
        raise GateRefusal("a stream of an unknown form")
    dataset, _, newest = whole.name.partition(b"@")
    several = dataset if whole is not begin else None
    return StreamHead(kind=kind, clone=bool(begin.flags & CLONE), newest=newest, of_several=several, skip=begin.payload)


def parse_begin(record: bytes) -> StreamBegin:
    """Return the record that begins a stream. Raises: GateRefusal."""
    what, payload, magic, version, _, kind, flags = struct.unpack_from("<IIQQQII", record)
    if what != _BEGIN or magic != _MAGIC or payload > _LONGEST or 0 not in record[56:]:
        raise GateRefusal("what comes is no zfs stream, or one of a machine with another order of bytes")
    return StreamBegin(header=version & 3, kind=kind, flags=flags, name=record[56:312].split(b"\0")[0], payload=payload)


def _require_single(packed: bytes) -> None:
    """Check the list before a stream with properties. Raises: GateRefusal for one that tells of several datasets (-R)."""
    try:
        names = pair_names(packed)
    except ValueError as error:
        raise GateRefusal(f"a stream whose list cannot be read: {error}") from None
    if packed[:1] != b"\1" or names.count("not_recursive") != 1:
        raise GateRefusal("a stream of several datasets (-R), which could rename or replace some")
    for after in packed.split(_PARENT)[1:]:  # by which zfs would look for a parent that is not there, in the whole pool
        if not after.startswith(_NONE):
            raise GateRefusal("a stream of a dataset with a parent, which could be received elsewhere")
