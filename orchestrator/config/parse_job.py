"""One job file checked alone, with its hooks and locations; and the places from targets.toml.

Checks against the rest of the configuration come later, in `cross_checks`.
"""

import os.path
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from orchestrator.config.decode import (
    Path,
    Table,
    TomlFile,
    declared_fields,
    decode_keys,
    decode_section,
    describe_expected,
    list_choices,
    nearest_name,
    show_value,
)
from orchestrator.config.models import SCHEDULE_KEYS, SECTIONS, EngineSection, JobKeys, PlaceKeys
from orchestrator.config.times import parse_span
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import EVENTS, Job, JobHooks, SnapshotRules
from orchestrator.domain.names import JOB_NAME, show_name
from orchestrator.domain.place import Location, Place, url_of_ssh_place
from orchestrator.domain.source_tree import join_folders

if TYPE_CHECKING:
    from orchestrator.domain.permit import PermitRequest

Argv = tuple[str, ...]
SHAPES = '"/path/program", ["/path/program", "argument"], or a list of such lists'
TIMEOUT_HELP = "end a hook that runs longer; the source is held still no longer than this either"
EVENT_HELP = f"what to call at this event: {SHAPES}"


def parse_hooks(toml_file: TomlFile, table: Table) -> JobHooks:
    """Read the declared hooks, in the order written; record each mistake."""
    calls: list[tuple[str, tuple[Argv, ...]]] = []
    timeout = JobHooks().timeout
    for name, written in table.items():
        if name == "timeout":
            try:
                timeout = parse_span(written if isinstance(written, str) else "")
            except ValueError as error:
                toml_file.say(("hooks", name), f"{show_value(written)} does not fit", str(error))
        elif name not in EVENTS:
            near = nearest_name(name, (*EVENTS, "timeout"))
            toml_file.say(
                ("hooks", name), "unknown event", f'"{near}", the nearest name' if near else list_choices(EVENTS)
            )
        elif commands := _commands(written):
            calls.append((name, commands))
            for program, *_ in commands:
                _judge_program(toml_file, ("hooks", name), program)
        else:
            toml_file.say(
                ("hooks", name), "is empty" if written in ("", []) else f"{show_value(written)} does not fit", SHAPES
            )
    return JobHooks(calls=tuple(calls), timeout=timeout)


def _judge_program(toml_file: TomlFile, at: Path, program: str) -> None:
    """Check that a program is the same from every folder. Why: a check runs in what came back, which holds others' files."""
    if "/" in program and not program.startswith("/"):
        toml_file.say(at, f"{show_value(program)} is a relative path", 'a path that begins with "/", or a plain name')


def _commands(written: object) -> tuple[Argv, ...]:
    """Return the commands of one event; empty when none is named, or one is wrong."""
    if isinstance(written, list) and all(isinstance(each, list) for each in written):
        found = [_argv(each) for each in written]
    else:
        found = [_argv(written if isinstance(written, list) else [written])]
    return tuple(found) if all(found) else ()


def _argv(parts: list[object]) -> Argv:
    """Return the program and its arguments; empty when not all are texts, or there is no program."""
    texts = tuple(part for part in parts if isinstance(part, str) and "\x00" not in part)
    return texts if len(texts) == len(parts) and texts and texts[0].strip() else ()


_DATASET = r"[A-Za-z][A-Za-z0-9_.: -]*(/[A-Za-z0-9_.:-][A-Za-z0-9_.: -]*)*"


def dataset_location(location: Location) -> Location:
    """Return the location with the dataset's own name: on a host a URL puts a slash before it."""
    return Location(path=location.path.lstrip("/"), host=location.host) if location.host else location


def path_mistake(location: Location) -> tuple[str, str] | None:
    """Return the mistake and the expected value for a location that is no absolute path; else None."""
    if location.path.startswith("/"):
        return None
    if location.host is None and (url := url_of_ssh_place(location.path)):
        return f'"{show_location(location)}" is no absolute path', f'"{url}" for a place on that host'
    return (
        f'"{show_location(location)}" is no absolute path',
        'a path that begins with "/" (~ and $NAME are not replaced)',
    )


def target_mistake(location: Location) -> tuple[str, str] | None:
    """Return the mistake and the expected value for a path that can hold no copies; else None."""
    if normalize_path(location.path) == "/":
        return (
            f'"{show_location(location)}" is the top of everything',
            "a directory that holds the copies and nothing else",
        )
    return path_mistake(location)


