"""The rules of the house, run as tests: who may import whom, doors, purity, clocks, shape.

Every rule takes one module and returns its complaints; `BROKEN` shows each rule a module it must refuse.
"""

import ast
import functools
import graphlib
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.place_writers import place_writers
from tests.places_named import MADE, foreign_words
from tests.syntax import walked
from tests.text_openers import translated_texts
from tests.transactions import called_within
from tests.vocabulary import OF_THE_FIELD, OLD_WORDS, words_of

ROOT = Path(__file__).resolve().parent.parent

MAY_IMPORT = {
    "domain": "",
    "planners": "domain",
    "trees": "domain",
    "process": "domain",
    "history": "domain trees",
    "config": "domain trees",
    # The centre of many hosts: app brings what history knows to it; no run and no room below app knows of it.
    "fleet": "domain trees process",
    "schedule": "domain",
    "verify": "domain trees process",
    "disks": "domain trees process",
    "notices": "domain process",
    "engines": "domain process",
    "gate": "domain engines verify",
    "runner": "domain trees planners process engines.contract disks verify history",
    # What is drawn are words of the domain, what planners decided, what history remembers, and what engines found.
    "views": "domain planners history.values engines.contract",
    "app": "domain trees planners process engines disks verify config schedule history fleet runner notices views gate compose",
    "cli": "app views domain compose daemon web",
    "daemon": "app views domain compose schedule",
    "web": "app views domain compose",
    "compose": "domain trees planners process engines disks verify config schedule history runner notices",
    "__init__": "",
    "__main__": "cli process",
}
DOORS = {
    "process": "subprocess pty multiprocessing os.system os.popen os.exec os.spawn os.posix_spawn os.fork",
    "history": "sqlite3",
    "config": "tomllib yaml",
    "schedule": "apscheduler cronsim",
    "fleet": "psycopg",
    "notices": "apprise smtplib urllib.request",
    "cli": "click rich",
    "daemon views": "prometheus_client",
    "web": "starlette uvicorn jinja2",
}
# What only computes: whole rooms and chapters ("*"), or single files of those that also look at the world or change it.
PURE = {
    "config": "channels kit_review locate models parse_job schema sets starter_files times",
    "config/migrate": "*",
    "disks": "commands errors format kits marker",
    "domain": "*",
    "engines/contract": "*",
    "engines/pool": "commands config_checks errors health_checks model options parse plan status_json status_text",
    "engines/prune": "commands errors model options plan",
    "engines/rsync": "commands errors model options parallel parse plan recovery_page refusals script_commands",
    "engines/sanoid": "commands errors model options parse plan",
    "engines/zfs": "model options",
    "engines/zfs/commands": "*",
    "engines/zfs/drill": "candidates drill",
    "engines/zfs/errors": "*",
    "engines/zfs/holds": "*",
    "engines/zfs/plan": "*",
    "engines/zfs/recovery": "kit_diff pool_consumers pool_layout recovery_page",
    "engines/zfs/restore": "finish model plan pool_root properties repair uid_map",
    "engines/zfs/survey": "parse resume_token",
    "engines/zfs/verify": "checksum compare",
    "gate": "*",
    "history": "failures values",
    "planners": "*",
    "process": "scripted",
    "runner/restore": "request",
    "schedule": "triggers",
    "verify": "compare compare_sides completeness entry manifest_lookup partition pipelines results",
    "views": "*",
}
CLOCKS = ("app", "cli", "daemon", "compose")
EFFECTS = set(
    "asyncio concurrent ctypes fcntl getpass glob http io logging mmap multiprocessing os pathlib pty random select "
    "selectors shutil signal socket sqlite3 subprocess tempfile threading time tomllib urllib.request".split()
)
# What a pure module may take from a module that also has effects: text, names and numbers.
HARMLESS = re.compile(
    r"os|os\.(fsencode|fsdecode|fspath|sep|path|PathLike|path\.(join|split|splitext|basename|dirname|normpath|isabs|"
    r"commonpath|commonprefix))|pathlib|pathlib\.Pure\w+(\..*)?|signal|signal\.(Signals|SIG\w+)(\..*)?|"
    r"random|random\.Random(\..*)?|time|time\.(struct_time)"
)
CLOCK = re.compile(r"datetime\.(datetime|date)\.(now|utcnow|today)|time\.(time|time_ns|localtime|ctime)|os\.times")
STOPWATCH = re.compile(r"time\.(monotonic|perf_counter|process_time)(_ns)?")
ENGINE_FILES = set("__init__ model options commands plan errors survey system_check".split())
WALL = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One module: its dotted name below the package, and what is written in it."""

    name: str
    text: str

    @property
    def room(self) -> str:
        return self.name.split(".")[0]

    @property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Return every node of its syntax tree; walked once for all rules."""
        return walked(self.text)

    @property
    def pure(self) -> bool:
        """Return whether the table of pure rooms and files names this one."""
        folder, _, name = self.name.rpartition(".")
        files = PURE.get(folder.replace(".", "/"), "")
        return files == "*" or name in files.split()


