"""The configuration that sanoid gets, and the scripts around it: run by a real sh, with a sanoid and a zfs that act a part."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.engines.sanoid import SanoidEngine, commands
from orchestrator.engines.sanoid.model import ALL, EXIT_NOT_TAKEN, EXIT_TOLD, PREFIX, SanoidRules
from tests.engines.sanoid.builders import FAR, ROOT

RULES = SanoidRules(daily=7)
THEN = datetime(2026, 11, 20, tzinfo=UTC)


def section(text: str, name: str = ROOT.path) -> dict[str, str]:
    """The keys below one [name]."""
    body = text.split(f"[{name}]\n")[1].split("\n[", maxsplit=1)[0]
    return dict(line.split(" = ") for line in body.splitlines() if line)


def test_for_taking_a_kind_of_none_is_not_taken() -> None:
    told = section(commands.sanoid_conf("tank/photos", RULES, take=True, downward=True))
    assert (told["autosnap"], told["autoprune"], told["recursive"]) == ("yes", "no", "zfs")
    assert (told["daily"], told["hourly"], told["frequently"]) == ("7", "0", "0")


def test_for_pruning_a_kind_of_none_is_left_alone_or_not() -> None:
    told = section(commands.sanoid_conf("tank/photos", RULES, take=False, downward=True))
    assert (told["autosnap"], told["autoprune"], told["recursive"]) == ("no", "yes", "yes")
    assert (told["daily"], told["hourly"]) == ("7", str(ALL))
    strict = section(commands.sanoid_conf("tank/photos", RULES, take=False, downward=True, spare=False))
    assert (strict["daily"], strict["hourly"]) == ("7", "0")


def test_every_boundary_is_told() -> None:
    told = section(commands.sanoid_conf("tank/photos", RULES, take=True, downward=False))
    assert told["recursive"] == "no"
    assert (told["daily_hour"], told["daily_min"], told["weekly_wday"], told["yearly_mon"]) == ("0", "0", "1", "1")
    assert told["prune_defer"] == "0"


def test_what_is_left_out_is_told_behind_and_no_longer_one_instant() -> None:
    text = commands.sanoid_conf("tank/photos", RULES, take=True, downward=True, left_out=("tank/photos/tmp",))
    assert section(text)["recursive"] == "yes"
    assert section(text, "tank/photos/tmp") == {"recursive": "yes", "autosnap": "no", "autoprune": "no"}
    assert text.index("[tank/photos]") < text.index("[tank/photos/tmp]")


def test_a_blank_is_never_given_to_sanoids_shell() -> None:
    text = commands.sanoid_conf("tank/my photos", RULES, take=True, downward=True)
    assert section(text, "tank/my photos")["recursive"] == "no"


def test_effects() -> None:
    assert commands.survey_command(ROOT, downward=True).effect is Effect.READS
    assert commands.take_command(ROOT, "", "/f", due=(), use=None).effect is Effect.WRITES
    assert commands.prune_command(ROOT, "", "/f", use=None).effect is Effect.DESTROYS
    assert f"@{PREFIX}_" in str(commands.take_command(ROOT, "", "/f", due=(), use=None))


def test_on_a_host_the_text_travels_along_and_here_it_does_not() -> None:
    there, here = (commands.prune_command(root, "[a]\n", "/f", use=None) for root in (FAR, ROOT))
    assert (there.host, there.argv[-3:]) == (FAR.host, ("", "[a]\n", ""))
    assert (here.host, here.argv[-3:]) == (None, ("/f", "", ""))


class Stage:
    """A sanoid and a zfs that say what they are told to say."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.bin = root / "bin"
        self.bin.mkdir()
        self.acts("zfs", "")

    def acts(self, name: str, script: str) -> None:
        """Write a program that does this when it is called."""
        (self.bin / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.bin / name).chmod(0o755)

    def run(self, command: Command) -> subprocess.CompletedProcess[str]:
        """The command as it would run here or there."""
        variables = {"PATH": f"{self.bin}:/usr/bin:/bin", "TMPDIR": str(self.root), "LC_ALL": "C.UTF-8"}
        return subprocess.run(command.argv, env=variables, capture_output=True, text=True, timeout=20)

    def take(self, **more: object) -> subprocess.CompletedProcess[str]:
        """Takes a daily snapshot that was due since THEN."""
        folder = str(self.root / "folder")
        return self.run(commands.take_command(ROOT, "", folder, due=[("daily", THEN)], use=None))

    def prune(self) -> subprocess.CompletedProcess[str]:
        """Prunes."""
        return self.run(commands.prune_command(ROOT, "", str(self.root / "folder"), use=None))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def listed(at: datetime, kind: str = "daily") -> str:
    """Return what zfs prints of one snapshot."""
    return f'printf "{int(at.timestamp())}\\t{ROOT.path}@autosnap_{at:%Y-%m-%d_%H:%M:%S}_{kind}\\n"'


