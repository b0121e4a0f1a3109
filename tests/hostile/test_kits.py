"""Kits that a stranger made: nothing of them runs, nothing of them crashes or holds up who looks at them."""

import io
import sqlite3
import tarfile
from pathlib import Path

import pytest

from tests.whole.house import House, Ran

JOB = 'engine = "rsync"\nsource = "{source}"\ntarget = "place"\n{more}'
HOOK = '[hooks]\nbefore = ["/tmp/evil", "now"]\n'
ENDLESS = "CREATE VIEW runs_of AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    """A real kit, beside the copy of a real run."""
    house = House(tmp_path / "lost")
    house.write("one", "one")
    house.job()
    assert house.run().outcome == "done"
    return house.target / ".poolferry"


@pytest.fixture
def new(tmp_path: Path) -> House:
    """A machine without anything of ours."""
    made = House(tmp_path / "new")
    (made.config / "jobs").rmdir()
    made.config.rmdir()
    return made


def bootstrap(house: House, place: Path, *more: str) -> Ran:
    return house.call("restore", "bootstrap", str(place), *more)


def repack(kit: Path, **files: str) -> None:
    """The kit's archive anew, with these files added or exchanged."""
    with tarfile.open(kit / "configuration.tar") as old:
        held = {one.name: file.read() for one in old if (file := old.extractfile(one))}
    held |= {f"configuration/{name}": text.encode() for name, text in files.items()}
    with tarfile.open(kit / "configuration.tar", "w") as made:
        for name, content in held.items():
            about = tarfile.TarInfo(name)
            about.size = len(content)
            made.addfile(about, io.BytesIO(content))


def test_what_would_run_is_shown_and_set_aside_until_it_is_trusted_by_name(
    kit: Path, new: House, tmp_path: Path
) -> None:
    evil = JOB.format(source="/srv", more=HOOK + '[pipe]\nssh-options = ["-oProxyCommand=/tmp/evil"]\n')
    repack(
        kit,
        **{
            "jobs/evil.toml": evil,
            "hooks/mail": "#!/bin/sh\n",
            "poolferry.toml": '[metrics]\ntextfile = "/etc/passwd"\n',
        },
    )
    told = bootstrap(new, kit.parent, "--plan")
    assert told.code == 0, told
    acts = {each["name"]: each["acts"] for each in told["not_trusted"]}
    assert acts["evil"] == ["hook before: /tmp/evil now", "[pipe] ssh-options: -oProxyCommand=/tmp/evil"]
    assert acts["poolferry"] == ["[metrics] {'textfile': '/etc/passwd'}"]
    assert told["left_out"] == ["hooks/mail"]
    assert not new.config.exists()
    assert bootstrap(new, kit.parent).code == 0
    assert sorted(path.name for path in (new.config / "jobs").iterdir()) == ["evil.toml.not-trusted", "photos.toml"]
    assert not (new.config / "hooks").exists()
    assert not (new.config / "poolferry.toml").exists()
    assert new.call("check").code == 0


def test_the_hint_accepts_what_was_set_aside(kit: Path, new: House) -> None:
    repack(kit, **{"jobs/nightly.toml": JOB.format(source="/srv", more=HOOK)})
    told = new.call("restore", "bootstrap", str(kit.parent), "--trust", "nightly")
    assert told.code == 0, told
    assert (new.config / "jobs" / "nightly.toml").read_text().endswith(HOOK)
    assert told["not_trusted"] == []


@pytest.mark.parametrize("kind", ["symlink", "hardlink", "device", "cut", "noise", "many"])
def test_an_archive_of_a_stranger_ends_in_one_clear_error_or_in_nothing(kit: Path, new: House, kind: str) -> None:
    archive = kit / "configuration.tar"
    if kind == "noise":
        archive.write_bytes(b"\x00garbage" * 1000)
    elif kind == "cut":
        archive.write_bytes(archive.read_bytes()[:700])
    else:
        with tarfile.open(archive, "w") as made:
            for number in range(20_000 if kind == "many" else 1):
                about = tarfile.TarInfo(f"configuration/jobs/j{number}.toml")
                about.type = {"symlink": tarfile.SYMTYPE, "hardlink": tarfile.LNKTYPE, "device": tarfile.CHRTYPE}.get(
                    kind, tarfile.REGTYPE
                )
                about.linkname = "configuration/../../../../etc/shadow"
                made.addfile(about)
    told = bootstrap(new, kit.parent)
    assert told.code == 1, told
    assert "mistake in poolferry" not in told["error"]
    assert not new.config.exists()


@pytest.mark.parametrize("kind", ["view", "trigger", "table", "noise", "other", "cut"])
def test_a_history_of_a_stranger_is_refused_before_anything_of_it_runs(kit: Path, new: House, kind: str) -> None:
    path = kit / "history.sqlite"
    if kind == "noise":
        path.write_bytes(b"SQLite format 3\x00" + b"\xff" * 9000)
    elif kind == "cut":
        path.write_bytes(path.read_bytes()[:9000])
    else:
        if kind == "other":
            path.unlink()
        with sqlite3.connect(path) as database:
            database.execute(
                {
                    "view": ENDLESS,
                    "trigger": "CREATE TRIGGER evil AFTER INSERT ON runs BEGIN DELETE FROM runs; END",
                }.get(kind, "CREATE TABLE evil (x)")
            )
        database.close()
    told = bootstrap(new, kit.parent)
    assert told.code == 1, told
    assert "in the kit" in told["error"]
    assert "mistake in poolferry" not in told["error"]
    assert not new.config.exists()


def test_a_sparse_history_takes_no_memory(kit: Path, new: House) -> None:
    with (kit / "history.sqlite").open("r+b") as file:
        file.truncate(3 << 30)
    told = bootstrap(new, kit.parent)
    assert (told.code, "larger than a kit" in told["error"] or "more than a kit" in told["error"]) == (1, True), told


def test_names_of_a_stranger_are_no_names_of_jobs(kit: Path, new: House) -> None:
    repack(
        kit,
        **{
            "jobs/a\nb.toml": JOB.format(source="/srv", more=""),
            "jobs/\u202egpj.toml": "x = 1",
            "jobs/../../evil.toml": "x = 1",
        },
    )
    told = bootstrap(new, kit.parent)
    assert told.code == 0, told
    assert told["jobs"] == ["photos"]
    assert all("\n" not in line for line in told["left_out"]), told["left_out"]
    assert sorted(path.name for path in (new.config / "jobs").iterdir()) == ["photos.toml"]
