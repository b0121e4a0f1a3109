"""A place that shows no copy any more, while the copy lies elsewhere by its guid: each look there says where, and how it goes on."""

from dataclasses import replace

import pytest

from orchestrator.domain.errors import TargetUnable
from orchestrator.domain.place import Location
from orchestrator.engines.zfs import ENGINE
from orchestrator.process.pipeline import PipelineResult
from orchestrator.process.scripted import ScriptedExecutor, scripted_result
from orchestrator.runner.last_look import look_at_place
from tests.engines.zfs.sides import COPY, job

NONE = scripted_result(b"")
AWAY = scripted_result(exits=(1,), words="cannot open 'vault': no such pool")


def look(points: PipelineResult, found: bytes, *, known: str = "9", held: bool = True) -> str:
    """Return the words of the look, with its hint."""
    reader = ScriptedExecutor(
        [
            (lambda asked: "find-datasets.sh" in asked.stages[0].argv, scripted_result(found)),
            (lambda _: True, points),
        ]
    )
    made = job()
    there = replace(made, target=replace(made.target, location=Location(path=COPY.path)))
    memory = {f"copy identity at {made.target.name}": known}
    with pytest.raises(TargetUnable) as raised:
        look_at_place(there, ENGINE, reader, held=lambda: held, remembered=lambda: memory)
    return f"{raised.value.why}: {raised.value.hint}"


def test_a_copy_in_the_same_pool_is_named_with_the_command() -> None:
    above, name = COPY.path.rpartition("/")[::2]
    told = look(NONE, f"=above\t{above}\n5\t{above}/old\n=end\n".encode())
    assert told.startswith(
        f'the copy {COPY.path} is called {above}/old now, by its guid: to go on there: write name = "old" into [zfs]'
    )
    assert f"zfs rename {above}/old {above}/{name}" in told
    assert "--aside" not in told, "a look sends nothing"


def test_a_copy_whose_pool_has_another_name_is_named_with_the_commands() -> None:
    told = look(AWAY, b"5\tattic/copies/photos\n=end\n")
    assert "is not imported, and the copy is attic/copies/photos now, by its guid" in told
    assert "zpool export attic && zpool import attic vault" in told


@pytest.mark.parametrize(("known", "found"), [("", b"5\tattic/x\n=end\n"), ("9", b"=end\n"), ("9", b"")])
def test_one_that_is_found_nowhere_is_away_or_gone(known: str, found: bytes) -> None:
    assert "`zpool import vault`" in look(AWAY, found, known=known)
    assert "was destroyed, or has another name" in look(NONE, found, known=known)
