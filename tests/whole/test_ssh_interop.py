"""Two sides whose rsync differ by years: what each can do is asked, and only what both understand is used."""

import os
import subprocess
from pathlib import Path

import pytest

from orchestrator.engines.rsync.commands import choose_compression
from orchestrator.engines.rsync.model import RsyncProgram
from orchestrator.engines.rsync.parse import parse_program
from tests.whole.damage import rot
from tests.whole.house import House, facts
from tests.whole.sshd import Sshd

_OLD = b"""rsync  version %s  protocol version %s
Copyright (C) 1996-%s by Andrew Tridgell, Wayne Davison, and others.
Web site: http://rsync.samba.org/
Capabilities:
    64-bit files, 64-bit inums, 64-bit timestamps, 64-bit long ints,
    socketpairs, hardlinks, symlinks, IPv6, batchfiles, inplace,
    append, ACLs, xattrs, iconv, symtimes%s

rsync comes with ABSOLUTELY NO WARRANTY.  This is free software, and you
"""
V306 = _OLD % (b"3.0.6", b"30", b"2009", b"")
V311 = _OLD % (b"3.1.1", b"31", b"2014", b", prealloc")
V313 = _OLD % (b"3.1.3", b"31", b"2018", b", prealloc")
_MIDDLE = b"""rsync  version 3.2.3  protocol version 31
Copyright (C) 1996-2020 by Andrew Tridgell, Wayne Davison, and others.
Optimizations:
    SIMD, asm, openssl-crypto
Checksum list:
    %s
Compress list:
    zstd lz4 zlibx zlib none

rsync comes with ABSOLUTELY NO WARRANTY.  This is free software, and you
"""
V323 = _MIDDLE % b"xxh128 xxh3 xxh64 (xxhash) md5 md4 none"
V323_OLD_XXHASH = _MIDDLE % b"xxh64 (xxhash) md5 md4 none"
JSON = b"""{
  "program": "rsync", "version": "%s", "protocol": "%s",
  "checksum_list": ["xxh128", "xxh3", "xxh64", "md5", "md4", "sha1", "none"],
  "compress_list": ["zstd", "lz4", "zlibx", "zlib", "none"],
  "license": "GPLv3", "caveat": "rsync comes with ABSOLUTELY NO WARRANTY"
}
"""
V327, V350 = JSON % (b"3.2.7", b"31.0"), JSON % (b"3.5.0", b"32.0")


def program(text: bytes) -> RsyncProgram:
    """Return what a text tells."""
    parsed = parse_program(text)
    assert parsed is not None
    return parsed


@pytest.mark.parametrize(
    ("text", "version", "protocol", "xxh128", "zstd"),
    [
        (V306, (3, 0, 6), 30, False, False), (V311, (3, 1, 1), 31, False, False), (V313, (3, 1, 3), 31, False, False),
        (V323, (3, 2, 3), 31, True, True), (V323_OLD_XXHASH, (3, 2, 3), 31, False, True),
        (V327, (3, 2, 7), 31, True, True), (V350, (3, 5, 0), 32, True, True),
        (b"rsync  version 3.1.0dev  protocol version 31.PR14\n", (3, 1, 0), 31, False, False),
        (b"rsync  version v3.2.4pre1  protocol version 31\n", (3, 2, 4), 31, False, False),
        (b"Welcome!\n" + V327, (3, 2, 7), 31, True, True),
    ],
)  # fmt: skip
def test_what_a_version_text_tells(
    text: bytes, version: tuple[int, ...], protocol: int, xxh128: bool, zstd: bool
) -> None:
    parsed = program(text)
    assert (parsed.version, parsed.protocol) == (version, protocol)
    assert ("xxh128" in parsed.checksums, "zstd" in parsed.compressions) == (xxh128, zstd)


@pytest.mark.parametrize("text", [b"", b"bash: rsync: command not found\n", b"openrsync: protocol version 29\n", b"{}"])
def test_what_is_no_rsync(text: bytes) -> None:
    assert parse_program(text) is None


def test_this_machine_s_own() -> None:
    told = subprocess.run(["rsync", "--version", "--version"], capture_output=True, check=True).stdout
    assert program(told).at_least(3, 2)


