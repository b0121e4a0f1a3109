r"""Access lists and extended attributes of an entry as one short text: a digest for each part that the entry has.

`a`: access lists; `u`: attributes of users; `o`: capabilities and what else only root may set. "-" where there is none; an empty
text says nothing of them. What a filesystem invents for itself (system.nfs4_acl, btrfs.…) is none of them.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping

NO_ATTRIBUTES = "-"
UNRECORDED = ""
ALL_PARTS = "auo"
OWN_NAMES = b"user.rsync."  # begins what rsync writes for itself
_ACCESS_LISTS = (b"system.posix_acl_access", b"system.posix_acl_default")
_PARTS = re.compile(r"([auo])([0-9a-f]+)")
_NAMES = {"a": "access list", "u": "extended attributes", "o": "capabilities or attributes of root"}
_OCTAL = re.compile(rb"\\([0-3][0-7]{2})")
_BYTES = 12
_FILE = b"# file: "


def attribute_text(values: Mapping[bytes, bytes]) -> str:
    """Return the text for these attributes, by name."""
    parts: dict[str, list[bytes]] = {}
    for name in sorted(values):
        if part := _part(name):
            value = _in_order(values[name]) if name in _ACCESS_LISTS else values[name]
            parts.setdefault(part, []).append(b"%d %b %d %b" % (len(name), name, len(value), value))
    if not parts:
        return NO_ATTRIBUTES
    return "".join(part + _digest(b"".join(parts[part])) for part in ALL_PARTS if part in parts)


def _in_order(value: bytes) -> bytes:
    """Return an access list with its entries in the order in which every program but a stranger's writes them.

    Why: the kernel keeps any order of users and of groups, and rsync writes them by their numbers. Source: linux/posix_acl_xattr.h.
    """
    from struct import iter_unpack

    if len(value) % 8 != 4:
        return value
    entries = sorted((tag, number, at) for at, (tag, _, number) in enumerate(iter_unpack("<HHI", value[4:])))
    return value[:4] + b"".join(value[4 + 8 * at : 12 + 8 * at] for _, _, at in entries)


def _part(name: bytes) -> str:
    if name in _ACCESS_LISTS:
        return "a"
    return {b"user": "u", b"security": "o", b"trusted": "o"}.get(name.partition(b".")[0], "")


def _digest(text: bytes) -> str:
    from hashlib import blake2b  # a gate needs the commands of this room alone

    return blake2b(text, digest_size=_BYTES).hexdigest()


def read_attributes(entry: int | bytes) -> str:
    """Return the text for an open file, or for a path whose last part is not followed. Raises: OSError."""
    follow = isinstance(entry, int)
    names = os.listxattr(entry) if follow else os.listxattr(entry, follow_symlinks=False)
    if not names:
        return NO_ATTRIBUTES
    wanted = (os.fsencode(name) for name in names)
    return attribute_text({name: os.getxattr(entry, name, follow_symlinks=follow) for name in wanted if _part(name)})


def keep_parts(text: str, parts: str) -> str:
    """Return the text with only these parts of it, by their letters."""
    if text in (NO_ATTRIBUTES, UNRECORDED) or parts == ALL_PARTS:
        return text
    return "".join(part + digest for part, digest in _PARTS.findall(text) if part in parts) or NO_ATTRIBUTES


def attribute_differences(expected: str, found: str, *, ignored: str = "") -> tuple[str, ...]:
    """Return the differing parts, such as "another access list". `ignored`: letters of parts that are not compared."""
    if expected == found or not expected or not found:
        return ()
    one, other = (dict(_PARTS.findall(text)) for text in (expected, found))
    return tuple(
        f"{'other' if part != 'a' else 'another'} {name}" if part in one and part in other
        else f"{'no' if part in one else 'an unexpected'} {name}" if part == "a"
        else f"{'no' if part in one else 'unexpected'} {name}"
        for part, name in _NAMES.items() if part not in ignored and one.get(part) != other.get(part)
    )  # fmt: skip


def parse_attributes(lines: Iterable[bytes]) -> Iterator[bytes]:
    r"""Yield for each file that getfattr's lines describe its path, `//` and the text. Raises: ValueError.

    It writes a backslash, a newline and other odd bytes of a name as \ooo.
    """
    path: bytes | None = None
    values: dict[bytes, bytes] = {}
    for line in lines:
        if line.startswith(_FILE):
            path = plain_name(line[len(_FILE) :])
        elif not line:
            if path is not None and values:
                yield _record(path, values)
            path, values = None, {}
        elif path is None:
            raise ValueError(f"an attribute of no file: {line[:200]!r}")
        else:
            values.update((parse_attribute(line),))
    if path is not None and values:
        yield _record(path, values)


def parse_attribute(line: bytes) -> tuple[bytes, bytes]:
    """Return name and value of one of getfattr's lines. Raises: ValueError."""
    name, _, value = line.partition(b"=")
    return plain_name(name), bytes.fromhex(value.decode("ascii").removeprefix("0x"))


def plain_name(name: bytes) -> bytes:
    """Return a name that getfattr wrote."""
    return _OCTAL.sub(lambda match: bytes((int(match[1], 8),)), name) if b"\\" in name else name


def _record(path: bytes, values: Mapping[bytes, bytes]) -> bytes:
    name = b"" if path in (b".", b"./.") else path.removeprefix(b"./")
    return name + b"//" + attribute_text(values).encode()