def modules(folder: Path) -> list[Module]:
    """All modules below the folder, packages under the name of their folder plus `__init__`."""
    return [
        Module(name=".".join(path.relative_to(folder).with_suffix("").parts), text=path.read_text())
        for path in sorted(folder.rglob("*.py"))
    ]


def imports(module: Module) -> Iterator[tuple[str, str]]:
    """Each import, as (the local name, the full dotted name), relative ones resolved."""
    here = ["orchestrator", *module.name.split(".")]
    for node in module.nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(here[: len(here) - node.level]) if node.level else ""
            whole = ".".join(part for part in (base, node.module) if part)
            for alias in node.names:
                yield alias.asname or alias.name, f"{whole}.{alias.name}"


def spelled(node: ast.expr) -> str:
    """`a.b.c` for an attribute chain, `a` for a name, nothing for the rest."""
    if isinstance(node, ast.Attribute):
        front = spelled(node.value)
        return f"{front}.{node.attr}" if front else ""
    return node.id if isinstance(node, ast.Name) else ""


@functools.cache
def mentioned(module: Module) -> set[str]:
    """Every dotted name the module imports or uses, under its full name."""
    known = dict(imports(module))
    names = set(known.values())
    for node in module.nodes:
        chain = spelled(node) if isinstance(node, ast.Attribute) else ""
        first, _, rest = chain.partition(".")
        if rest:
            names.add(f"{known[first]}.{rest}" if first in known else chain if first in _roots(known) else "")
    return names - {""}


def _roots(known: dict[str, str]) -> set[str]:
    return {name.split(".")[0] for name in known if "." in name}


def keeps_to_the_table(module: Module) -> list[str]:
    if module.room not in MAY_IMPORT:
        return [f"{module.name}: there is no room {module.room}"]
    allowed = [module.room, *MAY_IMPORT[module.room].split()]
    ours = [full.removeprefix("orchestrator.") for _, full in imports(module) if full.startswith("orchestrator.")]
    return [
        f"{module.name}: may not import {name}"
        for name in ours
        if name != "__version__" and not any(f"{name}.".startswith(f"{room}.") for room in allowed)
    ]


def leaves_siblings_alone(module: Module) -> list[str]:
    own = module.name.split(".")
    if own[0] != "engines" or len(own) < 3:
        return []
    seen = [full.split(".") for _, full in imports(module) if full.startswith("orchestrator.engines")]
    return [f"{module.name}: looks at {'.'.join(p[1:])}" for p in seen if p[2:3] not in (["contract"], [own[1]])]


def uses_its_own_door(module: Module) -> list[str]:
    return [
        f"{module.name}: {name} belongs to {room}"
        for room, doors in DOORS.items()
        if module.room not in room.split()
        for name in sorted(mentioned(module))
        for door in doors.split()
        if f"{name}.".startswith(f"{door}.") or (door.startswith("os.") and name.startswith(door))
    ]


def is_as_pure_as_it_says(module: Module) -> list[str]:
    if not module.pure:
        return []
    used = {
        n
        for n in mentioned(module)
        if EFFECTS & {n.split(".")[0], ".".join(n.split(".")[:2])} and not HARMLESS.fullmatch(n)
    }
    calls = {spelled(n.func) for n in module.nodes if isinstance(n, ast.Call)}
    return [f"{module.name}: is not pure: {name}" for name in sorted(used | (calls & {"open", "input", "print"}))]


