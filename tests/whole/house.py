"""A house of its own for each whole-program test: configuration, state, source and target, and the real executable."""

import contextlib
import json
import os
import re
import shlex
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from orchestrator.domain.names import POINT_NAME
from orchestrator.history.authentication_key import read_key
from orchestrator.verify.manifest import read_manifest, write_manifest
from tests.fork_server import run_command
from tests.processes import family

CHECKOUT = Path(__file__).resolve().parents[2]
# `cure`: what `hint` was called before, for one version.
RUN_KEYS = {
    "format", "run", "job", "outcome", "why", "hint", "cure", "moved_bytes", "took_s", "resumed", "attempts", "steps", "points",
    "warnings", "evidence",
}  # fmt: skip
STEP_KEYS = {"action", "does", "why", "moved_bytes", "took_s", "confirmed", "proved"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """End of one command. `value`: what it printed with --json."""

    code: int
    value: dict[str, Any]
    errors: str

    @property
    def outcome(self) -> str:
        """The outcome of a run; what went wrong in its place, so that a failed assertion tells it."""
        return str(self.value.get("outcome", self.value.get("error", self.errors)))

    def __getitem__(self, key: str) -> Any:
        return self.value[key]


class House:
    """One configuration with its state. `source` and `target` are where jobs copy from and to when nothing else is told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "config"
        self.state = folder / "state"
        self.source = folder / "source"
        self.target = folder / "target"
        self.python = sys.executable
        self.environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
        (self.config / "jobs").mkdir(parents=True)
        self.source.mkdir(exist_ok=True)
        self._places: dict[str, str] = {}
        self._begun: list[subprocess.Popen[str]] = []

    def job(self, name: str = "photos", /, **toml: Any) -> str:
        """Declares a job, or declares it anew. `target` is a path or URL; a mapping is a section; max_deleted is max-deleted.

        Without a [retry] of its own one attempt is all, so that a test sees what the first failure does.
        """
        declared = {"engine": "rsync", "source": str(self.source), "retry": {"attempts": 1}, **toml}
        self._places[name] = str(declared.get("target", self.target))
        sections = {key: value for key, value in declared.items() if isinstance(value, Mapping)}
        plain = {key: value for key, value in declared.items() if key not in sections and value is not None}
        lines = _lines({**plain, "target": name})
        for section, keys in sections.items():
            lines += [f"[{section}]", *_lines(keys)]
        self.write(self.config / "jobs" / f"{name}.toml", "\n".join(lines))
        places = (f"[place.{place}]\npath = {_toml(path)}" for place, path in self._places.items())
        self.write(self.config / "targets.toml", "\n".join(places))
        return name

    def write(self, path: str | bytes | Path, content: str | bytes = b"") -> Path:
        """A file with that content, with the folders above it; a relative path lies in the source."""
        place = os.path.join(os.fsencode(self.source), os.fsencode(path))
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        return Path(os.fsdecode(place))

    def argv(self, *arguments: str) -> list[str]:
        """The command line of the program, told where this house is."""
        where = ["--config", str(self.config), "--state", str(self.state)]
        return [self.python, "-m", "orchestrator", *where, "--json", *arguments]

    def call(self, *arguments: str, before: Sequence[str] = ()) -> Ran:
        """Runs a command to its end. `before`: a program to run it through, such as setpriv."""
        if not before and self.python == sys.executable:
            done = run_command(self.argv(*arguments)[3:], environment=self.environment, folder=os.getcwd(), timeout=300)
            return _ran(
                done.returncode, *(os.fsdecode(said).replace("\r\n", "\n") for said in (done.stdout, done.stderr))
            )
        told = subprocess.run(
            [*before, *self.argv(*arguments)], capture_output=True, text=True, errors="surrogateescape",
            env=self.environment, timeout=300,
        )  # fmt: skip
        return _ran(told.returncode, told.stdout, told.stderr)

    def run(self, job: str = "photos", *arguments: str) -> Ran:
        """Runs a job to its end."""
        return self.call("run", job, *arguments)

    def start(self, job: str = "photos", *arguments: str) -> "subprocess.Popen[str]":
        """Begins a run; `ended` waits for it."""
        return self.start_call("run", job, *arguments)

    def start_call(self, *arguments: str) -> "subprocess.Popen[str]":
        """Begins any command, in a session of its own as a service's is."""
        begun = subprocess.Popen(
            self.argv(*arguments), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, errors="surrogateescape", env=self.environment, start_new_session=True,
        )  # fmt: skip
        self._begun.append(begun)
        return begun

    def ended(self, process: "subprocess.Popen[str]", *, within: float = 120) -> Ran:
        """The end of a run that was begun."""
        out, err = process.communicate(timeout=within)
        return _ran(process.returncode, out, err)

    def close(self) -> None:
        """Ends what was begun and not waited for: a test that failed leaves nothing to the next one."""
        for process in self._begun:
            if process.returncode is None:
                process.kill()
            for stream in (process.stdout, process.stderr):
                if stream:
                    stream.close()
            process.wait(30)

    def follow(self, hint: str, which: int = 0) -> Ran:
        """Runs a command that a hint names, as it stands there."""
        return self.call(*hinted_commands(hint)[which][1:])

    def points(self, target: Path | None = None) -> list[str]:
        """The restore points on a target, oldest first."""
        folder = (target or self.target) / "points"
        names = os.listdir(folder) if folder.is_dir() else []
        return sorted(name for name in names if POINT_NAME.fullmatch(name))

    def point(self, which: int = -1) -> Path:
        """The tree of one point, the newest if nothing is told."""
        return self.target / "points" / self.points()[which]

    def redate(self, old: str, new: str) -> None:
        """Gives a point another date, as if it had been made then: its manifest, the tag of it, and the history say so too."""
        points = self.target / "points"
        manifest = str(points / f"{old}.manifest.gz")
        owner = os.stat(manifest)
        header, entries = read_manifest(manifest)
        write_manifest(manifest, replace(header, point=new), list(entries), key=read_key(str(self.state)))
        os.chown(manifest, owner.st_uid, owner.st_gid)
        for ending in ("", ".manifest.gz"):
            os.rename(points / f"{old}{ending}", points / f"{new}{ending}")
        latest = self.target / "latest"
        latest.unlink()
        latest.symlink_to(f"points/{self.points()[-1]}")
        with contextlib.closing(sqlite3.connect(self.state / "history.sqlite")) as history, history:
            history.execute("UPDATE OR REPLACE points SET name = ? WHERE name = ?", (new, old))


def hinted_commands(hint: str, program: str = "poolferry") -> list[list[str]]:
    """The words of each command in a hint: between backquotes, or to the end of its part."""
    found = re.findall(rf"`({program} [^`]*)`|(?:^|[ :])({program} [^`;]*)(?=;|$)", hint)
    return [shlex.split(quoted or plain) for quoted, plain in found]


def _ran(code: int, out: str, err: str) -> Ran:
    value = json.loads(out) if out else {}  # one object and nothing else, or it does not parse
    assert not value or value["format"] == 1
    assert "Traceback" not in err, err
    return Ran(code=code, value=value, errors=err)


def _lines(keys: Mapping[str, Any]) -> list[str]:
    return [f"{key.replace('_', '-')} = {_toml(value)}" for key, value in keys.items()]


def _toml(value: Any) -> str:
    return json.dumps(str(value) if isinstance(value, Path) else value)


def url(path: bytes) -> str:
    """A file:// URL for a path of any bytes."""
    return "file://" + "".join(
        chr(byte) if (chr(byte).isalnum() and byte < 128) or byte == 47 else f"%{byte:02X}" for byte in path
    )


def differences(one: Path, other: Path) -> str:
    """Return what rsync finds different between two trees, contents included; nothing when they are equal."""
    argv = ["rsync", "-naiHAXX", "--delete", "-c", "--numeric-ids", "--modify-window=-1", f"{one}/", f"{other}/"]
    done = subprocess.run(argv, capture_output=True, text=True, errors="surrogateescape", check=True)
    return done.stdout


def trees_equal(one: Path, other: Path) -> bool:
    """Return whether rsync finds two trees equal, contents included."""
    return differences(one, other) == ""


def facts(root: Path) -> dict[bytes, tuple[object, ...]]:
    """All that can be seen of each entry, without rsync's eyes: for an exact comparison of two trees."""
    found: dict[bytes, tuple[object, ...]] = {}
    first: dict[int, bytes] = {}
    for path in sorted(_walk(os.fsencode(root))):
        seen = os.lstat(path)
        name = path[len(os.fsencode(root)) :]
        same_as = b"" if stat.S_ISDIR(seen.st_mode) else first.setdefault(seen.st_ino, name)
        found[name] = (
            oct(seen.st_mode), seen.st_uid, seen.st_gid, seen.st_rdev, seen.st_mtime_ns, same_as,
            _content(path, seen), tuple((key, os.getxattr(path, key, follow_symlinks=False)) for key in sorted(os.listxattr(path, follow_symlinks=False))),
        )  # fmt: skip
    return found


def _walk(path: bytes) -> Iterator[bytes]:
    yield path
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(entry.path)
            else:
                yield entry.path


def _content(path: bytes, seen: os.stat_result) -> bytes:
    if stat.S_ISLNK(seen.st_mode):
        return os.readlink(path)
    if not stat.S_ISREG(seen.st_mode):
        return b""
    with open(path, "rb") as file:
        return file.read()


def wait_until(
    condition: Callable[[], Any],
    seconds: float = 60,
    *,
    pause: float = 0.005,
    going: subprocess.Popen[bytes] | None = None,
) -> Any:
    """Return what the condition says once it says something true; fails after so many seconds, or once `going` has ended without it."""
    until = time.monotonic() + seconds
    while not (said := _now(condition)):
        assert going is None or going.poll() is None or condition(), ("it ended before", going.communicate())
        assert time.monotonic() < until, "waited too long"
        time.sleep(pause)
    return said


def _now(condition: Callable[[], Any]) -> Any:
    """Return what the condition says; nothing where a file that it looks at has just gone: a copy renames and removes while it works."""
    try:
        return condition()
    except (FileNotFoundError, ProcessLookupError):
        return None


def rsyncs(process: "subprocess.Popen[str]") -> list[int]:
    """The rsync processes of a run, the eldest first."""
    return [pid for pid, name in family(process.pid) if name == "rsync"]


def kill(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Signals a process that may be gone already."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


@contextmanager
def mounted(place: Path, options: str = "size=20m", kind: str = "tmpfs") -> Iterator[None]:
    """A filesystem of its own for as long as it is needed."""
    place.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", kind, "-o", options, "none", str(place)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@contextmanager
def loop_filesystem(folder: Path, *make: str, size: int = 100 << 20) -> Iterator[Path]:
    """A filesystem on a loop device, made by that command, for as long as it is needed."""
    image, place = folder / "filesystem.img", folder / "filesystem"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(size)
    subprocess.run([*make, str(image)], check=True, capture_output=True)
    subprocess.run(["mount", "-o", "loop", str(image), str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@contextmanager
def onto_ext4(house: House, folder: Path, *make: str, size: int, theirs: int) -> Iterator[House]:
    """The house with its source on a filesystem of its own, made by that command, and its copies on a small ext4. `theirs`: files of others."""
    for name in ("from", "to"):
        (folder / name).mkdir()
    with (
        loop_filesystem(folder / "from", *make, size=size) as source,
        loop_filesystem(folder / "to", "mkfs.ext4", "-q") as target,
    ):
        house.source, house.target = source / "home", target / "copies"
        for number in range(theirs):
            house.write(f"theirs/work-{number}", "content")
        yield house