def dataset_mistake(location: Location) -> tuple[str, str] | None:
    """Return the mistake and the expected value for a location that is no dataset; else None."""
    if re.fullmatch(_DATASET, location.path):
        return None
    url = None if location.host else url_of_ssh_place(location.path)
    expected = f'"{url}" for a dataset on that host' if url else 'a name such as "vault/replicas"'
    return f'"{show_location(location)}" is no name of a dataset', expected


def normalize_path(path: str) -> str:
    """Return the path without doubled slashes, "." and ".."; a dataset's name unchanged."""
    return "/" + os.path.normpath(path).lstrip("/") if path.startswith("/") else path


def machine_key(location: Location) -> tuple[str, int] | None:
    """Return a key of the machine; None is this one. The user is not part of it: two users see one tree."""
    return (location.host.name.lower(), location.host.port or 22) if location.host and not location.host.here else None


def path_relation(one: str, other: str) -> str | None:
    """Return how one normal path relates to another on the same machine: "is", "lies inside", "holds", or None."""
    if one == other:
        return "is"
    if one.startswith(other.rstrip("/") + "/"):
        return "lies inside"
    return "holds" if other.startswith(one.rstrip("/") + "/") else None


def show_location(location: Location) -> str:
    """Return the location as a message shows it."""
    return show_name(str(location))


Engines = Mapping[str, EngineSection]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDraft:
    """The valid part of a job file. `keys`: the valid keys before the first section; `sections`: the sections after them."""

    name: str
    toml_file: TomlFile
    engine: EngineSection | None
    keys: Mapping[str, Any]
    sections: Mapping[str, Any]


def parse_job(toml_file: TomlFile, name: str, engines: Engines) -> JobDraft:
    """Read the draft of one job; record each mistake."""
    written = toml_file.table.get("engine")
    named = written if isinstance(written, str) else ""
    engine = engines.get(named)
    models = SECTIONS | ({engine.name: engine.options} if engine else {})
    own = {*models, "hooks", *engines, named}
    head = {
        key: written for key, written in toml_file.table.items() if key not in own or key in declared_fields(JobKeys)
    }
    keys = decode_keys(toml_file, JobKeys, head, (), lambda key: _home(key, models) or _section(key, head, own))
    _judge_sources(toml_file, keys, engine)
    if engine and engine.datasets and "source" in keys and not engine.prunes_folder(keys["source"]):
        keys["source"] = dataset_location(keys["source"])
    _judge_engine(toml_file, keys, engine, engines)
    _judge_schedule(toml_file)
    _judge_permits(toml_file)
    _judge_target(toml_file, engine)
    _judge_sections(toml_file, engine)
    _judge_reading(toml_file)
    sections = {key: _read_section(toml_file, key, model, models) for key, model in models.items()}
    _judge_snapshots(toml_file, sections, engine)
    if (drill := sections["drill"]) and drill.check_command:
        _judge_program(toml_file, ("drill", "check-command"), drill.check_command[0])
    hooks = parse_hooks(toml_file, _table(toml_file, "hooks"))
    return JobDraft(name=name, toml_file=toml_file, engine=engine, keys=keys, sections=sections | {"hooks": hooks})


def _judge_sources(toml_file: TomlFile, keys: dict[str, Any], engine: EngineSection | None) -> None:
    """Check that there is one of source and sources. Several folders become one source, and `parts` that name them below it."""
    if "sources" not in toml_file.table:
        if "source" not in toml_file.table:
            toml_file.say(
                ("source",),
                "is missing",
                f'{declared_fields(JobKeys)["source"].metadata["key"].says}, such as "/srv/photos"',
            )
        return
    folders: tuple[Location, ...] = keys.pop("sources", ())
    keys.pop("source", None)
    if "source" in toml_file.table:
        toml_file.say(("sources",), "names what to copy a second time", "one of source and sources")
    elif engine and (engine.datasets or engine.stays):
        toml_file.say(
            ("sources",),
            f"the engine {engine.name} takes one dataset",
            'source = "tank", which is copied with all below it',
        )
    elif toml_file.table["sources"] == []:
        toml_file.say(
            ("sources",), "is empty", describe_expected(tuple, declared_fields(JobKeys)["sources"].metadata["key"])
        )
    elif wrong := [(found, number) for number, folder in enumerate(folders) if (found := path_mistake(folder))]:
        for found, number in wrong:
            toml_file.say(("sources",), *found, number)
    elif folders:
        try:
            tree = join_folders(folders)
        except ValueError as error:
            toml_file.say(("sources",), *error.args)
        else:
            keys |= {"source": tree.root, "parts": tree.parts}


