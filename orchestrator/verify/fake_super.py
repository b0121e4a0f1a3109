"""A tree that an rsync with --fake-super wrote, as its entries are at the source: the one place where that is read back.

Where the user at the target is not root, such an rsync writes each entry as what that user may have, and keeps the rest in attributes:
`user.rsync.%stat` is mode, device numbers and owner; `%aacl` and `%dacl` are access lists in a form of rsync's own; attributes of root have
`user.rsync.` before their names; a symbolic link is a file that holds its target. Source: rsync 3.5, xattrs.c, acls.c, syscall.c.
"""

import re
import struct
from collections.abc import Iterable, Iterator
from itertools import groupby

from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.process.scripts import end_whole_function, script_command
from orchestrator.verify.attributes import NO_ATTRIBUTES, OWN_NAMES, attribute_text, parse_attribute, plain_name
from orchestrator.verify.build import sorted_records
from orchestrator.verify.pipelines import find_words

_STAT, _ACCESS, _DEFAULT = (OWN_NAMES + name for name in (b"%stat", b"%aacl", b"%dacl"))
_FACTS = re.compile(rb"([0-7]{1,7}) [0-9]+,[0-9]+ ([0-9]{1,10}):([0-9]{1,10})")
_TYPES = {
    0o100000: b"f",
    0o040000: b"d",
    0o120000: b"l",
    0o010000: b"p",
    0o140000: b"s",
    0o060000: b"b",
    0o020000: b"c",
}
_END, _VALUES, _LINK = b"//", b"\x01", b"\x02"  # these two sort before any kind of find's
_NO_ENTRY = 0x80  # rsync's word for rights that the mode tells
_OF_USER = 1 << 31
_BARE = struct.pack("<4I", *(_NO_ENTRY,) * 4)  # a list that says no more than the mode, which is none
_USER_OBJ, _USER, _GROUP_OBJ, _GROUP, _MASK, _OTHER = 1, 2, 4, 8, 16, 32  # Source: linux/posix_acl_xattr.h
_NOBODY = 0xFFFFFFFF


def stored_command(tree: Location, *, exclude: tuple[bytes, ...] = (), apart: tuple[bytes, ...] = ()) -> Command:
    """Build the command that lists such a tree. `exclude`, `apart`: as in `listing_command`. It fails where there is no getfattr."""
    words = find_words(".", exclude=exclude, apart=apart)
    return script_command(
        "verify", "list-stored.sh", tree.path, *words, effect=Effect.READS, host=tree.host, before=end_whole_function()
    )


def stored_entries(records: Iterable[bytes], *, folder: str) -> Iterator[tuple[bytes, str]]:
    """Yield the sorted records of `stored_command` as `listing_command` would print them at the source, each with its attributes' text.

    What a record says of itself is kept where its attributes cannot be read. Raises: ValueError for what is no such listing.
    """
    for _, group in groupby(
        sorted_records(_tagged(iter(records)), folder=folder), key=lambda each: each[: each.index(b"//") + 2]
    ):
        values: dict[bytes, bytes] = {}
        target = b""
        for record in group:
            end = record.index(b"//") + 2
            if record[end : end + 1] == _VALUES:
                values = dict(map(parse_attribute, record[end + 1 :].split(b"\n")))
            elif record[end : end + 1] == _LINK:
                target = record[end + 1 :]
            else:
                yield _as_at_source(record, end, values, target)


def stored_attributes(records: Iterable[bytes], *, folder: str) -> Iterator[bytes]:
    """Yield path, `//` and the attributes' text of each entry that has some, sorted."""
    for record, text in stored_entries(records, folder=folder):
        if text != NO_ATTRIBUTES:
            yield record[: record.index(b"//") + 2] + text.encode()


def _tagged(records: Iterator[bytes]) -> Iterator[bytes]:
    """Yield all records, each with the path of its entry before it, so that sorting brings together what belongs together."""
    yield from iter(lambda: next(records, b""), b"")
    path, lines = b"", list[bytes]()
    for line in records:
        if line == _END:
            break
        if line.startswith(b"# file: "):
            path = plain_name(line[8:])
        elif line:
            lines.append(line)
        elif lines:
            yield b"%b//%b%b" % (_plain(path), _VALUES, b"\n".join(lines))
            lines = []
    else:
        raise ValueError("the listing has no end")
    for name in records:
        yield b"%b//%b%b" % (_plain(name), _LINK, next(records, b""))


def _plain(path: bytes) -> bytes:
    return b"" if path == b"." else path.removeprefix(b"./")


def _as_at_source(record: bytes, end: int, values: dict[bytes, bytes], link: bytes) -> tuple[bytes, str]:
    kind, size, mtime, bits, uid, gid, nlink, inode, target = record[end:].split(b"\t", 8)
    facts = _FACTS.fullmatch(values.get(_STAT, b""))
    told = _TYPES.get(int(facts[1], 8) & 0o170000, b"") if facts else b""
    if facts and told and (told == b"d") == (kind == b"d") and kind in (b"f", b"d"):
        kind, bits, uid, gid = told, b"%o" % (int(facts[1], 8) & 0o7777), facts[2], facts[3]
        target = link if told == b"l" else b""
    mode = int(bits, 8)
    text = attribute_text({name: value for each in values.items() for name, value in _attribute(*each, mode)})
    return record[:end] + b"\t".join((kind, size, mtime, bits, uid, gid, nlink, inode, target)), text


def _attribute(name: bytes, value: bytes, mode: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield the attribute as the source has it; none for what is only of this store."""
    if name == _ACCESS:
        if value != _BARE:
            yield b"system.posix_acl_access", _access_list(value, mode)
    elif name == _DEFAULT:
        yield b"system.posix_acl_default", _access_list(value, mode)
    elif name.startswith(OWN_NAMES):
        if name != _STAT:
            yield name.removeprefix(OWN_NAMES), value
    elif not name.startswith(b"system."):
        yield name, value


def _access_list(value: bytes, mode: int) -> bytes:
    """Return an access list in the kernel's form; what is none of rsync's form is returned as it is."""
    if len(value) < 16 or len(value) % 8:
        return value
    (user, group, mask, other), words = (
        struct.unpack_from("<4I", value),
        struct.unpack_from(f"<{(len(value) - 16) // 4}I", value, 16),
    )
    named = [
        (_USER if access & _OF_USER else _GROUP, access & 7, number)
        for number, access in zip(words[::2], words[1::2], strict=True)
    ]
    own = ((_USER_OBJ, user, mode >> 6), (_GROUP_OBJ, group, mode >> 3), (_OTHER, other, mode))
    entries = [(tag, (bits if rights == _NO_ENTRY else rights) & 7, _NOBODY) for tag, rights, bits in own]
    if mask != _NO_ENTRY or named:
        entries.append((_MASK, (mode >> 3 if mask == _NO_ENTRY else mask) & 7, _NOBODY))
    entries = sorted((*entries, *named), key=lambda each: (each[0], each[2]))
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *each) for each in entries)
