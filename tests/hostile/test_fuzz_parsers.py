"""Answers of programs and files of others are data: whatever they hold, a look ends in a value or in one of our errors, soon.

Each target below is a door as the program uses it: the look itself, with an executor that answers every question with the same bytes.
They are real answers with random damage, and random bytes. `make test-long` tries 20,000 for each, all other runs 60.
"""

import gzip
from pathlib import Path

import pytest

from orchestrator.domain.answers import understand
from orchestrator.domain.errors import OrchestratorError
from orchestrator.verify.manifest import read_manifest, read_names
from tests.hostile.answers import COMMAND, LINE, LINK, TARGETS, Target, manifest
from tests.hostile.fuzz import MANY, fuzz, hear
from tests.hostile.notes_and_streams import MORE, a_history, read_files, read_history

FEW = 60
DOORS = TARGETS + MORE


@pytest.mark.parametrize("target", DOORS, ids=str)
def test_no_answer_is_too_strange(target: Target) -> None:
    for sample in target.samples:
        hear(target, sample)
    fuzz(target, FEW)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("target", DOORS, ids=str)
def test_no_answer_of_very_many_is_too_strange(target: Target) -> None:
    fuzz(target, MANY)


DEEP = (
    b"[" * 200_000,
    b'{"a":' * 200_000,
    b"9" * 200_000,
    b"\n" * 200_000,
    b"\0" * 200_000,
    b"a@" * 100_000,
    b"1." * 100_000,
    b" " * 200_000,
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "floods"),
    [
        *((door, (DEEP[at % len(DEEP)], DEEP[(at + 3) % len(DEEP)])) for at, door in enumerate(DOORS)),
        *(pytest.param(door, DEEP, marks=pytest.mark.long) for door in DOORS),
    ],
    ids=[*(f"{door} two" for door in DOORS), *(f"{door} all" for door in DOORS)],
)
@pytest.mark.sample(6)
def test_a_flood_of_one_word_ends_soon(target: Target, floods: tuple[bytes, ...]) -> None:
    for said in floods:
        hear(target, said)
        hear(target, target.samples[0] + said)
        hear(target, said + target.samples[0])
        at = len(target.samples[0]) // 2
        hear(target, target.samples[0][:at] + said + target.samples[0][at:])


@pytest.mark.parametrize(
    "examples", [FEW, pytest.param(MANY, marks=(pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(3600)))]
)
def test_no_manifest_is_too_strange(tmp_path: Path, examples: int) -> None:
    path, whole = tmp_path / "m.gz", manifest(LINE + LINK)

    def read(said: bytes) -> object:
        path.write_bytes(said if said[:2] == b"\x1f\x8b" else gzip.compress(said, 1))
        return read_files(path)

    fuzz(Target("manifest", read, (whole, gzip.compress(whole))), examples)


@pytest.mark.parametrize(
    "examples", [FEW, pytest.param(MANY // 10, marks=(pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(3600)))]
)
def test_no_history_from_elsewhere_is_too_strange(tmp_path: Path, examples: int) -> None:
    path = tmp_path / "history.sqlite"

    def read(said: bytes) -> object:
        for old in tmp_path.glob("history.sqlite*"):
            old.unlink()
        path.write_bytes(said)
        return read_history(path)

    fuzz(Target("history", read, (a_history(tmp_path),)), examples)


@pytest.mark.parametrize("path", [b"..", b"../a", b"a/../b", b"a/..", b"/a", b"a//b", b"a/", b".", b"./a", b"a/./b"])
def test_a_manifest_that_leads_elsewhere_is_damaged(tmp_path: Path, path: bytes) -> None:
    file = tmp_path / "m.gz"
    file.write_bytes(gzip.compress(manifest(LINE.replace(b"a/b c.txt", path))))
    with pytest.raises(OrchestratorError, match=r"damaged|elsewhere"):
        list(read_manifest(str(file))[1])
    with pytest.raises(OrchestratorError, match=r"damaged|elsewhere"):
        list(read_names(str(file)))


def test_a_name_that_stands_twice_is_damage(tmp_path: Path) -> None:
    file = tmp_path / "m.gz"
    file.write_bytes(gzip.compress(manifest(LINE * 2)))
    with pytest.raises(OrchestratorError, match="twice"):
        list(read_manifest(str(file))[1])


def test_names_that_only_look_like_it_stay(tmp_path: Path) -> None:
    file = tmp_path / "m.gz"
    names = (b".a", b"...", b"..a/b..", b"a/.b", b"a/..b/c.")
    file.write_bytes(gzip.compress(manifest(b"".join(LINE.replace(b"a/b c.txt", name) for name in sorted(names)))))
    assert {entry.path for entry in read_manifest(str(file))[1]} == set(names)


def test_an_unreadable_answer_names_host_program_and_what_was_said() -> None:
    with pytest.raises(OrchestratorError) as caught:
        understand("zfs", COMMAND, b"\x1b[31m" + "\u202eno".encode() + b"\n" + b"x" * 9999, int)
    why = caught.value.why
    assert why.startswith("what zfs on far answered cannot be read: ")
    assert "\\x1b[31m\\u202eno\\nxxx" in why
    assert len(why) < 700
    assert "poolferry show RUN" in caught.value.hint
