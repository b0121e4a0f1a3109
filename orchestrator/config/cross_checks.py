"""Checks across all files: targets, overlaps, and jobs that wait for each other."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from orchestrator.config.decode import list_choices, nearest_name
from orchestrator.config.parse_job import (
    JobDraft,
    dataset_mistake,
    machine_key,
    normalize_path,
    path_mistake,
    path_relation,
    show_location,
)
from orchestrator.config.real_paths import RealPaths
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.place import Location, Place, is_public
from orchestrator.domain.source_tree import SourceTree

if TYPE_CHECKING:
    from orchestrator.domain.rotation import RotationSet

Places = Mapping[str, Place | None]
Sets = Mapping[str, "RotationSet | None"]
Root = tuple[tuple[str, int] | None, str]


def check_all_jobs(
    drafts: Sequence[JobDraft], places: Places | None, *, sets: Sets, names: Iterable[str]
) -> dict[str, Place]:
    """Return the place of each job by the job's name; record each mistake.

    `places` None: targets.toml could not be read. `names`: of all jobs, those included whose files could not be read.
    """
    targets = {draft.name: _lands(draft, places, sets) for draft in drafts} if places is not None else {}
    found = {name: place for name, place in targets.items() if place}
    sources = {draft.name: source for draft in drafts if (source := _source(draft))}
    real = RealPaths(
        place.path
        for draft in drafts
        if (target := found.get(draft.name)) and not (draft.engine and draft.engine.stays)
        for place in (target.location, *_folders(draft, sources.get(draft.name)))
        if _is_here(place)
    )
    for draft in drafts:
        source, place = sources.get(draft.name), found.get(draft.name)
        if source and place:
            if not (draft.engine and draft.engine.stays):
                for folder in _folders(draft, source):
                    _judge_apart(draft, folder, place, real)
            _judge_options(draft, source, place)
            _judge_transport(draft, source, place)
    _judge_owners(drafts, found, real)
    _judge_sets(drafts, sets)
    _judge_rules(drafts)
    _judge_after(drafts, names)
    _judge_identities(drafts, names)
    return found


def _lands(draft: JobDraft, places: Places, sets: Sets) -> Place | None:
    """Return a job's place with the location of its copy in it; for a job that copies nothing, its source."""
    engine, source = draft.engine, draft.keys.get("source")
    if engine and engine.stays:
        return Place(name=draft.name, location=source) if source else None
    place = _target(draft, places, sets)
    options = draft.sections.get(engine.name) if engine else None
    if not place or not engine or not engine.lands or not source or options is None:
        return place
    return replace(place, location=engine.lands(options, source, place.location))


def _source(draft: JobDraft) -> Location | None:
    source: Location | None = draft.keys.get("source")
    if not source or not draft.engine:
        return None
    datasets = draft.engine.datasets and not draft.engine.prunes_folder(source)
    wrong = dataset_mistake(source) if datasets else path_mistake(source)
    if wrong:
        draft.toml_file.say(("source",), *wrong)
    return None if wrong else source


def _target(draft: JobDraft, places: Places, sets: Sets) -> Place | None:
    name = draft.keys.get("target")
    if name is None:
        return None
    if name not in places:
        if name in sets:
            return _rotating(draft, sets[name])
        draft.toml_file.say(("target",), f'there is no place "{name}"', _meant(name, [*places, *sets]))
        return None
    place = places[name]
    if not place or not draft.engine or place.location.path.startswith("/") is not draft.engine.datasets:
        return place
    kinds = ("a path", "a dataset") if draft.engine.datasets else ("a dataset", "a path")
    draft.toml_file.say(
        ("target",),
        f'place "{name}" is {kinds[0]}',
        f"{kinds[1]}, which is what the engine {draft.engine.name} copies to",
    )
    return None