def _judge_engine(toml_file: TomlFile, keys: Mapping[str, Any], engine: EngineSection | None, engines: Engines) -> None:
    if "engine" in keys and not engine:
        toml_file.say(("engine",), f"there is no engine {show_value(keys['engine'])}", list_choices(engines))
    for name in toml_file.table.keys() & engines.keys() if engine else ():
        if engine and name != engine.name:
            toml_file.say((name,), f'the engine of this job is "{engine.name}"', f"[{engine.name}], or no such section")


def _judge_sections(toml_file: TomlFile, engine: EngineSection | None) -> None:
    for name in engine.without if engine else ():
        section, _, key = name.partition(".")
        table = toml_file.table.get(section)
        if engine and not key and section in toml_file.table:
            toml_file.say((section,), f"means nothing to the engine {engine.name}", "no such section")
        if engine and key and isinstance(table, dict) and key in table:
            why = "carries no data" if engine.stays else "has no streams of datasets"
            toml_file.say((section, key), f"the engine {engine.name} {why}", "no such key")


def _judge_target(toml_file: TomlFile, engine: EngineSection | None) -> None:
    if engine and engine.stays and "target" in toml_file.table:
        toml_file.say(("target",), f"the engine {engine.name} works on the source alone", "no target")
    elif "target" not in toml_file.table and not (engine and engine.stays):
        toml_file.say(
            ("target",), "is missing", 'where the copies go: the name of a place in targets.toml, such as "backup"'
        )


def _judge_reading(toml_file: TomlFile) -> None:
    """Check that what bounds the reading stands beside its promise."""
    table = toml_file.table.get("verify")
    if not isinstance(table, dict):
        return
    for key in ("per-day", "window"):
        if key in table and "read-all-within" not in table:
            toml_file.say(
                ("verify", key), "is for copies that are read again by a promise", 'read-all-within = "90d" beside it'
            )


def _judge_snapshots(toml_file: TomlFile, sections: dict[str, Any], engine: EngineSection | None) -> None:
    """Check the [snapshots] section. Why it needs a rule: without one sanoid would keep no snapshot at all."""
    snapshots = sections["snapshots"]
    if "snapshots" not in toml_file.table:
        sections["snapshots"] = None
    elif engine and not engine.datasets:
        toml_file.say(
            ("snapshots",), f"the engine {engine.name} copies paths", "no such section: only datasets have snapshots"
        )
    elif isinstance(snapshots, SnapshotRules) and snapshots.nothing:
        toml_file.say(("snapshots",), "keeps nothing", "how many stay, such as daily = 14")


def _judge_schedule(toml_file: TomlFile) -> None:
    """Check the schedule keys. Why the later ones are wrong: the first in the file counts as the intended one."""
    first, *more = [key for key in toml_file.table if key in SCHEDULE_KEYS] or [""]
    for key in more:
        toml_file.say((key,), f'"{first}" already says when to run', "only one of schedule, every, daily and on")
    if "min-interval" in toml_file.table and "on" not in toml_file.table:
        toml_file.say(("min-interval",), "is for jobs that run when something happens", 'on = "attach" beside it')
    if "spread" in toml_file.table and first not in ("schedule", "daily"):
        toml_file.say(("spread",), "is for jobs that run at fixed times", "schedule or daily beside it")
    if "window" in toml_file.table and "stop-at" in toml_file.table:
        toml_file.say(("stop-at",), '"window" already says when runs stop', "only one of window and stop-at")


def _judge_permits(toml_file: TomlFile) -> None:
    if toml_file.table.get("permits") == []:
        toml_file.say(("permits",), "is empty", 'the names of limits, such as ["link-nas"], or no such key')
    for key in ("permit-weight", "permit-away"):
        if key in toml_file.table and "permits" not in toml_file.table:
            toml_file.say((key,), "is for runs that need a permit", 'permits = ["link-nas"] beside it')


def _table(toml_file: TomlFile, name: str) -> Table:
    written = toml_file.table.get(name, {})
    if isinstance(written, dict):
        return written
    toml_file.say((name,), f"{show_value(written)} does not fit", f"a section: [{name}] on a line of its own")
    return {}


def _read_section(toml_file: TomlFile, name: str, model: type[Any], models: Mapping[str, type[Any]]) -> Any:
    others = {key: other for key, other in models.items() if key != name}
    return decode_section(
        toml_file, model, _table(toml_file, name), (name,), lambda key: _before(key) or _home(key, others)
    )


