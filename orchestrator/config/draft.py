"""One job file, judged by itself: what the rest of the configuration must agree with stays open. Pure."""

from collections.abc import Mapping
from typing import Any

from orchestrator.config.calls import read_hooks
from orchestrator.config.fill import Table, declared, fill, read_keys
from orchestrator.config.models import SECTIONS, WHEN, EngineSection, JobKeys
from orchestrator.config.sheet import Sheet, nearest, one_of, shown
from orchestrator.config.where import as_dataset
from orchestrator.domain.job import Job, Snapshots
from orchestrator.domain.place import Place
from orchestrator.domain.quick import dataclass

Engines = Mapping[str, EngineSection]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A job file as far as it is right. `keys`: the right keys before the first section; `sections`: what follows."""

    name: str
    sheet: Sheet
    engine: EngineSection | None
    keys: Mapping[str, Any]
    sections: Mapping[str, Any]


def read_job(sheet: Sheet, name: str, engines: Engines) -> Draft:
    """The draft of one job; each mistake noted on the way."""
    written = sheet.table.get("engine")
    named = written if isinstance(written, str) else ""
    engine = engines.get(named)
    models = SECTIONS | ({engine.name: engine.options} if engine else {})
    own = {*models, "hooks", *engines, named}
    head = {key: written for key, written in sheet.table.items() if key not in own or key in declared(JobKeys)}
    keys = read_keys(sheet, JobKeys, head, (), lambda key: _home(key, models) or _section(key, head, own))
    if engine and engine.datasets and "source" in keys:
        keys["source"] = as_dataset(keys["source"])
    _judge_engine(sheet, keys, engine, engines)
    _judge_schedule(sheet)
    _judge_target(sheet, engine)
    _judge_sections(sheet, engine)
    sections = {key: _read_section(sheet, key, model, models) for key, model in models.items()}
    _judge_snapshots(sheet, sections, engine)
    hooks = read_hooks(sheet, _table(sheet, "hooks"))
    return Draft(name=name, sheet=sheet, engine=engine, keys=keys, sections=sections | {"hooks": hooks})


def _judge_engine(sheet: Sheet, keys: Mapping[str, Any], engine: EngineSection | None, engines: Engines) -> None:
    if "engine" in keys and not engine:
        sheet.say(("engine",), f"there is no engine {shown(keys['engine'])}", one_of(engines))
    for name in sheet.table.keys() & engines.keys() if engine else ():
        if engine and name != engine.name:
            sheet.say((name,), f'the engine of this job is "{engine.name}"', f"[{engine.name}], or no such section")


def _judge_sections(sheet: Sheet, engine: EngineSection | None) -> None:
    for name in engine.without if engine else ():
        section, _, key = name.partition(".")
        table = sheet.table.get(section)
        if engine and not key and section in sheet.table:
            sheet.say((section,), f"means nothing to the engine {engine.name}", "no such section")
        if engine and key and isinstance(table, dict) and key in table:
            why = "carries no data" if engine.stays else "makes its own connections"
            sheet.say((section, key), f"the engine {engine.name} {why}", "no such key")


def _judge_target(sheet: Sheet, engine: EngineSection | None) -> None:
    if engine and engine.stays and "target" in sheet.table:
        sheet.say(("target",), f"the engine {engine.name} works on the source alone", "no target")
    elif "target" not in sheet.table and not (engine and engine.stays):
        sheet.say(
            ("target",), "is missing", 'where the copies go: the name of a place in targets.toml, such as "backup"'
        )


def _judge_snapshots(sheet: Sheet, sections: dict[str, Any], engine: EngineSection | None) -> None:
    """Why none without a rule: sanoid would keep no snapshot at all."""
    snapshots = sections["snapshots"]
    if "snapshots" not in sheet.table:
        sections["snapshots"] = None
    elif engine and not engine.datasets:
        sheet.say(
            ("snapshots",), f"the engine {engine.name} copies paths", "no such section: only datasets have snapshots"
        )
    elif isinstance(snapshots, Snapshots) and snapshots.nothing:
        sheet.say(("snapshots",), "keeps nothing", "how many stay, such as daily = 14")


def _judge_schedule(sheet: Sheet) -> None:
    """Why the later ones are wrong: the first in the file is taken for the one that was meant."""
    first, *more = [key for key in sheet.table if key in WHEN] or [""]
    for key in more:
        sheet.say((key,), f'"{first}" tells already when to run', "only one of schedule, every, daily and on")
    if "min-interval" in sheet.table and "on" not in sheet.table:
        sheet.say(("min-interval",), "is for jobs that run when something happens", 'on = "attach" beside it')
    if "window" in sheet.table and "stop-at" in sheet.table:
        sheet.say(("stop-at",), '"window" tells already when runs stop', "only one of window and stop-at")


def _table(sheet: Sheet, name: str) -> Table:
    written = sheet.table.get(name, {})
    if isinstance(written, dict):
        return written
    sheet.say((name,), f"{shown(written)} does not fit", f"a section: [{name}] on a line of its own")
    return {}


def _read_section(sheet: Sheet, name: str, model: type[Any], models: Mapping[str, type[Any]]) -> Any:
    others = {key: other for key, other in models.items() if key != name}
    return fill(sheet, model, _table(sheet, name), (name,), lambda key: _before(key) or _home(key, others))


def _before(key: str) -> str | None:
    return "it before the first section" if key in declared(JobKeys) else None


def _home(key: str, models: Mapping[str, type[Any]]) -> str | None:
    """Where a key belongs that another section knows."""
    return next((f"it below [{name}]" for name, model in models.items() if key in declared(model)), None)


def _section(key: str, head: Table, names: set[str]) -> str | None:
    """The section that was meant by an unknown one."""
    if not isinstance(head[key], dict):
        return None
    near = nearest(key, names)
    return f"[{near}], the nearest name" if near else ", ".join(f"[{name}]" for name in sorted(names) if name)


def finish(draft: Draft, engine: EngineSection, place: Place) -> Job:
    """The job of a draft without mistakes. `place`: with the location where this job's copy lies."""
    keys, sections = draft.keys, dict(draft.sections)
    options = sections.pop(engine.name)
    schedule = keys.get("schedule") or keys.get("every") or keys.get("daily") or ("on attach" if "on" in keys else None)
    return Job(
        name=draft.name,
        file=draft.sheet.file,
        engine=engine.name,
        source=keys["source"],
        target=place,
        options=options,
        schedule=schedule,
        late_after=keys.get("late_after"),
        after=keys.get("after", ()),
        stop_at=keys.get("stop_at"),
        window=keys.get("window"),
        min_interval=keys.get("min_interval"),
        priority=keys.get("priority", 0),
        **sections,
    )
