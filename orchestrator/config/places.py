"""targets.toml: the places that copies go to. Pure."""

from orchestrator.config.fill import fill
from orchestrator.config.models import PlaceKeys
from orchestrator.config.sheet import Path, Sheet, nearest, shown
from orchestrator.config.where import as_dataset, wrong_dataset, wrong_target
from orchestrator.domain.names import JOB_NAME
from orchestrator.domain.place import Location, Place

PLACE = '[place.NAME] with path = "/where/copies/go"'
KINDS = ("place", "set", "disk")


def read_places(sheet: Sheet) -> dict[str, Place | None] | None:
    """Every named place, None where its declaration is wrong; None: there is no place and no set at all. Mistakes are noted."""
    for name in sheet.table:
        if name not in KINDS:
            near = nearest(name, KINDS)
            meant = near and f"[{near}.NAME]"
            sheet.say((name,), "unknown key", _below_a_place(name) or meant or PLACE)
    table = sheet.table.get("place", {})
    if table == {} and sheet.table.get("set"):
        return {}
    if not isinstance(table, dict) or not table:
        if table or not sheet.mistakes:
            sheet.say(("place",), f"{shown(table)} does not fit" if table else "there is no place", PLACE)
        return None
    return {name: _place(sheet, name, written) for name, written in table.items()}


def _below_a_place(name: str) -> str | None:
    return "it below [place.NAME]" if name in ("path", "dataset") else None


def _place(sheet: Sheet, name: str, written: object) -> Place | None:
    at = ("place", name)
    if not isinstance(written, dict):
        sheet.say(at, f"{shown(written)} does not fit", f'[place.{name}] with path = "/where/copies/go"')
        return None
    if not JOB_NAME.fullmatch(name):
        sheet.say(at, "is no name for a place", "letters, digits, dots, - and _, the first a letter or a digit")
    keys = fill(sheet, PlaceKeys, written, at, lambda _: None)
    if len(written.keys() & {"path", "dataset"}) != 1:
        both = "path" in written
        sheet.say(at, "has both a path and a dataset" if both else "has no path", 'one of path = "…" and dataset = "…"')
        return None
    location = keys and (keys.path or (keys.dataset and as_dataset(keys.dataset)))
    return _sound(sheet, at, name, location, dataset="dataset" in written) if location else None


def _sound(sheet: Sheet, at: Path, name: str, location: Location, *, dataset: bool) -> Place | None:
    wrong = wrong_dataset(location) if dataset else wrong_target(location)
    if wrong:
        sheet.say((*at, "dataset" if dataset else "path"), *wrong)
        return None
    return Place(name=name, location=location)