def reads_no_clock(module: Module) -> list[str]:
    if module.room in CLOCKS:
        return []
    found = {name for name in mentioned(module) if CLOCK.fullmatch(name)}
    if module.room != "process":
        found |= {name for name in mentioned(module) if STOPWATCH.fullmatch(name)}
    return [f"{module.name}: reads the clock: {name}" for name in sorted(found)]


def speaks_through_its_callers(module: Module) -> list[str]:
    """Only the command line has a terminal; what else works for people is handed somebody who hears it."""
    if module.room not in ("app", "views", "daemon", "web"):
        return []
    calls = {spelled(n.func) for n in module.nodes if isinstance(n, ast.Call)}
    streams = {name for name in mentioned(module) if re.match(r"sys\.(stdin|stdout|stderr)\b", name)}
    return [f"{module.name}: speaks to a terminal: {name}" for name in sorted(streams | (calls & {"print", "input"}))]


def has_a_noun_for_a_name(module: Module) -> list[str]:
    last = module.name.rpartition(".")[2]
    return [f"{module.name}: a file is named by a noun of the field, not by a verb in -ing"] * last.endswith("ing")


def begins_docstrings_with_a_sentence(module: Module) -> list[str]:
    """A first line says what something does or is; it is no half of a question."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    texts = [ast.get_docstring(node) or "" for node in module.nodes if isinstance(node, kinds)]
    questions = re.compile(r"(What|Whether|How|Who|Whose|Which|Where|When|Why|That)\b")
    if module.name == "lab.build":  # its text is part of the key of the images, which take long to build
        return []
    return [f"{module.name}: begins a docstring with {text.split()[0]}" for text in texts if questions.match(text)]


def stays_below_the_walls(module: Module) -> list[str]:
    lines = len(module.text.splitlines())
    functions = [n for n in module.nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    long = [(n.name, (n.end_lineno or 0) - n.lineno + 1) for n in functions]
    return [f"{module.name}: {lines} lines, the wall is {WALL}"] * (lines > WALL) + [
        f"{module.name}: {name} has {length} lines, the stop is 60" for name, length in long if length > 60
    ]


def asks_no_protocol_by_isinstance(module: Module) -> list[str]:
    """At run time that is slow, and imports `inspect`: engines.contract.ask has the way."""
    return [
        f"{module.name}: {spelled(node.func)} of {each}: use implements"
        for node in module.nodes
        if isinstance(node, ast.Call) and spelled(node.func) in ("isinstance", "issubclass") and len(node.args) == 2
        for each in sorted({x.id for x in ast.walk(node.args[1]) if isinstance(x, ast.Name)} & protocols())
    ] + [f"{module.name}: runtime_checkable"] * ("typing.runtime_checkable" in mentioned(module))


def starts_rsync_behind_the_wall(module: Module) -> list[str]:
    """An rsync whose command line is made elsewhere may not be known to process.link_wall, and would follow links.

    What a gate starts is behind the wall of process.confine.
    """
    if module.name in ("engines.rsync.commands", "gate.read_only", "gate.add_points"):
        return []
    return [
        f"{module.name}: makes a command line of rsync: engines.rsync.commands is the place"
        for node in module.nodes
        if isinstance(node, ast.Tuple | ast.List)
        for word in node.elts
        if isinstance(word, ast.Constant) and isinstance(word.value, str) and word.value.rpartition("/")[2] == "rsync"
    ]


def looks_for_points_by_one_door(module: Module) -> list[str]:
    """A look that fails, or finds no sign of the copies, is recorded where points are looked for: all that is said later knows it.

    A dry run records nothing.
    """
    if module.room not in ("runner", "app") or module.name in ("runner.last_look", "runner.dry_run"):
        return []
    calls = {spelled(n.func) for n in module.nodes if isinstance(n, ast.Call)}
    return [
        f"{module.name}: asks an engine for points: runner.last_look has find_points"
        for call in sorted(calls)
        if re.search(r"(^|\.)engine\.points$", call)
    ]


def reaches_hosts_by_their_own_words(module: Module) -> list[str]:
    """A sentence that writes out `ssh {name}` forgets the port, the user or the brackets: `Host.ssh` has them."""
    if module.name == "domain.place" or not re.search(r"""["'`( ]ssh (-p )?\{|"ssh", \*?\w*(host|port)""", module.text):
        return []
    return [f"{module.name}: writes out how a host is reached; Host.ssh does that"]


