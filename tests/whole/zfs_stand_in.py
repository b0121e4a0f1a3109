"""A stand-in for zfs and zpool, for what is not theirs: logins, requests and processes of a run. It keeps names, guids and holds, no data."""

import itertools
import os
import re
import socket
import stat
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.gate.streams import begin, end

# It starts in a millisecond or two; within a gate it may open no file, so all is kept by the test, behind a socket.
_PROGRAM = """#!/usr/bin/perl
my ($head, $piece) = ('', '');
if ($ARGV[0] =~ /^(receive|program)$/) { while (sysread STDIN, $piece, 65536) { $head .= $piece if length $head < 65536 } }
socket my $server, 1, 1, 0 or die $!;
connect $server, pack 'S a108', 1, '%s' or die $!;
my ($said, $answer) = (join("\\0", $0, @ARGV), '');
syswrite $server, pack('N/a N/a', $said, $head);
while (sysread $server, $piece, 65536) { $answer .= $piece }
my ($status, $errors, $output) = unpack 'N N/a N/a', $answer;
syswrite STDERR, $errors if length $errors;
for (my $at = 0; $at < length $output;) { $at += syswrite(STDOUT, $output, 65536, $at) || exit 1 }
exit $status;
"""
_PROPERTIES = {
    "type": "filesystem", "encryption": "off", "used": "50000", "available": str(1 << 40), "checksum": "on", "copies": "1",
    "dedup": "off", "sync": "standard", "zoned": "off", "written": "0", "mounted": "no", "readonly": "off", "canmount": "on",
    "compression": "off", "creation": "1772600767", "userrefs": "0", "mountpoint": "none", "referenced": "50000", "logicalused": "50000",
}  # fmt: skip
Said = tuple[int, str, bytes]
_VALUED = "otsSd"  # options of `list` and `get` with a value


