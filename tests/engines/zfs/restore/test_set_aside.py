"""Datasets that a run set aside at the copy do not come back with all the rest: each is a former copy of what does, and told by name."""

import shlex
from dataclasses import replace

import pytest

from orchestrator.domain.plan import Plan
from orchestrator.engines.zfs.options import options_of
from orchestrator.engines.zfs.restore import plan as returning
from orchestrator.engines.zfs.restore.plan import leave_aside, partial_points
from tests.engines.zfs.model_run import requested
from tests.engines.zfs.restore.builders import COPY, ROOT, forward, way_back

ASIDE = "x_aside_2026-03-04T050607Z"


def test_it_is_left_with_all_below_it_and_the_command_brings_it_back() -> None:
    way = way_back(forward("a", below=("x",)))
    for name in (ASIDE, f"{ASIDE}/kid", f"{ASIDE}/{ASIDE}", f"{ASIDE}er"):
        way.source.create(f"{COPY}/{name}")
        way.source.snapshot(f"{COPY}/{name}", "a")
    world, aside = leave_aside(way.survey(), way.job)
    assert (sorted(world.source.datasets), aside) == (["", "x", f"{ASIDE}er"], (ASIDE,))
    decided = returning.plan(replace(way.seen(), world=world, aside=aside), requested()).decision
    assert isinstance(decided, Plan)
    assert not any(ASIDE in str(step.work) and f"{ASIDE}er" not in str(step.work) for step in decided.steps)
    assert [line for line in decided.warnings if "set aside" in line] == [
        (
            f"{COPY}/{ASIDE} was set aside by a run, and does not come back; to bring it back, too: poolferry restore run photos "
            f"--path {ASIDE} --to {ROOT}/{ASIDE}"
        )
    ]
    below = replace(way.seen(), world=world, aside=(f"b c/{ASIDE}",), below="sub")
    told = returning.plan(below, requested()).decision
    assert isinstance(told, Plan)
    assert told.warnings[-1].endswith(shlex.join(("--path", f"sub/b c/{ASIDE}", "--to", f"{ROOT}/b c/{ASIDE}")))
    many = returning.plan(replace(below, aside=(ASIDE,) * 7), requested()).decision
    assert isinstance(many, Plan)
    assert many.warnings[-1] == f"and 2 more that runs set aside: `zfs list -r {COPY}` there shows them"


@pytest.mark.parametrize("sent", [True, False])
def test_where_the_source_sends_its_own_all_comes_back(sent: bool) -> None:
    way = way_back(forward("a"))
    way.source.create(f"{COPY}/{ASIDE}")
    way.source.snapshot(f"{COPY}/{ASIDE}", "a")
    job = replace(way.job, options=replace(options_of(way.job), set_aside=sent))
    world, aside = leave_aside(way.survey(), job)
    assert (ASIDE in world.source.datasets, aside) == (sent, () if sent else (ASIDE,))


def test_no_point_lacks_it() -> None:
    """It got no newer one, and each later point of the rest passed for a partial one."""
    way = way_back(forward("a"))
    for name in (ASIDE, f"{ASIDE}/kid"):
        way.source.create(f"{COPY}/{name}")
        way.source.snapshot(f"{COPY}/{name}", "a")
    way.source.snapshot(COPY, "c")
    copy = way.survey().source
    named = {name.replace("_aside_", "_"): one for name, one in copy.datasets.items()}
    assert partial_points(replace(copy, datasets=named), None) != {}
    assert partial_points(copy, None) == {}