def test_taking_is_well_when_the_snapshot_is_there(stage: Stage) -> None:
    stage.acts("sanoid", 'echo "$TZ $*"')
    stage.acts("zfs", listed(THEN))
    done = stage.take()
    folder = stage.root / "folder"
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        f"UTC --configdir={folder} --cache-dir={folder} --run-dir={folder} --verbose --take-snapshots\n"
    )


@pytest.mark.parametrize(("at", "kind"), [(datetime(2026, 11, 19, 23, 59, 59, tzinfo=UTC), "daily"), (THEN, "hourly")])
def test_an_older_one_or_another_kind_is_no_proof(stage: Stage, at: datetime, kind: str) -> None:
    stage.acts("sanoid", "")
    stage.acts("zfs", listed(at, kind))
    done = stage.take()
    assert (done.returncode, done.stderr) == (EXIT_NOT_TAKEN, "no daily snapshot of tank/photos was taken\n")


def test_sanoid_ends_with_0_when_it_took_nothing(stage: Stage) -> None:
    stage.acts("sanoid", 'echo "CRITICAL ERROR: zfs snapshot tank/photos@a failed, 256" >&2')
    stage.acts("zfs", listed(THEN))
    done = stage.take()
    assert done.returncode == EXIT_TOLD
    assert "CRITICAL ERROR" in done.stderr


SOME_TAKEN = """for word; do case $word in --configdir=*) conf=${word#*=}/sanoid.conf;; esac; done
if grep -q "recursive = zfs" "$conf"; then
  echo "cannot create snapshot 'tank/photos/eve x@a': dataset already exists" >&2
  echo "no snapshots were created" >&2
  echo "CRITICAL ERROR: /sbin/zfs snapshot -r tank/photos@a failed, 256 at /usr/sbin/sanoid line 640." >&2
else
  touch "$0.took"
  echo "cannot create snapshot 'tank/photos/eve x@a': dataset already exists" >&2
  echo "CRITICAL ERROR: /sbin/zfs snapshot tank/photos/eve x@a failed, 256 at /usr/sbin/sanoid line 640." >&2
  MORE
fi
"""
FULL = """echo "cannot create snapshot 'tank/photos/fay@a': out of space" >&2
  echo "CRITICAL ERROR: /sbin/zfs snapshot tank/photos/fay@a failed, 256 at /usr/sbin/sanoid line 640." >&2"""
NAMED = """echo "cannot create snapshot 'tank/photos/eve/dataset already exists@a': dataset already exists" >&2
  echo "CRITICAL ERROR: /sbin/zfs snapshot tank/photos/eve/dataset already exists@a failed, 256 at /usr/sbin/sanoid line 640." >&2
"""


