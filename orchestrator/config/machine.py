"""Settings of the whole machine from poolferry.toml; the file may be missing."""

import os
import stat
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from orchestrator.config.decode import TomlFile, decode_section, list_choices, nearest_name, parse_toml_file, show_value
from orchestrator.domain.errors import ConfigMistake, DeclarationError
from orchestrator.domain.machine import (
    ClockOptions,
    DigestOptions,
    FleetOptions,
    HistoryOptions,
    MachineConfig,
    MetricsOptions,
    WebOptions,
)
from orchestrator.domain.names import show_name
from orchestrator.trees.beneath import writable_by_others

if TYPE_CHECKING:
    from orchestrator.domain.notice import Channel

FILE = "poolferry.toml"
SECTIONS: dict[str, type[Any]] = {
    "clock": ClockOptions, "digest": DigestOptions, "metrics": MetricsOptions, "history": HistoryOptions, "web": WebOptions,
    "fleet": FleetOptions,
}  # fmt: skip
CHANNELS = "notice"


def load_machine_config(directory: str, jobs: Collection[str] | None = None) -> MachineConfig:
    """Load the file's settings, or the defaults without a file. Raises: DeclarationError with all its mistakes.

    `jobs`: the names of all jobs; then a channel that names another is a mistake.
    """
    path = os.path.join(directory, FILE)
    try:
        with open(path, "rb") as file:
            held = parse_toml_file(path, file.read(), least="")
    except FileNotFoundError:
        return MachineConfig()
    except OSError as error:
        what, wanted = f"cannot be read: {error.strerror}", "a file that this user may read"
        raise DeclarationError(
            (ConfigMistake(file=show_name(path), line=None, key="", what=what, expected=wanted),)
        ) from None
    if isinstance(held, ConfigMistake):
        raise DeclarationError((held,))
    machine = parse_machine_config(held, jobs)
    pem_files = [
        each for each in (machine.fleet.root_certificate, machine.fleet.certificate, machine.fleet.key) if each
    ]
    mistakes = [*held.mistakes, *writable_by_others((path, *_secret_files(machine), *pem_files))]
    if mistakes:
        raise DeclarationError(tuple(sorted(mistakes, key=lambda each: (each.line or 0, each.key))))
    return machine


def _secret_files(machine: MachineConfig) -> Iterator[str]:
    """Yield the files of the channels' secrets: who writes one of an address says where messages go."""
    for channel in machine.notice:
        for key in ("password_file", "token_file", "url", "topic"):
            told = getattr(channel, key, None) or ""
            if told.removeprefix("@").startswith("/"):
                yield told.removeprefix("@")


def parse_machine_config(toml_file: TomlFile, jobs: Collection[str] | None = None) -> MachineConfig:
    """Read the declared sections, with defaults for omitted keys; record each mistake."""
    known = (*SECTIONS, CHANNELS)
    for name in toml_file.table.keys() - set(known):
        near = nearest_name(name, known)
        toml_file.say((name,), "unknown key", f"[{near}], the nearest name" if near else list_choices(known))
    sections = {name: _section(toml_file, name, model) for name, model in SECTIONS.items()}
    if "fleet" in toml_file.table:
        _check_fleet(toml_file, sections["fleet"], whole=jobs is not None)
    return MachineConfig(**sections, notice=_channels(toml_file, jobs))


def _check_fleet(toml_file: TomlFile, fleet: FleetOptions, *, whole: bool) -> None:
    """Record what is wrong with the centre's keys together, and with the files that they name. `whole`: the whole configuration is checked.

    Why a file that is gone is a mistake only then: runs need no centre, and cron's `run --due` would copy nothing any more for want of it.
    """
    table = toml_file.table["fleet"]
    if not isinstance(table, dict):
        return
    if "centre" not in table:
        example = "postgresql://backups.example.org/poolferry"
        toml_file.say(("fleet", "centre"), "is missing", f'the centre\'s address, such as "{example}"')
    for one, other in (("certificate", "key"), ("key", "certificate")):
        if one in table and other not in table:
            toml_file.say(("fleet", other), "is missing", f"the file that belongs to [fleet] {one}")
    for name in ("root-certificate", "certificate", "key"):
        path = getattr(fleet, name.replace("-", "_"))
        if path is not None and (wrong := _wrong_pem(path, secret=name == "key", whole=whole)):
            toml_file.say(("fleet", name), *wrong)


def _wrong_pem(path: str, *, secret: bool, whole: bool) -> tuple[str, str] | None:
    """Return what is wrong with a file of a certificate or a key, and what is expected; None: nothing that this user can see."""
    try:
        seen = os.stat(path)
    except FileNotFoundError:
        return (f"there is no {show_name(path)}", "a file in PEM format") if whole else None
    except OSError:
        return None  # the status page reads this file too, and may not look there
    if not stat.S_ISREG(seen.st_mode):
        return f"{show_name(path)} is no file", "a file in PEM format"
    if secret and stat.S_IMODE(seen.st_mode) & 0o077:
        import shlex  # only mistakes need it

        quoted = shlex.quote(show_name(path))
        return (
            f"others may read {show_name(path)} (mode {stat.S_IMODE(seen.st_mode):04o})",
            f"its owner alone: chmod 600 {quoted}",
        )
    return None


def _channels(toml_file: TomlFile, jobs: Collection[str] | None) -> "tuple[Channel, ...]":
    """Read the channels. Why imported late: each run reads this file, and most have no channel."""
    if CHANNELS not in toml_file.table:
        return ()
    from orchestrator.config.channels import parse_channels

    return parse_channels(toml_file, jobs)


def _section(toml_file: TomlFile, name: str, model: type[Any]) -> Any:
    written = toml_file.table.get(name, {})
    if not isinstance(written, dict):
        toml_file.say((name,), f"{show_value(written)} does not fit", f"a section: [{name}] on a line of its own")
        return model()
    return decode_section(toml_file, model, written, (name,), lambda _: None) or model()
