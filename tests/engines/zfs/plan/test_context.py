"""The context of one plan: the command that a person says to do the same again."""

from datetime import UTC, datetime

from orchestrator.domain.fast_dataclass import replace
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.zfs.plan.context import PlanContext
from tests.engines.zfs.sides import SOURCE, job, side, world


def test_the_same_command_is_a_run_or_a_restore() -> None:
    requested = RunRequest(now=datetime(2026, 3, 6, tzinfo=UTC), notes="/notes")
    seen = world(side(SOURCE), side(SOURCE))
    assert PlanContext(job(), seen, requested).command == "poolferry run photos"
    assert (
        PlanContext(job(), replace(seen, returning="vault/copies"), requested).command
        == f"poolferry restore run photos --to {SOURCE}"
    )