@pytest.mark.parametrize(("more", "code"), [(":", 0), (NAMED, 0), (FULL, EXIT_TOLD), (NAMED + FULL, EXIT_TOLD)])
def test_where_some_have_the_names_each_is_taken_by_itself(stage: Stage, more: str, code: int) -> None:
    """`zfs snapshot -r` takes all or nothing: who owns one dataset could have those names there before."""
    folder = stage.root / "folder"
    folder.mkdir()
    (folder / "sanoid.conf").write_text(commands.sanoid_conf(ROOT.path, RULES, take=True, downward=True))
    stage.acts("sanoid", SOME_TAKEN.replace("MORE", more))
    stage.acts("zfs", f"[ ! -e {stage.bin}/sanoid.took ] || {listed(THEN)}")
    done = stage.take()
    assert done.returncode == code, done
    if not code:
        missed = [
            f"tank/photos/eve{name}@a" for name in (" x", *(["/dataset already exists"] if more == NAMED else []))
        ]
        told = SanoidEngine().told(done.stdout + done.stderr)
        assert told == tuple(
            f"{name} was not taken: one of that name was there, with the data of then" for name in missed
        )


def test_a_configuration_of_the_owners_is_not_done_otherwise(stage: Stage, tmp_path: Path) -> None:
    """Nothing is due by rules of ours then, so no other look would find that there is no snapshot."""
    use = tmp_path / "use"
    use.mkdir()
    text = commands.sanoid_conf(ROOT.path, RULES, take=True, downward=True)
    (use / "sanoid.conf").write_text(text)
    stage.acts("sanoid", SOME_TAKEN)
    done = stage.run(commands.take_command(ROOT, "", str(stage.root / "folder"), due=[], use=str(use)))
    assert done.returncode == EXIT_TOLD, done
    assert (use / "sanoid.conf").read_text() == text


def test_its_own_end_comes_through(stage: Stage) -> None:
    stage.acts("sanoid", 'echo "FATAL: no" >&2; exit 2')
    assert (stage.take().returncode, stage.prune().returncode) == (2, 2)
    stage.acts("sanoid", "")
    stage.acts("zfs", "exit 1")
    assert stage.take().returncode == 1


def test_its_old_list_of_snapshots_goes_first(stage: Stage) -> None:
    stage.acts("sanoid", f"test ! -e {stage.root}/folder/snapshots.txt")
    (stage.root / "folder").mkdir()
    (stage.root / "folder" / "snapshots.txt").write_text("old")
    assert stage.prune().returncode == 0


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("cannot destroy snapshot tank/photos@a: dataset is busy", 0),
        ("cannot destroy snapshot tank/photos@a: it's being held. Run 'zfs holds -r tank/photos@a' to see holders.", 0),
        ("cannot destroy 'tank/photos@a': snapshot has dependent clones", 0),
        ("cannot destroy snapshot tank/photos@a: permission denied", EXIT_TOLD),
        ("internal error: out of memory", EXIT_TOLD),
    ],
)
def test_what_is_held_or_cloned_stays_and_anything_else_is_a_failure(stage: Stage, said: str, code: int) -> None:
    stage.acts("sanoid", f'echo "{said}" >&2; echo "could not remove tank/photos@a : 256 at sanoid line 1." >&2')
    done = stage.prune()
    assert done.returncode == code
    assert said in done.stderr


def test_on_a_host_nothing_stays_behind(stage: Stage) -> None:
    stage.acts("sanoid", 'cat "${1#--configdir=}/sanoid.conf"')
    done = stage.run(commands.prune_command(FAR, "[tank/photos]\nx = $1 'y'\n", "/nowhere", use=None))
    assert (done.returncode, done.stdout) == (0, "[tank/photos]\nx = $1 'y'\n")
    assert [path.name for path in stage.root.iterdir()] == ["bin"]


def test_rules_of_ones_own_have_their_folder_and_a_list_of_ours(stage: Stage) -> None:
    stage.acts("sanoid", 'echo "$1 $2"')
    done = stage.run(commands.take_command(ROOT, "", str(stage.root / "f"), due=(), use="/etc/sanoid"))
    assert done.stdout == f"--configdir=/etc/sanoid --cache-dir={stage.root}/f\n"


def test_without_sanoid_the_look_says_so(stage: Stage) -> None:
    look = commands.survey_command(Location(path="tank"), downward=True)
    done = stage.run(look)
    assert (done.returncode, done.stderr) == (127, "sanoid: not found\n")
