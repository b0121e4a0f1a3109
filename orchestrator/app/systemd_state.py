"""The systemd units that start scheduled runs: the installed ones compared with this version's, and their installation."""

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from orchestrator import compose
from orchestrator.app.settings import WrongRequest
from orchestrator.domain.answers import split_lines
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.plan import Effect, single_command
from orchestrator.engines.contract.engine import SystemCheckResult
from orchestrator.process.executor import Reader

USUAL_FOLDERS = ("/etc/poolferry", "/var/lib/poolferry")
SHIPPED = "/usr/bin/poolferry"
DAEMON_UNITS = ("poolferry.service", "poolferry-run@.service", "poolferry-disk@.service")
TIMER_UNITS = (
    "poolferry-due.service", "poolferry-due.timer", "poolferry-read.service", "poolferry-run@.service", "poolferry-disk@.service",
)  # fmt: skip
ALL_UNITS = tuple(dict.fromkeys((*DAEMON_UNITS, *TIMER_UNITS)))
FLEET_UNITS = ("poolferry-fleet.service",)  # on the centre of a fleet
WEB_UNITS = ("poolferry-web.service", "poolferry-web.socket")
USERS_FILE = "poolferry-users.conf"  # sysusers: the group that may ask the daemon
RULES_FILE = "90-poolferry.rules"  # udev's: it calls poolferry-disk@ when a disk is plugged in
_STATE = re.compile(r"(?m)^StateDirectory(?:Mode)?=.*\n")
SERVICE, TIMER = "poolferry.service", "poolferry-due.timer"
FORMER_UNITS = ("poolferry-owed.service", "poolferry-owed.timer")  # former names of the timer's units
FORMER_TIMER = FORMER_UNITS[1]
_PROPERTIES = ("Id", "UnitFileState", "ActiveState", "NeedDaemonReload", "FragmentPath", "DropInPaths")
_BOOTED = "/run/systemd/system"  # source: sd_booted(3)
UNITS_AT, RULES_AT, USERS_AT = "/etc/systemd/system", "/etc/udev/rules.d", "/etc/sysusers.d"
_PROGRAM = re.compile(r'(?m)^ExecStart=("[^"]+"|\S+) ')
_SUBJECT = "systemd"
_SETUP = "`poolferry setup systemd` writes"


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemdUnit:
    """A unit in systemd's view. `text`: its file, empty when there is none; `more`: the files that add to it."""

    state: str
    active: str
    stale: bool
    text: str
    more: tuple[str, ...] = ()

    @property
    def there(self) -> bool:
        """Return True when the unit is installed."""
        return bool(self.text)

    @property
    def enabled(self) -> bool:
        """Return True when the unit starts with the machine."""
        return self.state in ("enabled", "enabled-runtime", "linked")


def survey_units(reader: Reader) -> dict[str, SystemdUnit]:
    """Return the daemon's unit and the alternative timer, by name; none where systemd does not run."""
    if not os.path.isdir(_BOOTED):
        return {}
    argv = ("systemctl", "show", f"--property={','.join(_PROPERTIES)}", SERVICE, TIMER, FORMER_TIMER)
    result = reader.read(single_command(*argv, effect=Effect.READS))
    return parse_units(result.stdout.decode(errors="replace"), _text) if result.well else {}


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
            return file.read()
    except OSError:
        return ""


def parse_units(told: str, text: Callable[[str], str]) -> dict[str, SystemdUnit]:
    """Parse the output of `systemctl show` about several units. `text`: reads a file, empty for none."""
    found = {}
    for block in told.split("\n\n"):
        keys = dict(line.split("=", 1) for line in split_lines(block) if "=" in line)
        if keys:
            path, more = keys.get("FragmentPath", ""), keys.get("DropInPaths", "").split()
            found[keys.get("Id", "")] = SystemdUnit(
                state=keys.get("UnitFileState", ""), active=keys.get("ActiveState", ""), more=tuple(map(text, more)),
                stale=keys.get("NeedDaemonReload") == "yes", text=text(path) if path else "",
            )  # fmt: skip
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """This installation: the shipped units, the command, its directories, and the jobs' needs of systemd."""

    shipped: Mapping[str, str]
    program: str
    config: str
    state: str
    scheduled: bool
    disks: bool


