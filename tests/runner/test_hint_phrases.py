"""Each kind of run says a hint in the words of its own command: tables of what programs say know none."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.app.restore import RestoreCommand, restore_words
from orchestrator.domain.errors import Evidence, OutsideError
from orchestrator.domain.place import Location
from orchestrator.domain.run import Outcome, RunType
from orchestrator.engines.rsync import errors as of_rsync
from orchestrator.engines.zfs.errors.messages import ERROR_RULES
from orchestrator.history.store import History, open_history
from orchestrator.process.executor import Writer
from orchestrator.runner.drill.drill import drill_job
from orchestrator.runner.drill.evidence import DrillRequest
from orchestrator.runner.restore.request import RestoreOptions
from orchestrator.runner.restore.restore import run_restore
from orchestrator.runner.run_recorder import begin_run
from orchestrator.runner.verify.verify import verify_job
from tests.runner.journals import journal

EVIDENCE = Evidence(lines=("zfs receive tank/back",), exits=(1,), last_output=("cannot receive",))
TABLES = (*ERROR_RULES, *of_rsync._TABLE)
TO = Location(path="tank/back")


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with open_history(str(tmp_path / "history.sqlite")) as opened:
        yield opened


def hints(history: History, tmp_path: Path, hint: str) -> dict[str, str]:
    """Return what each kind of run says in place of this hint, by its command."""

    def fails(_: object) -> Writer:
        raise OutsideError("why", evidence=EVIDENCE, hint=hint)

    begun = journal(history, tmp_path)
    job, tools = begun.job, replace(begun.tools, writer=fails)
    return {
        "poolferry restore run photos --to tank/back": run_restore(job, tools, RestoreOptions(to=TO)).hint,
        "poolferry restore pool tank": run_restore(job, tools, RestoreOptions(to=TO, typed="poolferry restore pool tank")).hint,
        "poolferry drill photos --whole": drill_job(job, tools, DrillRequest(whole=True)).report.hint,
        "poolferry verify photos --content": verify_job(job, tools, content=True).report.hint,
        "say the same command again": begin_run(job, tools, "pins", RunType.PINS).ended(Outcome.FAILED, "why", hint=hint).hint,
    }  # fmt: skip


def test_no_hint_of_a_table_sends_another_command_to_a_run(history: History, tmp_path: Path) -> None:
    """Of a restore, a drill and a verification: `poolferry run JOB --aside` sets the copy aside from which they read."""
    every = "\n".join(dict.fromkeys(row.hint for row in TABLES))
    assert "poolferry run JOB" in every
    assert "next attempt" in every
    for typed, said in hints(history, tmp_path, every).items():
        for hint in said.split("\n"):
            assert not [phrase for phrase in ("poolferry run", "JOB", "next attempt") if phrase in hint], (typed, hint)
            assert "restore" in typed or "what arrived" not in hint, (typed, hint)


def test_what_begins_again_says_its_own_command(history: History, tmp_path: Path) -> None:
    row = next(
        row
        for row in ERROR_RULES
        if row.hint == "start that copy from scratch beside the old one: poolferry run JOB --aside"
    )
    said = hints(history, tmp_path, row.hint)
    for typed, hint in said.items():
        assert typed in hint, hint
    restored = said["poolferry restore run photos --to tank/back"]
    assert "zfs rename tank/back tank/back_doubtful, then poolferry restore run photos --to tank/back" in restored
    assert journal(history, tmp_path).ended(Outcome.FAILED, "why", hint=row.hint).hint == row.hint.replace(
        "JOB", "photos"
    )


def test_a_restore_is_said_again_with_all_that_was_typed() -> None:
    asked = RestoreCommand(origin="ssh://box/backup/photos", to="tank/a b", lost_keys=("tank/x",), content=True)
    assert restore_words(asked) == (
        "poolferry restore run --from ssh://box/backup/photos --to 'tank/a b' --lost-key tank/x --content"
    )