def splits_answers_at_newlines(module: Module) -> list[str]:
    """Python takes returns and other signs for line ends, too: an owner who has one in a value would write lines of her own."""
    shown = module.room in ("views", "cli") or module.name == "domain.run_values"
    found = () if shown else re.findall(r"\.splitlines\b", module.text)
    return [f"{module.name}: splits an answer by splitlines(); domain.answers.split_lines splits it" for _ in found]


def reads_texts_as_they_are(module: Module) -> list[str]:
    """Opened without `newline`, a text has a newline for each return in it: an owner's value would again be lines of her own."""
    found = translated_texts(module.nodes)
    return [f"{module.name}: {call} turns returns into newlines: open it with newline=" for call in found]


def writes_beside_copies_by_an_open_folder(module: Module) -> list[str]:
    found = () if module.room in ("process", "history", "config") else place_writers(module.nodes)
    return [
        f"{module.name}: {name} writes by the path of a place: trees.beneath has Folder.ours_at, and held"
        for name in found
    ]


def notifies_nobody_within_a_transaction(module: Module) -> list[str]:
    """Nobody else can write meanwhile, and a mail or a hook may take minutes: `afterwards` of a history waits for its end."""
    tells = r"(^|\.)_?(notify|call_(late_)?hooks|call_line|deliver_messages|send_(message|mail|http|apprise|within))$"
    found = sorted(name for name in called_within(module.nodes) if re.search(tells, name))
    return [f"{module.name}: {name} within a transaction" for name in found]


def judges_ages_by_one_door(module: Module) -> list[str]:
    """Else what a wrong clock dated in a year to come is young until then: nothing is read, copied or told. `domain.age` knows."""
    compared = [ast.unparse(node) for node in module.nodes if isinstance(node, ast.Compare)]
    ages = [each for each in compared if re.search(r" - [^()]+\)\.total_seconds\(\)", each)]
    return [] if module.name == "domain.age" else [f"{module.name}: compares an age by itself: {each}" for each in ages]


def records_verdicts_by_one_door(module: Module) -> list[str]:
    """`verdicts` of a run's recorder makes sure first that the disk is there: what cannot be read on one that was pulled out is not damaged."""
    if not module.name.startswith("runner."):
        return []
    calls = [ast.unparse(node.func) for node in module.nodes if isinstance(node, ast.Call)]
    found = [
        each for each in calls if re.search(r"(history\.verified|problems\.open)$", each) and "verdicts." not in each
    ]
    return [f"{module.name}: {each} records a verdict by itself" for each in found]


@functools.cache
def protocols() -> frozenset[str]:
    """The names of all our protocols."""
    return frozenset(
        node.name
        for module in modules(ROOT / "orchestrator")
        for node in module.nodes
        if isinstance(node, ast.ClassDef) and any(spelled(base) == "Protocol" for base in node.bases)
    )


def takes_nothing_from_a_test(module: Module) -> list[str]:
    found = [full for _, full in imports(module) if re.match(r"tests\.(\w+\.)*test_", full)]
    return [f"{module.name}: {name} is wanted by more than one test: it needs a room of its own" for name in found]


def engines_of_one_shape(names: list[str]) -> list[str]:
    """Complaints about the engine folders: each has the same files, or chapters; what more it needs is its own matter."""
    parts = [name.split(".") for name in names]
    shapes = {
        p[1]: {q[2] for q in parts if q[:2] == p[:2]}
        for p in parts
        if p[0] == "engines" and len(p) > 2 and p[1] != "contract"
    }
    return [
        f"engines/{engine} lacks {', '.join(sorted(ENGINE_FILES - files))}"
        for engine, files in shapes.items()
        if ENGINE_FILES - files
    ]