LZ4, ZSTD, ZLIBX = "--compress-choice=lz4", "--compress-choice=zstd", "--compress-choice=zlibx"


@pytest.mark.parametrize(
    ("setting", "one", "other", "flags"),
    [
        ("auto", V350, V350, ["--compress", LZ4]),
        ("auto", V350, V323, ["--compress", LZ4]),
        ("zstd", V350, V327, ["--compress", ZSTD, "--compress-level=1"]),
        ("zlib", V350, V327, ["--compress", ZLIBX]),
        ("none", V350, V350, []),
        ("auto", V350, V313, ["--new-compress"]),
        ("zlib", V350, V313, ["--new-compress"]),
        ("zstd", V350, V313, []),
        ("lz4", V350, V311, []),
        ("auto", V350, V311, []),  # built with its own zlib or another: nobody can tell, so none
        ("auto", V350, V306, []),
        ("zlib", V350, V306, []),
        ("auto", V311, V306, []),
    ],
)
def test_compression_that_both_sides_understand(setting: str, one: bytes, other: bytes, flags: list[str]) -> None:
    assert choose_compression(setting, program(one), program(other)) == flags
    assert choose_compression(setting, program(other), program(one)) == flags


@pytest.fixture
def host_of_then(tmp_path: Path) -> Sshd:
    """A host whose rsync says it is 3.1.3, and knows no digest but MD5, as that one did."""
    (tmp_path / "version").write_bytes(V313)
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "rsync").write_text(
        f'#!/bin/sh\n[ "$1" != --version ] || exec cat {tmp_path}/version\n'
        'case " $* " in *xxh128*|*--compress-choice*) echo "rsync: unknown option" >&2; exit 1;; esac\n'
        'RSYNC_CHECKSUM_LIST="md5 & md5" exec /usr/bin/rsync "$@"\n'
    )
    (programs / "rsync").chmod(0o755)
    (tmp_path / "force").write_text(
        f'#!/bin/sh\nPATH={programs}:$PATH; export PATH\nexec sh -c "$SSH_ORIGINAL_COMMAND"\n'
    )
    (tmp_path / "force").chmod(0o755)
    return Sshd(tmp_path / "old", more=f"ForceCommand {tmp_path}/force")


@pytest.mark.slow
def test_pull_from_a_host_of_then(house: House, host_of_then: Sshd) -> None:
    """Its digests are others than ours: what is not known is read here, and the point is verified all the same."""
    house.write("one", "the first")
    house.write("two", os.urandom(100_000))
    house.job(source=host_of_then.url(house.source), pipe=host_of_then.pipe)
    host_of_then.start()
    try:
        assert house.run().outcome == "done"
        house.write("three", "later")
        assert house.run().outcome == "done"
    finally:
        host_of_then.stop()
    assert facts(house.point()) == facts(house.source)
    read = house.call("verify", "photos")
    assert (read.code, read["reading"]["counts"]) == (0, {}), read
    rot(house.point() / "one")
    assert house.call("verify", "photos").code == 1


@pytest.mark.slow
def test_push_to_a_host_of_then(house: House, host_of_then: Sshd) -> None:
    """It cannot make xxh128, which is said before anything is written; with sha256 all goes well."""
    house.write("one", "the first")
    house.job(target=host_of_then.url(house.target), pipe=host_of_then.pipe)
    host_of_then.start()
    try:
        refused = house.run()
        assert (refused.code, refused.outcome) == (3, "refused"), refused
        assert 'digest = "sha256"' in refused["hint"]
        assert not house.target.exists()
        house.job(target=host_of_then.url(house.target), pipe=host_of_then.pipe, verify={"digest": "sha256"})
        assert house.run().outcome == "done"
        assert house.call("verify", "photos").code == 0
        rot(house.point() / "one")
        assert house.call("verify", "photos").code == 1
        assert house.run().outcome == "done"
        assert house.call("verify", "photos").code == 0
        checked = house.call("check", "--system")
    finally:
        host_of_then.stop()
    advice = [each["text"] for each in checked["jobs"][0]["advice"]]
    assert any("3.1.3" in text and "CVE" in text for text in advice), advice
    assert facts(house.point()) == facts(house.source)