def check_units(found: Mapping[str, SystemdUnit], here: Installation, rule: str) -> tuple[SystemCheckResult, ...]:
    """Return the advice about the units. `found`: empty where systemd does not run; `rule`: the installed udev rule."""
    if not (here.scheduled or any(unit.there for unit in found.values())):
        return ()
    there = [(name, unit) for name, unit in found.items() if unit.there]
    said = [advice for name, unit in there if name in here.shipped for advice in _of_text(name, unit, here)]
    said += _of_state(there)
    if any(name == FORMER_TIMER for name, _ in there):
        said.append(_hm(f"{FORMER_TIMER} is now called {TIMER}: poolferry setup systemd --timer renames it"))
    if here.disks and rule != here.shipped[RULES_FILE]:
        told = "is not that of this version" if rule else "is missing, so no disk is noticed when it is plugged in"
        said.append(_hm(f"udev's rule {RULES_FILE} {told}: {_SETUP} it"))
    return tuple(said)


def read_installed_rule() -> str:
    """Return the text of the installed udev rule; empty: there is none."""
    return _text(os.path.join(RULES_AT, RULES_FILE))


def _of_text(name: str, unit: SystemdUnit, here: Installation) -> Iterator[SystemCheckResult]:
    called = _PROGRAM.search(unit.text)
    program = called[1].strip('"').replace("$$", "$") if called else here.program
    texts = unit_texts({name: here.shipped[name]}, program=program, config=here.config, state=here.state)
    if called and not os.access(program, os.X_OK):
        yield _bad(f"{name} calls {program}, which is not there: {_SETUP} it again")
    elif called and os.path.realpath(program) != os.path.realpath(here.program):
        yield _hm(f"{name} calls {program}, and this is {here.program}: {_SETUP} it again if this one is meant")
    if unit.text != texts[name]:
        why = "it is of another version or other directories, or was edited"
        yield _hm(
            f"{name} is not as this version writes it ({why}): {_SETUP} it again; your own lines belong into {name}.d/"
        )
    if unit.stale:
        yield _hm(f"{name} was changed since systemd read it: systemctl daemon-reload")


def _of_state(there: Sequence[tuple[str, SystemdUnit]]) -> Iterator[SystemCheckResult]:
    keeps = [(name, unit) for name, unit in there if unit.enabled]
    if not keeps:
        hint = f"systemctl enable --now {SERVICE}"
        which = next((name for name, _ in there), None)
        if which is None:
            yield _hm(f"no unit keeps the jobs' times: {_SETUP} them, then {hint}")
        else:
            yield _hm(
                f"{which} is installed and not enabled, so nothing runs after the next boot: systemctl enable --now {which}"
            )
    if len(keeps) > 1:
        names, last = " and ".join(name for name, _ in keeps), keeps[-1][0]
        yield _hm(f"both {names} are enabled, and one is enough: systemctl disable --now {last}")
    for name, unit in keeps:
        if unit.active in ("active", "activating", "reloading"):
            yield SystemCheckResult(good=True, subject=_SUBJECT, text=f"{name} is enabled and {unit.active}")
        else:
            yield _bad(f"{name} is enabled, but {unit.active or 'not running'}: systemctl status {name}")


def _hm(text: str) -> SystemCheckResult:
    return SystemCheckResult(good=False, subject=_SUBJECT, text=text, hinders=False)


def _bad(text: str) -> SystemCheckResult:
    return SystemCheckResult(good=False, subject=_SUBJECT, text=text)


# Installation.


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemdSetup:
    """Request for units. `timer`: instead of the daemon; `remove`: remove all of them; `web`: those of the status page alone.

    `web_options`: options that its command gets, of plain characters; `fleet`: the unit that watches a fleet alone.
    """

    into: str = UNITS_AT
    rules_into: str = RULES_AT
    users_into: str = USERS_AT
    timer: bool = False
    remove: bool = False
    web: bool = False
    web_options: tuple[str, ...] = ()
    fleet: bool = False