class ZfsStandIn:
    """Pools of names. `programs`: the folder with zfs and zpool; `asked`: the words of each call."""

    def __init__(self, folder: Path, *pools: str, size: int = 50_000) -> None:
        self.programs, self.asked, self._size = folder / "programs", list[tuple[str, ...]](), size
        self._guids = itertools.count(1000)
        self._datasets: dict[str, dict[str, str]] = {}
        self._snapshots: dict[str, dict[str, str]] = {}
        self.holds: set[tuple[str, str]] = set()
        for pool in pools:
            self.create(pool)
        self.programs.mkdir(parents=True)
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(folder / "socket"))
        self._server.listen(64)
        for name in ("zfs", "zpool"):
            program = self.programs / name
            program.write_text(_PROGRAM % (folder / "socket"))
            program.chmod(0o755)
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Answers nobody any more."""
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def create(self, *names: str) -> None:
        """New datasets."""
        for name in names:
            self._datasets[name] = self._new()

    def snapshot(self, name: str, *datasets: str) -> None:
        """A snapshot of this name of each of the datasets."""
        for dataset in datasets:
            self._snapshots[f"{dataset}@{name}"] = self._new()

    def snapshots(self, dataset: str) -> list[str]:
        """The snapshots of a dataset, the oldest first; a bookmark's sign is # in place of @."""
        return [name for name in self._snapshots if name.partition("@")[0] == dataset]

    def _new(self) -> dict[str, str]:
        number = str(next(self._guids))
        return {"guid": number, "createtxg": number, "creation": str(int(time.time()))}

    def _serve(self) -> None:
        while True:
            try:
                asker = self._server.accept()[0]
            except OSError:
                return
            with asker, asker.makefile("rb") as said:
                words, head = (said.read(struct.unpack(">I", said.read(4))[0]) for _ in range(2))
                program, *rest = os.fsdecode(words).split("\0")
                name = os.path.basename(program)
                self.asked.append((name, *rest))
                try:
                    status, errors, output = self._answer(name, rest, head)
                except (
                    LookupError,
                    ValueError,
                    struct.error,
                ) as error:  # what it was asked for is no request of ours, and the test fails
                    status, errors, output = 3, f"the stand-in failed at {rest}: {error!r}\n", b""
                asker.sendall(
                    struct.pack(">II", status, len(errors)) + errors.encode() + struct.pack(">I", len(output)) + output
                )

    def _answer(self, program: str, words: list[str], head: bytes) -> Said:
        if program == "zpool":
            return (
                self._pool(words)
                if words[:1] in (["list"], ["get"])
                else (2, f"the stand-in knows nothing of {words}\n", b"")
            )
        match words:
            case ["version"]:
                return 0, "", b"zfs-2.3.9-1\n"
            case ["list" | "get" as verb, *rest]:
                return self._table(verb, rest)
            case ["hold" | "release" as verb, tag, *names]:
                both = {(tag, name) for name in names}
                self.holds = self.holds | both if verb == "hold" else self.holds - both
            case ["holds", _, *names]:
                held = sorted((name, tag) for tag, name in self.holds if name in names)
                return 0, "", "".join(f"{name}\t{tag}\t1772600767\n" for name, tag in held).encode()
            case ["program", *rest]:
                names = rest[rest.index("-") + 1 :]
                for dataset, snapshot, mark in zip(names[::3], names[1::3], names[2::3], strict=True):
                    self._snapshots.setdefault(
                        f"{dataset}#{mark}", dict(self._snapshots[f"{dataset}@{snapshot.removeprefix('@')}"])
                    )
            case ["create", *rest, name]:
                self.create(name)
                self._datasets[name] |= _given(rest)
            case ["destroy", *_, name]:
                self._snapshots.pop(name, None)
            case ["send", flags, *rest]:
                sizes = f"size\t{self._size}\n"
                return (
                    (0, "", sizes.encode())
                    if "n" in flags
                    else (0, sizes if "P" in flags else "", self._stream(rest[-1]))
                )
            case ["receive", *rest]:
                return self._receive(rest, head)
            case _:
                return 2, f"the stand-in knows nothing of {words}\n", b""
        return 0, "", b""

    def _stream(self, snapshot: str) -> bytes:
        named = begin(name=snapshot)
        facts = struct.pack("<Q", int(self._snapshots[snapshot]["guid"]))
        return named[:40] + facts + named[48:] + bytes(self._size - 2 * len(named)) + end()

    def _receive(self, words: list[str], head: bytes) -> Said:
        dataset = words[-1].partition("@")[0]
        snapshot = head[56:312].split(b"\0")[0].decode().partition("@")[2]
        guid = str(struct.unpack("<Q", head[40:48])[0])
        self._datasets.setdefault(dataset, self._new())
        self._datasets[dataset] |= _given(words)
        self._snapshots[f"{dataset}@{snapshot}"] = self._new() | {"guid": guid}
        return 0, "", b""

    def _pool(self, words: list[str]) -> Said:
        pools = [name for name in self._datasets if "/" not in name]
        columns = words[words.index("-o") + 1].split(",")
        named = [name for name in words[words.index("-o") + 2 :] if name in self._datasets] or pools
        if words[0] == "get":
            rows = [["property", "value"][column == "value"] for column in columns]
            return 0, "", ("\t".join("0" if each == "value" else words[-2] for each in rows) + "\n").encode()
        facts = {pool: {"name": pool, "guid": self._datasets[pool]["guid"], "health": "ONLINE"} for pool in named}
        return (
            0,
            "",
            "".join("\t".join(facts[pool].get(each, "-") for each in columns) + "\n" for pool in named).encode(),
        )

    def _table(self, verb: str, words: list[str]) -> Said:
        """Answer `list` and `get` of datasets, snapshots and bookmarks."""
        options, names = _options(words)
        properties = names.pop(0).split(",") if verb == "get" else options["o"].split(",")
        rows, errors = [], ""
        for name in names or [each for each in self._datasets if "/" not in each]:
            if name not in self._datasets and name not in self._snapshots:
                errors += f"cannot open '{name}': dataset does not exist\n"
                continue
            rows += list(self._below(name, options))
        if verb == "list":
            lines = ["\t".join(self._value(name, each) for each in properties) for name in rows]
        else:
            lines = ["\t".join(row) for name in rows for each in properties for row in self._got(name, each, options)]
        return int(bool(errors)), errors, "".join(f"{line}\n" for line in lines).encode()

    def _below(self, name: str, options: dict[str, str]) -> Iterator[str]:
        depth = 99 if "r" in options else int(options.get("d", 0))
        kinds = options.get("t", "filesystem,volume" if name in self._datasets else "snapshot,bookmark").split(",")
        below = [each for each in self._datasets if each == name or each.startswith(f"{name}/")]
        for dataset in below or [name]:
            if dataset.count("/") - name.count("/") <= depth and ("filesystem" in kinds or "all" in kinds) and below:
                yield dataset
        for each in self._snapshots:
            dataset, kind = re.split("[@#]", each)[0], "snapshot" if "@" in each else "bookmark"
            deep = dataset.count("/") - name.count("/") < depth and dataset in below
            if (each == name or deep) and (kind in kinds or "all" in kinds):
                yield each

    def _got(self, name: str, wanted: str, options: dict[str, str]) -> Iterator[list[str]]:
        value = self._value(name, wanted)
        own = wanted in self._datasets.get(name, {}) and wanted not in ("guid", "createtxg", "creation")
        source = "local" if own else "-"
        columns = options.get("o", "name,property,value,source").split(",")
        if options.get("s") == "local" and not own:
            return
        yield [{"name": name, "property": wanted, "value": value, "source": source}.get(each, "-") for each in columns]

    def _value(self, name: str, wanted: str) -> str:
        if wanted == "name":
            return name
        if wanted == "prevsnap":
            made = [each for each in self.snapshots(name) if "@" in each]
            return made[-1] if made else "-"
        known = self._datasets.get(name) or self._snapshots.get(name) or {}
        if wanted == "userrefs":
            return str(sum(held == name for _, held in self.holds))
        if wanted == "type" and name in self._snapshots:
            return "snapshot" if "@" in name else "bookmark"
        return known.get(wanted, _PROPERTIES.get(wanted, "-"))


def _given(words: list[str]) -> dict[str, str]:
    given = (words[at + 1].partition("=") for at, word in enumerate(words) if word == "-o")
    return {name: value for name, _, value in given}


def _options(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """The options of `list` and `get`, and what follows them; a later one of a letter counts."""
    options, rest = dict[str, str](), list(words)
    while rest and rest[0].startswith("-"):
        letters = rest.pop(0)[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            options[letter] = (letters or rest.pop(0)) if letter in _VALUED else ""
            letters = "" if letter in _VALUED else letters
    return options, rest


def in_place(programs: Path) -> tuple[str, ...]:
    """Words that start a program in mounts of its own, in which these programs are the system's: a gate looks for zfs nowhere else."""
    assert stat.S_ISDIR(programs.stat().st_mode)
    return ("unshare", "-m", "sh", "-c", 'mount --bind "$0" /usr/local/sbin && exec "$@"', str(programs))
