"""Properties of the source that would weaken its copy, or burden the pool of it: kept aside, and said once."""

from dataclasses import replace
from typing import Any

from orchestrator.engines.zfs.model import ActionPlan, ZfsSurvey
from orchestrator.engines.zfs.plan.plan import decide_actions
from orchestrator.engines.zfs.plan.steps import build_steps
from orchestrator.engines.zfs.survey.parse import make_side, parse_survey
from tests.engines.zfs.sides import ASKED, COPY, SOURCE, A, B, dataset, job, side, world
from tests.engines.zfs.survey_text import HEAD, rows

BURDENS = {"checksum": "off", "dedup": "on"}


FREE = side(COPY, above=frozenset({"vault", "vault/copies"}))


def receives(seen: ZfsSurvey, **options: Any) -> tuple[list[str], tuple[str, ...]]:
    decided = decide_actions(job(**options), seen, ASKED)
    assert isinstance(decided, ActionPlan)
    made = build_steps(job(**options), seen, decided, ASKED)
    return [str(step.work) for stage in made for step in stage if step.copies], decided.warnings


def test_they_are_excluded_with_each_send_and_told_with_the_first() -> None:
    burdened = side(SOURCE, dataset("", A, B, burdens=BURDENS))
    (first, second), warnings = receives(world(burdened, FREE))
    assert "-x checksum -x dedup" in first
    assert "-x checksum -x dedup" in second
    (warning,) = warnings
    assert warning.startswith("tank/photos: checksum=off, dedup=on would weaken the copy, or burden its pool")
    (later,), warnings = receives(world(burdened, side(COPY, dataset("", A))))
    assert "-x checksum -x dedup" in later
    assert warnings == ()


def test_without_properties_nothing_is_excluded_or_told() -> None:
    lines, warnings = receives(world(side(SOURCE, dataset("", A, burdens=BURDENS)), FREE), properties=False)
    assert not any("checksum" in line for line in lines)
    assert warnings == ()


def test_a_restore_brings_them_back() -> None:
    seen = replace(world(side(SOURCE, dataset("", A, burdens=BURDENS)), FREE), returning=SOURCE.path)
    lines, warnings = receives(seen)
    assert not any("checksum" in line for line in lines)
    assert warnings == ()


def test_only_values_that_were_set_and_do_harm_count() -> None:
    values = {
        "checksum": "sha512|local", "dedup": "on|received", "copies": "3|inherited from tank", "sync": "disabled|local",
        "zoned": "on|local",
    }  # fmt: skip
    said = f"{HEAD}=datasets\n{rows(SOURCE.path, **values)}=snapshots\n=end\n"
    (found,) = make_side(parse_survey(said.encode().split(b"\n")), SOURCE).datasets.values()
    assert found.burdens == {"dedup": "on", "sync": "disabled", "zoned": "on"}