def unit_files(where: compose.Directories, request: SystemdSetup) -> tuple[dict[str, str], dict[str, str]]:
    """Return the units by name, and udev's rules or the page's group, as this installation writes them. Raises: WrongRequest."""
    shipped = compose.shipped_units()
    if request.fleet:
        units = {name: shipped[name] for name in FLEET_UNITS}
        return unit_texts(units, program=program_here(), config=where.config, state=where.state), {}
    if request.web:
        units = {name: shipped[name] for name in WEB_UNITS}
        texts = unit_texts(units, program=program_here(), config=where.config, state=where.state)
        if request.web_options:
            texts = {name: _with_options(text, request.web_options) for name, text in texts.items()}
        return texts, {USERS_FILE: shipped[USERS_FILE]}
    chosen = ALL_UNITS if request.remove else TIMER_UNITS if request.timer else DAEMON_UNITS
    units = {name: shipped[name] for name in chosen}
    texts = unit_texts(units, program=program_here(), config=where.config, state=where.state)
    return texts, {RULES_FILE: shipped[RULES_FILE]}


def install_units(where: compose.Directories, request: SystemdSetup) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Write the units and the rule, or remove them; return the paths written and removed.

    Units of the timer's former name go in both cases. Raises: OrchestratorError, WrongRequest.
    """
    texts, beside = unit_files(where, request)
    beside_into = request.users_into if request.web else request.rules_into
    live = os.path.abspath(request.into) == UNITS_AT and os.path.isdir(_BOOTED)
    former = [name for name in FORMER_UNITS if os.path.exists(os.path.join(request.into, name))]
    if live and FORMER_TIMER in former:
        _disable(FORMER_TIMER)
    gone, written = [*_remove(request.into, former)], list[str]()
    if request.remove:
        gone += [*_remove(request.into, texts), *_remove(beside_into, beside)]
    else:
        written += [*_write(request.into, texts), *_write(beside_into, beside)]
    if live:
        if request.web and not request.remove:
            _make_group(os.path.join(request.users_into, USERS_FILE))
        _reload()
    return tuple(written), tuple(gone)


def has_service(into: str) -> bool:
    """Return True when the daemon's unit is installed: in this folder, or by the Debian package. A centre may have none."""
    return any(os.path.exists(os.path.join(folder, DAEMON_UNITS[0])) for folder in (into, "/usr/lib/systemd/system"))


def _make_group(path: str) -> None:
    """Let systemd make the group now, and not with the next boot. Raises: OrchestratorError."""
    from orchestrator.domain.errors import OrchestratorError
    from orchestrator.process.executor import Writer

    result = Writer().stream(single_command("systemd-sysusers", path, effect=Effect.WRITES))
    if not result.well:
        raise OrchestratorError(
            f"the group of the status page could not be made: {' '.join(result.last_output).strip()}",
            hint="groupadd --system poolferry; then `poolferry setup web` once more",
        )


def _disable(unit: str) -> None:
    from orchestrator.process.executor import Writer

    Writer().stream(single_command("systemctl", "disable", "--now", unit, effect=Effect.WRITES))


def _reload() -> None:
    """Make systemd read its units again, and udev its rules (udev also does so by itself). Raises: OrchestratorError."""
    from orchestrator.domain.errors import OrchestratorError
    from orchestrator.process.executor import Writer

    Writer().stream(single_command("udevadm", "control", "--reload", effect=Effect.WRITES))
    result = Writer().stream(single_command("systemctl", "daemon-reload", effect=Effect.WRITES))
    if not result.well:
        raise OrchestratorError(
            f"the units are written, but systemd did not read them: {' '.join(result.last_output)}",
            hint="systemctl daemon-reload",
        )


def program_here() -> str:
    """Return the path of the command that runs now. Raises: WrongRequest where it has none that stays."""
    beside = os.path.join(os.path.dirname(sys.executable), "poolferry")
    called = sys.argv[0] if os.path.basename(sys.argv[0]) in ("poolferry", "poolferry.pyz") else beside
    found = called if os.access(called, os.X_OK) else shutil.which("poolferry")
    if found is None:
        raise WrongRequest("the command poolferry is not on the PATH, so no unit could call it")
    return os.path.abspath(found)


