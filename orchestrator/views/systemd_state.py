"""Whether systemd keeps the times of the jobs: the units as they are installed, against those of this version."""

import os
import re
from collections.abc import Callable, Iterator, Mapping

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.plan import Effect, alone
from orchestrator.engines.contract import Advice
from orchestrator.process.executor import Reader
from orchestrator.views.systemd_units import RULES, unit_texts

SERVICE, TIMER = "poolferry.service", "poolferry-owed.timer"
_ASKED = ("Id", "UnitFileState", "ActiveState", "NeedDaemonReload", "FragmentPath", "DropInPaths")
_BOOTED = "/run/systemd/system"  # source: sd_booted(3)
_RULES_AT = "/etc/udev/rules.d"
_PROGRAM = re.compile(r'(?m)^ExecStart=("[^"]+"|\S+) ')
_SUBJECT = "systemd"
_SETUP = "`poolferry setup systemd` writes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A unit as systemd knows it. `text`: its file, empty when there is none; `more`: the files that add to it."""

    state: str
    active: str
    stale: bool
    text: str
    more: tuple[str, ...] = ()

    @property
    def there(self) -> bool:
        """Whether it is installed."""
        return bool(self.text)

    @property
    def enabled(self) -> bool:
        """Whether it begins with the machine."""
        return self.state in ("enabled", "enabled-runtime", "linked")


def units_known(reader: Reader) -> dict[str, Unit]:
    """The daemon's unit and the timer in its stead, by name; none where systemd does not run."""
    if not os.path.isdir(_BOOTED):
        return {}
    argv = ("systemctl", "show", f"--property={','.join(_ASKED)}", SERVICE, TIMER)
    result = reader.read(alone(*argv, effect=Effect.READS))
    return parse_units(result.stdout.decode(errors="replace"), _text) if result.well else {}


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def parse_units(told: str, text: Callable[[str], str]) -> dict[str, Unit]:
    """What `systemctl show` says of several units. `text`: reads a file, empty for none."""
    found = {}
    for block in told.split("\n\n"):
        keys = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        if keys:
            path, more = keys.get("FragmentPath", ""), keys.get("DropInPaths", "").split()
            found[keys.get("Id", "")] = Unit(
                state=keys.get("UnitFileState", ""), active=keys.get("ActiveState", ""), more=tuple(map(text, more)),
                stale=keys.get("NeedDaemonReload") == "yes", text=text(path) if path else "",
            )  # fmt: skip
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """This installation: the shipped units, the command, its directories, and what the jobs need of systemd."""

    shipped: Mapping[str, str]
    program: str
    config: str
    state: str
    scheduled: bool
    disks: bool


def unit_advice(found: Mapping[str, Unit], here: Here, rule: str) -> tuple[Advice, ...]:
    """What is to be said of the units. `found`: empty where systemd does not run; `rule`: udev's, as it is installed."""
    if not (here.scheduled or any(unit.there for unit in found.values())):
        return ()
    service, timer = found.get(SERVICE), found.get(TIMER)
    there = [(name, unit) for name, unit in found.items() if unit.there]
    said = [advice for name, unit in there for advice in _of_text(name, unit, here)]
    said += _of_state(service, timer)
    if here.disks and rule != here.shipped[RULES]:
        told = "is not that of this version" if rule else "is missing, so no disk is noticed when it is plugged in"
        said.append(_hm(f"udev's rule {RULES} {told}: {_SETUP} it"))
    return tuple(said)


def rule_installed() -> str:
    """The text of udev's rule; empty: there is none."""
    return _text(os.path.join(_RULES_AT, RULES))


def _of_text(name: str, unit: Unit, here: Here) -> Iterator[Advice]:
    called = _PROGRAM.search(unit.text)
    program = called[1].strip('"').replace("$$", "$") if called else here.program
    texts = unit_texts({name: here.shipped[name]}, program=program, config=here.config, state=here.state)
    if called and not os.access(program, os.X_OK):
        yield _bad(f"{name} calls {program}, which is not there: {_SETUP} it anew")
    elif called and os.path.realpath(program) != os.path.realpath(here.program):
        yield _hm(f"{name} calls {program}, and this is {here.program}: {_SETUP} it anew if this one is meant")
    if unit.text != texts[name]:
        why = "it is of another version or other directories, or was edited"
        yield _hm(
            f"{name} is not as this version writes it ({why}): {_SETUP} it anew; your own lines belong into {name}.d/"
        )
    if unit.stale:
        yield _hm(f"{name} was changed since systemd read it: systemctl daemon-reload")


def _of_state(service: Unit | None, timer: Unit | None) -> Iterator[Advice]:
    keeps = [
        (name, unit) for name, unit in ((SERVICE, service), (TIMER, timer)) if unit and (unit.there and unit.enabled)
    ]
    if not keeps:
        cure = f"systemctl enable --now {SERVICE}"
        which = next((name for name, unit in ((SERVICE, service), (TIMER, timer)) if unit and unit.there), None)
        if which is None:
            yield _hm(f"no unit keeps the jobs' times: {_SETUP} them, then {cure}")
        else:
            yield _hm(
                f"{which} is installed and not enabled, so nothing runs after the next boot: systemctl enable --now {which}"
            )
    if len(keeps) > 1:
        yield _hm(f"both {SERVICE} and {TIMER} are enabled, and one is enough: systemctl disable --now {TIMER}")
    for name, unit in keeps:
        if unit.active in ("active", "activating", "reloading"):
            yield Advice(good=True, subject=_SUBJECT, text=f"{name} is enabled and {unit.active}")
        else:
            yield _bad(f"{name} is enabled, but {unit.active or 'not running'}: systemctl status {name}")


def _hm(text: str) -> Advice:
    return Advice(good=False, subject=_SUBJECT, text=text, hinders=False)


def _bad(text: str) -> Advice:
    return Advice(good=False, subject=_SUBJECT, text=text)
