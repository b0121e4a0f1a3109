"""Questions to the libraries of OpenZFS themselves: properties, rights and holds, of many datasets by one program.

Nothing is changed by it. Names, values and tags come apart, so a value of several lines passes for no other. Where the libraries
are not those that are known here, nothing is said, and who asks does it by `zfs` itself.
Source: OpenZFS 2.0 to 2.3, include/libzfs.h, lib/libzfs/libzfs_dataset.c, lib/libzfs_core/libzfs_core.c, include/sys/nvpair.h.
"""

import ctypes
import errno
import os
from collections.abc import Iterator, Mapping

_ZFS = ("libzfs.so.6", "libzfs.so.4")  # of 2.3; of 2.0 to 2.2
_CORE, _PAIRS = "libzfs_core.so.3", "libnvpair.so.3"
_ANY = 1 | 2 | 4  # a filesystem, a snapshot or a volume
_RECEIVED = "$recvd"  # as the source of a property
_SOURCE, _VALUE = b"source", b"value"
Value = str | int
Properties = Mapping[str, tuple[Value, str]]


class Unreadable(Exception):
    """Something that could not be asked, or that is gone: nothing is known of it."""


class ZfsLibrary:
    """The libraries, opened. Raises: OSError, AttributeError where they are not those that are known here; Unreadable."""

    def __init__(self) -> None:
        self._pairs = ctypes.CDLL(_PAIRS)
        self._core = ctypes.CDLL(_CORE)
        self._zfs = _first(_ZFS)
        for function in (self._zfs.libzfs_init, self._zfs.zfs_open, self._zfs.zfs_get_all_props):
            function.restype = ctypes.c_void_p
        self._zfs.zfs_get_recvd_props.restype = self._pairs.nvlist_next_nvpair.restype = ctypes.c_void_p
        self._pairs.nvpair_name.restype = ctypes.c_char_p
        self._handle = self._zfs.libzfs_init()
        if not self._handle or self._core.libzfs_core_init():
            raise Unreadable("/dev/zfs")

    def own_properties(self, name: str) -> dict[str, Value]:
        """Return the properties that are set on a dataset or snapshot itself, or received there: those that `zfs send -p` sends."""
        with _Opened(self._zfs, self._handle, name) as one:
            told = self._properties(self._zfs.zfs_get_all_props(one))
        return {key: value for key, (value, source) in told.items() if source in (name, _RECEIVED)}

    def received_properties(self, name: str) -> tuple[dict[str, Value], frozenset[str]]:
        """Return what a dataset received, also where another value is in its place; and the names of those that are in force."""
        with _Opened(self._zfs, self._handle, name) as one:
            told = self._properties(self._zfs.zfs_get_all_props(one))
            ctypes.set_errno(0)
            there = self._zfs.zfs_get_recvd_props(one)
            # Of a dataset that never received any, the kernel says so by an error.
            if not there and ctypes.get_errno() != errno.ENOTSUP:
                raise Unreadable(name)
            received = self._properties(there) if there else {}
        in_force = frozenset(key for key, (_, source) in told.items() if source == _RECEIVED)
        return {key: value for key, (value, _) in received.items()}, in_force

    def grants(self, name: str) -> tuple[str, ...]:
        """Return the datasets, this one and those above it, on which rights that hold here were delegated."""
        rights = ctypes.c_void_p()
        with _Opened(self._zfs, self._handle, name) as one:
            if self._zfs.zfs_get_fsacl(one, ctypes.byref(rights)):
                raise Unreadable(name)
        try:
            return tuple(key for key, _ in self._each(rights.value))
        finally:
            self._pairs.nvlist_free(rights)

    def holds(self, snapshot: str) -> dict[str, int]:
        """Return the tags of a snapshot's holds, with their times. None of one that is gone."""
        held = ctypes.c_void_p()
        failure = self._core.lzc_get_holds(os.fsencode(snapshot), ctypes.byref(held))
        if failure == errno.ENOENT:
            return {}
        if failure:
            raise Unreadable(snapshot)
        try:
            return {tag: self._number(pair) for tag, pair in self._each(held.value)}
        finally:
            self._pairs.nvlist_free(held)

    def _each(self, pairs: int | None) -> Iterator[tuple[str, int]]:
        pair = None
        while pair := self._pairs.nvlist_next_nvpair(ctypes.c_void_p(pairs), ctypes.c_void_p(pair)):
            yield os.fsdecode(self._pairs.nvpair_name(ctypes.c_void_p(pair))), pair

    def _number(self, pair: int) -> int:
        number = ctypes.c_uint64()
        if self._pairs.nvpair_value_uint64(ctypes.c_void_p(pair), ctypes.byref(number)):
            raise Unreadable("a number")
        return number.value

    def _properties(self, pairs: int | None) -> dict[str, tuple[Value, str]]:
        """Return value and source of each property that has a source."""
        if not pairs:
            raise Unreadable("properties")
        found: dict[str, tuple[Value, str]] = {}
        for name, pair in self._each(pairs):
            inside = ctypes.c_void_p()
            if self._pairs.nvpair_value_nvlist(ctypes.c_void_p(pair), ctypes.byref(inside)):
                raise Unreadable(name)
            source = self._text(inside, _SOURCE)
            if source is not None:
                found[name] = (self._value(inside), source)
        return found

    def _value(self, inside: ctypes.c_void_p) -> Value:
        number = ctypes.c_uint64()
        if not self._pairs.nvlist_lookup_uint64(inside, _VALUE, ctypes.byref(number)):
            return number.value
        text = self._text(inside, _VALUE)
        if text is None:
            raise Unreadable("a value")
        return text

    def _text(self, inside: ctypes.c_void_p, key: bytes) -> str | None:
        text = ctypes.c_char_p()
        if self._pairs.nvlist_lookup_string(inside, key, ctypes.byref(text)) or text.value is None:
            return None
        return os.fsdecode(text.value)


class _Opened:
    """A dataset or snapshot while it is open, as the library's own pointer."""

    def __init__(self, zfs: ctypes.CDLL, handle: int, name: str) -> None:
        self._zfs = zfs
        self._one: int | None = zfs.zfs_open(ctypes.c_void_p(handle), os.fsencode(name), _ANY)
        self._name = name

    def __enter__(self) -> ctypes.c_void_p:
        if not self._one:
            raise Unreadable(self._name)
        return ctypes.c_void_p(self._one)

    def __exit__(self, *ended: object) -> None:
        if self._one:
            self._zfs.zfs_close(ctypes.c_void_p(self._one))


def _first(names: tuple[str, ...]) -> ctypes.CDLL:
    for name in names:
        try:
            return ctypes.CDLL(name, use_errno=True)
        except OSError:
            continue
    raise OSError("no such library")