def _write(into: str, texts: Mapping[str, str]) -> Sequence[str]:
    from orchestrator.trees.beneath import new_file_at

    os.makedirs(into, exist_ok=True)
    paths = []
    for name, text in texts.items():
        path = os.path.join(into, name)
        with new_file_at(path, mode=0o644) as file:
            file.write(text.encode())
        paths.append(path)
    return paths


def _remove(into: str, texts: Iterable[str]) -> Sequence[str]:
    paths = [os.path.join(into, name) for name in texts]
    there = [path for path in paths if os.path.exists(path)]
    if there:
        from orchestrator.app.config_files import remove_files

        remove_files(there)
    return there


# The units to install: the shipped files, with this program and these directories in them.


def unit_texts(shipped: Mapping[str, str], *, program: str, config: str, state: str) -> dict[str, str]:
    """Render the text of each unit by its name. `program`: the absolute path of the command."""
    return {
        name: (_web_unit if name in WEB_UNITS else _unit)(text, program, config, state)
        for name, text in shipped.items()
    }


def _unit(text: str, program: str, config: str, state: str) -> str:
    text = text.replace(f"={SHIPPED} ", f"={quote_path(program)} ")
    told = []
    if config != USUAL_FOLDERS[0]:
        told.append(f'Environment="POOLFERRY_CONFIG={_escaped(config)}"')
    if state != USUAL_FOLDERS[1]:  # systemd creates only directories below /var/lib
        told.append(f'Environment="POOLFERRY_STATE={_escaped(state)}"')
        text = _STATE.sub("", text)
        if "ProtectSystem=strict\n" in text:
            told.append(f'ReadWritePaths="{_escaped(state)}"')
    return text.replace("[Service]\n", "\n".join(["[Service]", *told, ""]), 1)


def _web_unit(text: str, program: str, config: str, state: str) -> str:
    """Render a unit that sees only a part of all files: it must see this program, its modules, and these directories."""
    text = text.replace(f"={SHIPPED} ", f"={quote_path(program)} ")
    for usual, here in zip(USUAL_FOLDERS, (config, state), strict=True):
        word = re.compile(rf"(?<=[ =])(-?(?:POOLFERRY_[A-Z]+=)?){re.escape(usual)}(/\S*)?(?=\s)")
        text = word.sub(partial(_word_with_path, here), text)
    hidden = [path for path in dict.fromkeys(_program_folders(program)) if not path.startswith(("/usr/", "/lib/"))]
    seen = "".join(f'BindReadOnlyPaths="{_escaped(path)}"\n' for path in hidden)
    return text.replace("InaccessiblePaths=", f"{seen}InaccessiblePaths=", 1) if seen else text


def _with_options(text: str, options: Sequence[str]) -> str:
    if "--fleet" in options:
        # As whom it asks the centre on this machine, as the user has no entry in /etc/passwd; and where, as /var/run is not in its sandbox.
        asks = "Environment=PGUSER=poolferry-web\nEnvironment=PGHOST=/run/postgresql"
        text = text.replace("\nRestart=", f"\n{asks}\nRestart=", 1)
    return re.sub(r"(?m)^(ExecStart=.* web)$", lambda found: " ".join((found[1], *options)), text)


def _word_with_path(path: str, found: re.Match[str]) -> str:
    word = _escaped(f"{found[1]}{path}{found[2] or ''}")
    return f'"{word}"' if re.search(r"[\s'\"]", word) else word


def _program_folders(program: str) -> tuple[str, ...]:
    """Return the folders of the command, of its Python and of our modules."""
    modules = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return (os.path.dirname(os.path.realpath(program)), sys.prefix, sys.base_prefix, modules)


def quote_path(path: str) -> str:
    """Quote a path for a command line of a unit. Source: systemd.service(5): $ begins a variable."""
    path = _escaped(path).replace("$", "$$")
    return f'"{path}"' if re.search(r"[\s'\"]", path) else path


def _escaped(path: str) -> str:
    """Escape a path for a unit. Source: systemd.unit(5): % begins a specifier."""
    return path.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