def circle(rooms: list[Module]) -> list[str]:
    """Modules that import each other in a circle, also where one of them does so only when it is needed; none: empty."""
    names = {f"orchestrator.{module.name}".removesuffix(".__init__"): module.name for module in rooms}

    def taken(full: str) -> str:
        while full not in names:
            full = full.rpartition(".")[0]
        return names[full]

    graph = {
        module.name: {taken(full) for _, full in imports(module) if full.startswith("orchestrator.")} - {module.name}
        for module in rooms
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


Rule = Callable[[Module], list[str]]
RULES: list[Rule] = [
    keeps_to_the_table, leaves_siblings_alone, uses_its_own_door, is_as_pure_as_it_says, reads_no_clock,
    speaks_through_its_callers, has_a_noun_for_a_name, begins_docstrings_with_a_sentence, stays_below_the_walls,
    asks_no_protocol_by_isinstance, starts_rsync_behind_the_wall, reaches_hosts_by_their_own_words,
    looks_for_points_by_one_door, splits_answers_at_newlines, reads_texts_as_they_are,
    writes_beside_copies_by_an_open_folder, notifies_nobody_within_a_transaction, judges_ages_by_one_door,
    records_verdicts_by_one_door,
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_the_house_keeps_its_rules(rule: Rule) -> None:
    rooms = modules(ROOT / "orchestrator")
    assert rooms
    assert [complaint for module in rooms for complaint in rule(module)] == []


@pytest.mark.parametrize(
    "rule", [stays_below_the_walls, has_a_noun_for_a_name, begins_docstrings_with_a_sentence, takes_nothing_from_a_test]
)
def test_so_do_its_tests(rule: Rule) -> None:
    assert [complaint for module in modules(ROOT / "tests") for complaint in rule(module)] == []


def test_engines_have_one_shape() -> None:
    assert engines_of_one_shape([module.name for module in modules(ROOT / "orchestrator")]) == []


def class_names(base: str = "orchestrator") -> dict[str, list[str]]:
    """Each class's name, with the modules that define one of that name."""
    found: dict[str, list[str]] = {}
    for module in modules(ROOT / base):
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(module.name)
    return found


def test_a_class_name_means_one_thing() -> None:
    assert {name: where for name, where in class_names().items() if len(where) > 1} == {}


@pytest.mark.parametrize("base", ["orchestrator", "tests", "hooks", "systemd"])
def test_classes_and_files_are_named_in_the_fields_words(base: str) -> None:
    files = {path.stem for path in (ROOT / base).rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert {name for name in {*class_names(base), *files} - OF_THE_FIELD if words_of(name) & OLD_WORDS} == set()
    scripts = {path.name for path in (ROOT / base).rglob("*") if path.suffix in (".sh", ".pl", ".lua")}
    assert {name for name in scripts if Path(name).stem.endswith("ing")} == set()
    assert words_of("DiskStanding") & OLD_WORDS
    assert words_of("read_known") & OLD_WORDS


def test_nobody_imports_in_circles() -> None:
    assert circle(modules(ROOT / "orchestrator")) == []


def test_nothing_speaks_of_another_place() -> None:
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [f for f in folders if f == ".ci" or not (f.startswith(".") or f in MADE)]
        for name in set(names) - MADE - {".git"}:  # .git: a worktree's is a file
            text = (Path(folder) / name).read_text(errors="replace")
            found += [(os.path.join(folder, name), word) for word in foreign_words(text)]
    assert found == []


BROKEN: list[tuple[Rule, str, str]] = [
    (keeps_to_the_table, "cellar.wine", "x = 1"),
    (keeps_to_the_table, "domain.job", "from orchestrator.planners import due"),
    (keeps_to_the_table, "domain.job", "from ..planners.due import due_now"),
    (keeps_to_the_table, "planners.due", "def f():\n    import orchestrator.history.store"),
    (keeps_to_the_table, "runner.run", "from orchestrator.engines.zfs import plan"),
    (keeps_to_the_table, "engines.zfs.plan", "from orchestrator import planners"),
    (leaves_siblings_alone, "engines.zfs.plan", "from orchestrator.engines.rsync.model import Tree"),
    (leaves_siblings_alone, "engines.zfs.plan", "from ..rsync import model"),
    (leaves_siblings_alone, "engines.zfs.plan", "from orchestrator.engines import registry"),
    (uses_its_own_door, "runner.run", "import subprocess"),
    (uses_its_own_door, "runner.run", "import os\nos.execvp('a', [])"),
    (uses_its_own_door, "config.load", "from sqlite3 import connect"),
    (uses_its_own_door, "cli.check", "import tomllib"),
    (uses_its_own_door, "app.fleet_sender", "def f():\n    import psycopg"),
    (keeps_to_the_table, "runner.run", "from orchestrator.fleet.connection import open_centre"),
    (uses_its_own_door, "daemon.loop", "from apscheduler.schedulers import base"),
    (uses_its_own_door, "compose", "import rich.table"),
    (uses_its_own_door, "app.run_jobs", "import click"),
    (uses_its_own_door, "views.status", "from rich.table import Table"),
    (keeps_to_the_table, "cli.run", "from orchestrator.runner.run import run_job"),
    (keeps_to_the_table, "app.session", "from orchestrator.cli.terminal import screen"),
    (keeps_to_the_table, "views.status", "from orchestrator.history.views import HistoryReader"),
    (is_as_pure_as_it_says, "views.status", "print(1)"),
    (is_as_pure_as_it_says, "domain.job", "import threading"),
    (is_as_pure_as_it_says, "domain.job", 'import os\nx = os.environ["HOME"]'),
    (is_as_pure_as_it_says, "domain.job", 'import os.path as p\nx = p.exists("a")'),
    (is_as_pure_as_it_says, "domain.job", "from pathlib import Path"),
    (is_as_pure_as_it_says, "domain.job", 'x = open("a")'),
    (is_as_pure_as_it_says, "domain.job", "from time import sleep"),
    (reads_no_clock, "runner.run", "from datetime import UTC, datetime\nx = datetime.now(UTC)"),
    (reads_no_clock, "process.meter", "import datetime as d\nx = d.date.today()"),
    (reads_no_clock, "runner.run", "from time import monotonic as tick"),
    (reads_no_clock, "process.meter", "import time\nx = time.time()"),
    (speaks_through_its_callers, "app.run_jobs", "print(1)"),
    (keeps_to_the_table, "web.pages", "from orchestrator.history.views import open_reader"),
    (keeps_to_the_table, "app.past", "from orchestrator.web.pages import Pages"),
    (uses_its_own_door, "cli.web", "import starlette.applications"),
    (speaks_through_its_callers, "web.pages", "print(1)"),
    (speaks_through_its_callers, "daemon.loop", "import sys\nsys.stderr.write('a')"),
    (has_a_noun_for_a_name, "planners.drilling", ""),
    (begins_docstrings_with_a_sentence, "domain.job", '"""What a job is."""'),
    (begins_docstrings_with_a_sentence, "domain.job", 'def f():\n    """Whether it is due."""'),
    (stays_below_the_walls, "domain.job", "x = 1\n" * 601),
    (stays_below_the_walls, "domain.job", "def f():\n" + "    x = 1\n" * 60),
    (asks_no_protocol_by_isinstance, "runner.run", "x = isinstance(engine, (int, TreeEngine))"),
    (asks_no_protocol_by_isinstance, "runner.run", "from typing import runtime_checkable"),
    (starts_rsync_behind_the_wall, "engines.rsync.restore", 'x = Command(argv=("rsync", "-a", "--", a, b))'),
    (starts_rsync_behind_the_wall, "runner.restore.files", 'x = ["/usr/bin/rsync", *words]'),
    (reaches_hosts_by_their_own_words, "app.bootstrap", 'hint = f"`ssh {host.name} true` must print nothing"'),
    (reaches_hosts_by_their_own_words, "engines.zfs.plan", 'end = shlex.join(("ssh", host.name, "kill", "1"))'),
    (looks_for_points_by_one_door, "runner.verify.verify", "points = tools.engine.points(job, writer)"),
    (splits_answers_at_newlines, "engines.zfs.engine", "x = parse_holds(told.stdout.splitlines(), pool, job)"),
    (splits_answers_at_newlines, "gate.receive", "x = map(str.splitlines, printed)"),
    (reads_texts_as_they_are, "process.mounted", 'with open(path, encoding="ascii") as file:\n    pass'),
    (reads_texts_as_they_are, "disks.power", 'x = os.fdopen(fd, "r", encoding="utf-8")'),
    (reads_texts_as_they_are, "app.past", 'x = open(path, mode="rt+")'),
    (writes_beside_copies_by_an_open_folder, "runner.after_run", "def f():\n    os.replace(local, there.path)"),
    (writes_beside_copies_by_an_open_folder, "app.demo", "def f():\n    p = f'{to.path}/a'\n    open(p, 'wb')"),
    (notifies_nobody_within_a_transaction, "app.notify", "with a.b.together(), c:\n    if d:\n        x = e.notify(f)"),
    (notifies_nobody_within_a_transaction, "a", "def b():\n    call_hooks()\nwith c.transaction():\n    d.b()"),
    (judges_ages_by_one_door, "runner.run", "x = not every or (now - read).total_seconds() > every"),
    (records_verdicts_by_one_door, "runner.mend", "tools.history.verified(a)"),
    (records_verdicts_by_one_door, "runner.mend", "history.problems.open(a)"),
    (takes_nothing_from_a_test, "lab.test_disks", "from tests.lab.test_sanoid import age"),
    (takes_nothing_from_a_test, "lab.test_disks", "from tests.lab import test_sanoid"),
]
SOUND: list[tuple[Rule, str, str]] = [
    (reaches_hosts_by_their_own_words, "domain.plan", 'return f"{self.host.ssh} {line}"'),
    (starts_rsync_behind_the_wall, "compose", 'x = load_engine("rsync")'),
    (keeps_to_the_table, "runner.run", "from orchestrator.engines.contract import Engine"),
    (keeps_to_the_table, "cli.run", "from orchestrator import __version__, compose"),
    (leaves_siblings_alone, "engines.zfs.plan", "from orchestrator.engines import contract\nfrom . import model"),
    (uses_its_own_door, "process.executor", "import subprocess"),
    (is_as_pure_as_it_says, "domain.job", 'import os\nx = os.fsencode(os.path.join("a", "b"))'),
    (is_as_pure_as_it_says, "engines.zfs.plan.steps", "import signal\nx = -signal.SIGPIPE.value"),
    (reads_no_clock, "process.meter", "import time\nx = time.monotonic()"),
    (speaks_through_its_callers, "cli.terminal.screen", "import sys\nsys.stdout.write('a')"),
    (reads_no_clock, "compose", "from datetime import UTC, datetime\nx = datetime.now(UTC)"),
    (reads_texts_as_they_are, "process.mounted", 'x = open(path, encoding="ascii", newline="\\n").read()'),
    (reads_texts_as_they_are, "app.past", 'x = [open(a, "rb"), open(b, "w", encoding="utf-8"), history.open(c)]'),
    (notifies_nobody_within_a_transaction, "a", "with b.together():\n    b.then(lambda: b.notify(c))\nb.notify(d)"),
    (records_verdicts_by_one_door, "runner.mend", "journal.verdicts.problems.open(a)\njournal.verdicts.verified(b)"),
    (takes_nothing_from_a_test, "lab.test_disks", "from tests.lab.pools import age"),
]


@pytest.mark.parametrize(("rule", "name", "text"), BROKEN)
def test_a_rule_sees_what_breaks_it(rule: Rule, name: str, text: str) -> None:
    assert rule(Module(name=name, text=text))


@pytest.mark.parametrize(("rule", "name", "text"), SOUND)
def test_a_rule_lets_sound_things_be(rule: Rule, name: str, text: str) -> None:
    assert rule(Module(name=name, text=text)) == []


def test_a_misshapen_engine_is_seen() -> None:
    zfs = [f"engines.zfs.{name}" for name in ENGINE_FILES]
    assert engines_of_one_shape(zfs) == []
    assert engines_of_one_shape(zfs[1:])
    assert engines_of_one_shape([*zfs, "engines.rsync.points"])
    assert engines_of_one_shape([*zfs, "engines.zfs.bases"]) == []


def test_a_circle_is_seen() -> None:
    lazy = Module(name="runner.one", text="def one():\n    from orchestrator.runner.two import two\n")
    other = Module(name="runner.two", text="from orchestrator.runner import one\n")
    face = Module(name="runner.__init__", text="")
    assert set(circle([lazy, other, face])) == {"runner.one", "runner.two"}
    assert circle([lazy, face, Module(name="runner.two", text="")]) == []


@pytest.mark.parametrize("text", ["/wor" + "k/main", "https://py" + "pi.org/simple", "--find" + "-links x"])
def test_a_foreign_word_is_seen(text: str) -> None:
    assert foreign_words(text)


def test_no_test_touches_a_persons_home(tmp_path: Path) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "POOLFERRY_CONFIG", "POOLFERRY_STATE", "TMPDIR"):
        assert os.environ[name].startswith(str(tmp_path)), name