def _before(key: str) -> str | None:
    return "it before the first section" if key in declared_fields(JobKeys) else None


def _home(key: str, models: Mapping[str, type[Any]]) -> str | None:
    """Return the section to which a misplaced key belongs; None when no section knows it."""
    return next((f"it below [{name}]" for name, model in models.items() if key in declared_fields(model)), None)


def _section(key: str, head: Table, names: set[str]) -> str | None:
    """Return the section that was meant by an unknown one; None when the key holds no section."""
    if not isinstance(head[key], dict):
        return None
    near = nearest_name(key, names)
    return f"[{near}], the nearest name" if near else ", ".join(f"[{name}]" for name in sorted(names) if name)


def _permit(keys: Mapping[str, Any]) -> "PermitRequest":
    from orchestrator.domain.permit import PermitRequest

    limits = tuple(dict.fromkeys(keys["permits"]))
    return PermitRequest(limits=limits, weight=keys.get("permit_weight", 1), patience=keys.get("permit_away"))


def complete_job(draft: JobDraft, engine: EngineSection, place: Place) -> Job:
    """Build the job of a draft without mistakes. `place`: with the location of this job's copy."""
    keys, sections = draft.keys, dict(draft.sections)
    options = sections.pop(engine.name)
    schedule = keys.get("schedule") or keys.get("every") or keys.get("daily") or ("on attach" if "on" in keys else None)
    if schedule and (span := keys.get("spread")):
        from orchestrator.config.this_machine import (
            place_in_spread,  # digests cost a start 2 ms, and few jobs are spread
        )

        schedule += f" later {place_in_spread(keys.get('known_as') or draft.name, span)}"
    return Job(
        name=draft.name,
        file=draft.toml_file.file,
        engine=engine.name,
        source=keys["source"],
        parts=keys.get("parts", ()),
        target=place,
        options=options,
        schedule=schedule,
        late_after=keys.get("late_after"),
        after=keys.get("after", ()),
        stop_at=keys.get("stop_at"),
        window=keys.get("window"),
        min_interval=keys.get("min_interval"),
        priority=keys.get("priority", 0),
        known_as=keys.get("known_as"),
        permit=_permit(keys) if keys.get("permits") else None,
        **sections,
    )


PLACE = '[place.NAME] with path = "/where/copies/go"'
TARGET_TABLES = ("place", "set", "disk")


def parse_places(toml_file: TomlFile) -> dict[str, Place | None] | None:
    """Read every named place, None where its declaration is wrong; None: there is no place and no set. Record mistakes."""
    for name in toml_file.table:
        if name not in TARGET_TABLES:
            near = nearest_name(name, TARGET_TABLES)
            meant = near and f"[{near}.NAME]"
            toml_file.say((name,), "unknown key", _below_a_place(name) or meant or PLACE)
    table = toml_file.table.get("place", {})
    if table == {} and toml_file.table.get("set"):
        return {}
    if not isinstance(table, dict) or not table:
        if table or not toml_file.mistakes:
            toml_file.say(("place",), f"{show_value(table)} does not fit" if table else "there is no place", PLACE)
        return None
    return {name: _place(toml_file, name, written) for name, written in table.items()}


def _below_a_place(name: str) -> str | None:
    return "it below [place.NAME]" if name in ("path", "dataset") else None


def _place(toml_file: TomlFile, name: str, written: object) -> Place | None:
    at = ("place", name)
    if not isinstance(written, dict):
        toml_file.say(at, f"{show_value(written)} does not fit", f'[place.{name}] with path = "/where/copies/go"')
        return None
    if not JOB_NAME.fullmatch(name):
        toml_file.say(at, "is no name for a place", "letters, digits, dots, - and _, the first a letter or a digit")
    keys = decode_section(toml_file, PlaceKeys, written, at, lambda _: None)
    if len(written.keys() & {"path", "dataset"}) != 1:
        both = "path" in written
        toml_file.say(
            at, "has both a path and a dataset" if both else "has no path", 'one of path = "…" and dataset = "…"'
        )
        return None
    location = keys and (keys.path or (keys.dataset and dataset_location(keys.dataset)))
    return _sound(toml_file, at, name, location, dataset="dataset" in written) if location else None


def _sound(toml_file: TomlFile, at: Path, name: str, location: Location, *, dataset: bool) -> Place | None:
    wrong = dataset_mistake(location) if dataset else target_mistake(location)
    if wrong:
        toml_file.say((*at, "dataset" if dataset else "path"), *wrong)
        return None
    return Place(name=name, location=location)
