"""Entries that a target refuses as it refused another: files behind the limit of its filesystem, all in one attempt."""

import errno
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Pipeline
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.rsync.left_out import TOO_LARGE
from orchestrator.engines.rsync.options import RsyncOptions
from orchestrator.engines.rsync.refused_alike import find_alike
from orchestrator.engines.rsync.script_commands import list_large_command, size_limit_command
from orchestrator.process.executor import Reader
from orchestrator.process.scripted import ScriptedExecutor, scripted_result
from tests.engines.rsync.builders import job


def test_the_limit_is_that_of_the_filesystem(tmp_path: Path) -> None:
    (tmp_path / ".poolferry").mkdir(mode=0o700)
    (tmp_path / ".poolferry/target.json").write_text("{}")
    command = size_limit_command(Location(path=str(tmp_path)))
    limit = int(Reader().read(Pipeline(stages=(command,))).stdout)
    with open(tmp_path / "file", "wb") as file:
        os.truncate(file.fileno(), limit)
        if limit < (1 << 63) - 1:
            with pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
                os.truncate(file.fileno(), limit + 1)
    (tmp_path / ".poolferry/target.json").unlink()
    os.mkfifo(tmp_path / ".poolferry/target.json")
    assert Reader().read(Pipeline(stages=(command,))).stdout == b""


def request(refused: dict[bytes, str], unnamed: int = 0) -> RunRequest:
    return RunRequest(now=datetime.now(UTC), notes="", refused=refused, unnamed=unnamed)


FALLING = {b"hers/%03d" % number: (1 << 40) - (number << 20) for number in range(300)}
LISTED = b"".join(b"%b//%d\t0\t0\t1\t1:1\0" % (path, size) for path, size in FALLING.items())


def found(answer: bytes, *, exit_code: int = 0) -> set[bytes]:
    """Return what is left out after the first was refused, where the target says this of its limit."""
    reader = ScriptedExecutor({
        str(list_large_command(job().tree, one_filesystem=True)): scripted_result(LISTED),
        str(size_limit_command(job().target.location)): scripted_result(answer, exits=(exit_code,)),
    })  # fmt: skip
    told = find_alike(job(), request({b"hers/000": TOO_LARGE}), reader)
    assert set(told.values()) == {TOO_LARGE}
    return set(told)


def test_of_files_whose_sizes_fall_all_are_left_out_that_do_not_fit_and_no_other() -> None:
    limit = FALLING[b"hers/250"]
    assert found(b"%d" % limit) == {path for path, size in FALLING.items() if size > limit}


@pytest.mark.parametrize("answer", [b"", b"much", b"9223372036854775807", b"9" * 40, b"\xff\0"])
def test_without_a_limit_those_are_left_out_that_are_as_large(answer: bytes) -> None:
    assert found(answer) == {b"hers/000"}


def test_without_a_limit_files_whose_sizes_fall_cost_few_attempts_and_are_not_said_to_be_too_large() -> None:
    """Each attempt finds one of them; a run gives up after some that copied nothing, and everybody's copy failed."""
    reader = ScriptedExecutor({
        str(list_large_command(job().tree, one_filesystem=True)): scripted_result(LISTED + b"theirs//9\t0\t2\t1\t1:1\0"),
        str(size_limit_command(job().target.location)): scripted_result(b""),
    })  # fmt: skip
    told = [
        find_alike(job(), request({b"hers/%03d" % number: TOO_LARGE for number in range(met)}), reader)
        for met in (1, 2, 4)
    ]
    assert [len(each) for each in told] == [1, len(FALLING), len(FALLING)]
    assert [path for path, why in told[2].items() if why == TOO_LARGE] == [b"hers/%03d" % number for number in range(4)]
    assert "cannot be asked" in told[1][b"hers/299"]


def test_a_target_that_cannot_be_asked_says_nothing() -> None:
    assert found(b"5", exit_code=1) == {b"hers/000"}


MIB = 1 << 20


def test_who_cuts_a_refused_file_short_leaves_out_nobody_elses(tmp_path: Path) -> None:
    """The size is read after the refusal; all files of 1 MiB would be left out, and said to be too large."""
    for name, owner, size in (
        ("cut", 1234, MIB),
        ("hers", 1234, 2 * MIB),
        ("small", 1234, MIB // 2),
        ("theirs", 1235, 3 * MIB),
        ("own", 0, MIB),
    ):
        (tmp_path / name).touch()
        os.truncate(tmp_path / name, size)
        os.chown(tmp_path / name, owner, -1)
    asked = job(source=Location(path=str(tmp_path)), target=Location(path=str(tmp_path / "none")))
    assert sorted(find_alike(asked, request({b"cut": TOO_LARGE}), Reader())) == [b"cut", b"hers"]
    assert sorted(find_alike(asked, request({b"cut": TOO_LARGE, b"theirs": TOO_LARGE}), Reader())) == [
        b"cut",
        b"hers",
        b"theirs",
    ]
    assert sorted(find_alike(asked, request({b"small": TOO_LARGE}), Reader())) == [b"small"]


def test_a_link_that_cannot_be_named_leaves_out_nobody_elses(tmp_path: Path) -> None:
    """The longest text is refused in any case; links of others may only have long paths."""
    deep, folder = "/".join(["d" * 200] * 12), os.open(tmp_path, os.O_RDONLY)
    for part in deep.split("/"):
        os.mkdir(part, dir_fd=folder)
        folder = os.open(part, os.O_RDONLY, dir_fd=folder)
    for owner, size in (
        (1234, 3900),
        (1234, 1100),
        (1235, 1000),
        *((2000 + number, 2000 + number) for number in range(9)),
    ):
        name = f"{owner}-{size}"
        os.symlink("x" * size, name, dir_fd=folder)
        os.chown(name, owner, -1, dir_fd=folder, follow_symlinks=False)
    asked = job(source=Location(path=str(tmp_path)), target=Location(path=str(tmp_path / "none")))

    def named(times: int) -> set[str]:
        return {os.fsdecode(path).rpartition("/")[2] for path in find_alike(asked, request({}, times), Reader())}

    assert named(0) == set()
    assert named(1) == {"1234-3900", "1234-1100"}
    assert len(named(2)) == 9
    assert "1235-1000" not in named(2)
    assert len(named(3)) == 12
    hidden = replace(asked, options=RsyncOptions(excludes=("1234-[[:digit:]]*",)))
    assert {os.fsdecode(path)[-9:] for path in find_alike(hidden, request({}, 1), Reader())} == {"2008-2008"}