def _rotating(draft: JobDraft, rotation: "RotationSet | None") -> Place | None:
    """Return the set as a target when each of its disks fits the engine; else None."""
    if rotation is None or draft.engine is None:
        return None
    from orchestrator.config.sets import set_place

    datasets = draft.engine.datasets
    for disk in rotation.disks:
        if (disk.content == "zfs") is not datasets:
            what = f'disk "{disk.name}" of the set "{rotation.name}" holds {disk.content}'
            wanted = "disks with pools" if datasets else "disks with ext4, xfs or btrfs"
            draft.toml_file.say(("target",), what, f"{wanted}, which is what the engine {draft.engine.name} copies to")
            return None
    return set_place(rotation, draft.keys.get("known_as") or draft.name, datasets=datasets)


def _judge_sets(drafts: Sequence[JobDraft], sets: Sets) -> None:
    """Check that one disk can hold the copies of all jobs of its set. A set with disks is judged by their content."""
    for name, rotation in sets.items():
        if rotation is None or rotation.disks:
            continue
        users = [
            draft for draft in drafts if draft.keys.get("target") == name and draft.engine and not draft.engine.stays
        ]
        first = users[0] if users else None
        for draft in users:
            if draft.engine and first and first.engine and draft.engine.datasets is not first.engine.datasets:
                kinds = ("datasets", "files") if draft.engine.datasets else ("files", "datasets")
                what = f'copies {kinds[0]} to the set "{name}", and job "{first.name}" copies {kinds[1]} there: no disk can hold both'
                draft.toml_file.say(("target",), what, f"a set of its own, such as [set.{name}-{kinds[0]}]")


def _meant(name: str, places: Collection[str]) -> str:
    near = nearest_name(name, places)
    return (
        f'"{near}", the nearest name'
        if near
        else f"one of targets.toml: {list_choices(places)}"
        if places
        else "[place.NAME]"
    )


def _folders(draft: JobDraft, source: Location | None) -> tuple[Location, ...]:
    return SourceTree(root=source, parts=draft.keys.get("parts", ())).folders if source else ()


def _judge_apart(draft: JobDraft, source: Location, place: Place, real_paths: RealPaths) -> None:
    """Check that source and target are apart. Why real paths too: a link can lead a target into its source."""
    if machine_key(source) != machine_key(place.location):
        return
    how = path_relation(normalize_path(place.location.path), normalize_path(source.path))
    real = path_relation(_root(place.location, real_paths)[1], _root(source, real_paths)[1])
    if how or real:
        links = "" if how else " (through a link)"
        where = f"{show_location(place.location)} {how or real} the source"
        draft.toml_file.say(("target",), where + links, f"a place apart from {show_location(source)}")


def _is_here(location: Location) -> bool:
    return location.host is None and location.path.startswith("/")


def _root(location: Location, real_paths: RealPaths) -> Root:
    """Return the machine and the path there without links, as far as this machine can follow them."""
    path = location.path
    return machine_key(location), real_paths[path] if _is_here(location) else normalize_path(path)


def _judge_options(draft: JobDraft, source: Location, place: Place) -> None:
    engine = draft.engine
    options = draft.sections[engine.name] if engine else None
    verify = draft.sections.get("verify")
    if engine and engine.check and options is not None and verify is not None:
        tree = SourceTree(root=source, parts=draft.keys.get("parts", ()))
        for key, what, wanted in engine.check(options, tree, place.location, verify):
            bare, _, item = key.removesuffix("]").partition("[")
            draft.toml_file.say(tuple(bare.split(".")), what, wanted, int(item) if item else None)
    snapshots = draft.sections.get("snapshots")
    if engine and engine.rules and snapshots:
        for key, what, wanted in engine.rules(snapshots, source, None if engine.stays else place.location):
            draft.toml_file.say(tuple(key.split(".")), what, wanted)
    _judge_snapshot_hooks(draft)


def _judge_identities(drafts: Sequence[JobDraft], names: Iterable[str]) -> None:
    """Check that copies can tell the jobs apart: no job has the name by which the copies of another one know it."""
    known = {draft.name: identity for draft in drafts if (identity := draft.keys.get("known_as"))}
    users = {name: name for name in names if name not in known} if known else {}
    for draft in drafts:
        identity = known.get(draft.name)
        if identity and users.setdefault(identity, draft.name) != draft.name:
            told = f'the copies of job "{users[identity]}" are known by that name'
            draft.toml_file.say(("known-as",), told, "a name of its own for each job")


def _judge_snapshot_hooks(draft: JobDraft) -> None:
    """Check that hooks around a snapshot stand only in a job that takes some: elsewhere nothing would ever call them."""
    snapshots, hooks = draft.sections.get("snapshots"), draft.sections["hooks"]
    if snapshots is not None and snapshots.autosnap:
        return
    for event in ("snapshot-before", "snapshot-after"):
        if hooks.of(event):
            wanted = "[snapshots] in a job of datasets; else the events before and done"
            draft.toml_file.say(("hooks", event), "this job takes no snapshots, so it is never called", wanted)


def _judge_transport(draft: JobDraft, source: Location, place: Place) -> None:
    """Check the transport as far as the files show it; only a survey finds the address behind a host name."""
    pipe, host = draft.sections.get("pipe"), source.host or place.location.host
    unused = draft.engine is not None and "pipe.transport" in draft.engine.without
    if pipe is None or unused or pipe.transport != "mbuffer" or pipe.public_transport:
        return
    if host and is_public(host.name):
        what = f"{host.name} is a public address, and mbuffer's connection is open to all on the way"
        draft.toml_file.say(("pipe", "transport"), what, '"ssh", or the consent public-transport = true')


def _judge_owners(drafts: Sequence[JobDraft], found: Mapping[str, Place], real_paths: RealPaths) -> None:
    """Check that one place belongs to one job: neither two jobs in one place, nor one inside another's."""
    owners: dict[Root, str] = {}
    for draft in drafts:
        if (place := found.get(draft.name)) and not (draft.engine and draft.engine.stays):
            root = _root(place.location, real_paths)
            owner = owners.setdefault(root, draft.name)
            if owner != draft.name:
                draft.toml_file.say(
                    ("target",), f'job "{owner}" writes to {show_location(place.location)} too', "a place of its own"
                )
    by_name = {draft.name: draft for draft in drafts}
    for (host, path), name in owners.items():
        for above in _above(path):
            if outer := owners.get((host, above)):
                what = f'{path} lies inside {above}, where job "{outer}" writes'
                by_name[name].toml_file.say(("target",), what, "a place of its own")


def _judge_rules(drafts: Sequence[JobDraft]) -> None:
    """Check that one dataset has one set of rules: a second one would remove what the first keeps."""
    ruled: dict[Root, tuple[str, bool]] = {}
    for draft in drafts:
        source, rules = draft.keys.get("source"), draft.sections.get("snapshots")
        if not source or not rules:
            continue
        for (host, path), (name, below) in ruled.items():
            how = path_relation(path, source.path) if host == machine_key(source) else None
            if how == "is" or (how == "holds" and below) or (how == "lies inside" and rules.recursive):
                told = f'job "{name}" has rules for the snapshots of {path} too'
                draft.toml_file.say(("snapshots",), told, "one [snapshots] for a dataset and what lies below it")
        ruled.setdefault((machine_key(source), source.path), (draft.name, rules.recursive))


def _above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:length]) for length in range(1, len(parts))]


def _judge_after(drafts: Sequence[JobDraft], names: Iterable[str]) -> None:
    waits: dict[str, tuple[str, ...]] = dict.fromkeys(names, ())
    waits |= {draft.name: draft.keys.get("after", ()) for draft in drafts}
    for draft in drafts:
        for number, name in enumerate(waits[draft.name]):
            if name not in waits:
                near = nearest_name(name, waits.keys() - {draft.name})
                wanted = f'"{near}", the nearest name' if near else "the name of another job"
                draft.toml_file.say(("after",), f'there is no job "{name}"', wanted, number)
        if way := _way_back(draft.name, waits):
            draft.toml_file.say(
                ("after",), f"waits for itself: {' → '.join(way)}", "jobs that do not wait for this one"
            )


def _way_back(name: str, waits: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the shortest cycle of waiting jobs through a job; empty when there is none."""
    ways: list[tuple[str, ...]] = [(name,)]
    seen: set[str] = set()
    for way in ways:
        for other in waits.get(way[-1], ()):
            if other == name:
                return (*way, name)
            if other not in seen:
                seen.add(other)
                ways.append((*way, other))
    return ()
