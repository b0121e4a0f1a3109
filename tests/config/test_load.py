"""Good configurations as they are read, and the mistakes that only all files together show."""

import os
import subprocess
import sys
from datetime import time
from pathlib import Path

import pytest

from orchestrator.config import this_machine
from orchestrator.config.decode import parse_toml_file
from orchestrator.config.load import load_configuration
from orchestrator.config.this_machine import place_in_spread
from orchestrator.domain.errors import ConfigMistake, DeclarationError
from orchestrator.domain.job import (
    GuardLimits,
    JobHooks,
    KeepRules,
    Limit,
    PipeOptions,
    RetryRules,
    TimeWindow,
    VerifyRules,
)
from orchestrator.domain.place import Host, Location, Place
from orchestrator.domain.units import Bytes, Seconds
from tests.config.given import (
    ENGINES,
    JOB,
    TARGETS,
    DatasetOptions,
    TreeOptions,
    loaded,
    refusal,
    refused,
    told,
    written,
)

WHOLE = """
engine = "tree"
source = "ssh://root@server:2222/srv/old%ff"
target = "backup"
schedule = " 30 2  * * mon-fri"
late-after = "26h"
after = ["mail"]
stop-at = "06:30"
[tree]
excludes = ["*.tmp", "/cache/"]
kinds = []
in-place = true
parallel = 3
share = 2
block = 512
[keep]
daily = 14
[verify]
every = "run"
digest = "sha256"
[guard]
max-deleted = 200
max-changed = "30%"
[pipe]
rate-limit = "1.5M"
ssh-options = ["-i", "/root/.ssh/fetch"]
[retry]
attempts = 1
[hooks]
done = "/bin/a b"
failed = ["/bin/c", ""]
late = [["/bin/d"], ["/bin/e", "f"]]
timeout = "5m"
"""


def test_a_whole_job(tmp_path: Path) -> None:
    job = loaded(
        tmp_path, WHOLE, mail=JOB.replace("backup", "mail"), targets=TARGETS + '[place.mail]\npath = "/m"'
    ).job("photos")
    assert job.file == f"{tmp_path}/jobs/photos.toml"
    assert job.source == Location(path="/srv/old\udcff", host=Host(name="server", user="root", port=2222))
    assert job.target == Place(name="backup", location=Location(path="/backup/photos"))
    assert (job.engine, job.schedule, job.after) == ("tree", "cron 30 2 * * mon-fri", ("mail",))
    assert job.late_after == Seconds(93600)
    assert job.stop_at == time(6, 30)
    assert job.options == TreeOptions(
        excludes=("*.tmp", "/cache/"), kinds=(), in_place=True, parallel=3, share=2, block=Bytes(512)
    )
    assert (job.keep, job.verify) == (KeepRules(daily=14), VerifyRules(every=Seconds(0), digest="sha256"))
    assert job.guard == GuardLimits(
        max_deleted=Limit(number=200, percent=False), max_changed=Limit(number=30, percent=True)
    )
    assert job.pipe == PipeOptions(rate_limit=Bytes(1024 * 1536), ssh_options=("-i", "/root/.ssh/fetch"))
    assert job.retry == RetryRules(attempts=1)
    calls = (("done", (("/bin/a b",),)), ("failed", (("/bin/c", ""),)), ("late", (("/bin/d",), ("/bin/e", "f"))))
    assert job.hooks == JobHooks(calls=calls, timeout=Seconds(300))


def test_a_window_and_a_priority(tmp_path: Path) -> None:
    job = loaded(tmp_path, JOB + 'window = "22:00 - 6:00"\npriority = -3\non = "attach"\nmin-interval = "20h"\n').job(
        "photos"
    )
    assert job.window == TimeWindow(begin=time(22), end=time(6))
    assert (job.priority, job.min_interval) == (-3, Seconds(72000))


def test_a_spread_gives_each_machine_and_job_a_time_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same one at each look, whatever the job is called now; over 500 machines no part of the span is left free."""
    text = JOB + 'daily = "02:00"\nspread = "2h"\n'
    places = set()
    for number in range(500):
        (tmp_path / "machine-id").write_text(f"{number:032x}\n")
        monkeypatch.setattr(this_machine, "_MACHINE", str(tmp_path / "machine-id"))
        places.add(place_in_spread("photos", 7200))
    assert {place // 600 for place in places} == set(range(12))
    schedule = loaded(tmp_path, text).job("photos").schedule
    assert schedule == f"daily 02:00 later {place_in_spread('photos', 7200)}"
    assert loaded(tmp_path, text + 'known-as = "pictures"\n').job("photos").schedule == (
        f"daily 02:00 later {place_in_spread('pictures', 7200)}"
    )
    assert loaded(tmp_path, JOB + 'schedule = "manual"\nspread = "2h"\n').job("photos").schedule is None


def test_the_shortest_job_has_every_default(tmp_path: Path) -> None:
    job = loaded(tmp_path).job("photos")
    assert (job.schedule, job.late_after, job.after, job.stop_at) == (None, None, (), None)
    assert (job.window, job.min_interval, job.priority) == (None, None, 0)
    assert (job.options, job.keep, job.verify, job.guard) == (TreeOptions(), KeepRules(), VerifyRules(), GuardLimits())
    assert (job.pipe, job.retry, job.hooks) == (PipeOptions(), RetryRules(), JobHooks())


@pytest.mark.parametrize(
    ("key", "schedule"),
    [
        ('every = "1h 30m"', "every 5400"), ('daily = "2:30"', "daily 02:30"), ('on = "attach"', "on attach"),
        ('schedule = "manual"', None),
    ],
)  # fmt: skip
def test_each_way_to_say_when(tmp_path: Path, key: str, schedule: str | None) -> None:
    assert loaded(tmp_path, JOB + key).job("photos").schedule == schedule


def test_jobs_come_by_name_and_places_as_written(tmp_path: Path) -> None:
    targets = '[place.z]\npath = "/z"\n[place.a]\npath = "file:///a%20b"\n[place.backup]\npath = "ssh://nas/copies"\n'
    found = loaded(tmp_path, targets=targets, albums=JOB.replace('"backup"', '"z"'))
    assert [job.name for job in found.jobs] == ["albums", "photos"]
    assert [str(place.location) for place in found.places] == ["/z", "/a b", "ssh://nas/copies"]
    with pytest.raises(DeclarationError, match='no job "photo", expected one of albums, photos'):
        found.job("photo")


def test_a_dataset_has_its_own_name_here_and_elsewhere(tmp_path: Path) -> None:
    job = 'engine = "sets"\nsource = "ssh://root@old/tank/photos"\ntarget = "vault"\nsets.label = "x"'
    found = loaded(tmp_path, job, '[place.vault]\ndataset = "vault/replicas"\n').job("photos")
    assert (found.source.path, str(found.source)) == ("tank/photos", "ssh://root@old/tank/photos")
    assert (found.target.location, found.options) == (Location(path="vault/replicas"), DatasetOptions(label="x"))


def test_other_files_in_the_directories_are_left_alone(tmp_path: Path) -> None:
    written(tmp_path, {"jobs/README.md": "#", "jobs/.#photos.toml": "x", "jobs/old.toml.off": "x", "notes": "x"})
    assert len(loaded(tmp_path).jobs) == 1


def test_a_mark_of_byte_order_and_windows_lines_are_no_mistake(tmp_path: Path) -> None:
    text = "\ufeff" + JOB.replace("\n", "\r\n")
    assert loaded(tmp_path, text).job("photos").source.path == "/srv/photos"


def test_mistakes_of_all_files_come_at_once_in_order(tmp_path: Path) -> None:
    found = refused(
        tmp_path,
        JOB + "[keep]\ndialy = 1\nhourly = -1\n[hooks]\nfail = 1\n",
        TARGETS + "[set.x]\nx = 1\n",
        albums="nonsense",
        zoo=JOB + "x = 1\n",
    )
    assert told(found) == [
        "albums.toml:1:", "photos.toml:5:keep.dialy", "photos.toml:6:keep.hourly", "photos.toml:8:hooks.fail",
        "zoo.toml:3:target", "zoo.toml:4:x", "targets.toml:4:set.x.x",
    ]  # fmt: skip
    assert (
        str(found[1]) == f'{tmp_path}/jobs/photos.toml:5: keep.dialy: unknown key, expected "daily", the nearest name'
    )


def test_files_are_named_as_the_directory_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, {"etc/targets.toml": TARGETS, "etc/jobs/photos.toml": "x = 1"})
    monkeypatch.chdir(tmp_path)
    assert {mistake.file for mistake in refusal("etc/")} == {"etc/jobs/photos.toml"}


def test_one_place_belongs_to_one_job(tmp_path: Path) -> None:
    targets = TARGETS + '[place.same]\npath = "/backup/photos/"\n[place.far]\npath = "ssh://nas/backup/photos"\n'
    job = JOB.replace("/srv", "/home")
    far = job.replace('"backup"', '"far"')
    found = refused(tmp_path, JOB, targets, again=job, same=job.replace('"backup"', '"same"'), far=far)
    assert told(found) == ["photos.toml:3:target", "same.toml:3:target"]
    assert [mistake.what for mistake in found] == ['job "again" writes to /backup/photos too'] * 2


def test_a_place_within_the_place_of_another_job(tmp_path: Path) -> None:
    targets = TARGETS + '[place.all]\npath = "/backup"\n[place.beside]\npath = "/backup/photos2"\n'
    (mistake,) = refused(
        tmp_path, JOB, targets, all=JOB.replace('"backup"', '"all"'), beside=JOB.replace('"backup"', '"beside"')
    )[:1]
    assert mistake.what == '/backup/photos2 lies inside /backup, where job "all" writes'


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real/source").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "second").symlink_to("real/source/copies")
    targets = f'[place.backup]\npath = "{tmp_path}/link/source/copies"\n[place.b]\npath = "{tmp_path}/second"\n'
    job = JOB.replace("/srv/photos", f"{tmp_path}/real/source")
    found = refused(tmp_path / "etc", job, targets, other=JOB.replace('"backup"', '"b"'))
    assert {mistake.what for mistake in found} == {
        f"{tmp_path}/link/source/copies lies inside the source (through a link)",
        f'job "other" writes to {tmp_path}/link/source/copies too',
    }


def test_jobs_that_wait_for_each_other(tmp_path: Path) -> None:
    targets = "".join(f'[place.{name}]\npath = "/{name}"\n' for name in ("backup", "a", "b", "c", "d"))
    jobs = {
        name: JOB.replace('"backup"', f'"{name}"') + f"after = {after}\n"
        for name, after in {"a": ["b"], "b": ["c", "photos"], "c": ["a"], "d": ["a", "broken"]}.items()
    }
    found = refused(tmp_path, JOB, targets, broken="x", **jobs)
    assert told(found) == ["a.toml:4:after", "b.toml:4:after", "broken.toml:1:", "c.toml:4:after"]
    assert found[0].what == "waits for itself: a → b → c → a"


def test_an_unknown_job_is_guessed(tmp_path: Path) -> None:
    targets = TARGETS + '[place.b]\npath = "/b"\n'
    (mistake,) = refused(tmp_path, JOB + 'after = ["album"]', targets, albums=JOB.replace('"backup"', '"b"'))
    assert (mistake.what, mistake.expected) == ('there is no job "album"', '"albums", the nearest name')


@pytest.mark.parametrize("name", ["-x", "a b", "ü", "x" * 101, "é\udcff"])
def test_a_file_name_that_is_no_name_for_a_job(tmp_path: Path, name: str) -> None:
    directory = written(tmp_path, {"targets.toml": TARGETS, f"jobs/{name}.toml": JOB})
    (mistake,) = refusal(directory)
    assert (mistake.line, mistake.what) == (None, "the file's name is no name for a job")
    assert str(mistake).encode()


def only(directory: str) -> ConfigMistake:
    (mistake,) = refusal(directory)
    return mistake


def test_a_directory_without_anything_is_one_mistake_that_tells_init(tmp_path: Path) -> None:
    for directory in (str(tmp_path / "none"), str(tmp_path)):
        mistake = only(directory)
        assert (mistake.file, mistake.line) == (directory, None)
        assert "poolferry init" in mistake.expected


def test_half_a_configuration_is_one_mistake_that_tells_init(tmp_path: Path) -> None:
    first = only(written(tmp_path / "a", {"jobs/photos.toml": JOB}))
    assert (first.file, first.what) == (f"{tmp_path}/a/targets.toml", "there is no such file")
    assert first.expected.startswith("a file with a [place.NAME], where photos puts copies; ")
    second = only(written(tmp_path / "b", {"targets.toml": TARGETS}))
    third = only(written(tmp_path / "c", {"targets.toml": TARGETS, "jobs/notes.txt": ""}))
    assert [second.what, third.what] == ["there is no job"] * 2
    assert all("poolferry init" in each.expected for each in (first, second, third))


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    assert "Not a directory" in only(written(tmp_path, {"targets.toml": TARGETS, "jobs": "x"})).what
    assert "Not a directory" in only(f"{tmp_path}/targets.toml").what
    written(tmp_path / "b", {"targets.toml": TARGETS, "jobs/photos.toml/x": "", "jobs/good.toml": JOB})
    found = refusal(f"{tmp_path}/b")
    assert [(Path(each.file).name, each.what) for each in found] == [("photos.toml", "cannot be read: Is a directory")]


def test_a_file_of_another_user_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root reads everything, so it becomes nobody; by a relative path, as the folders above belong to root alone."""
    monkeypatch.chdir(written(tmp_path, {"targets.toml": TARGETS, "jobs/photos.toml": JOB}))
    os.chmod(tmp_path, 0o755)
    os.chmod("jobs/photos.toml", 0)
    user = os.geteuid()
    os.seteuid(user or 65534)
    try:
        mistake = only(".")
    finally:
        os.seteuid(user)
    assert (mistake.file, mistake.what) == ("./jobs/photos.toml", "cannot be read: Permission denied")


def newly_imported(program: str) -> set[str]:
    """The modules that a fresh Python holds after the program but not before `BEGIN`."""
    told = f"import sys; {program.replace('BEGIN', 'before = set(sys.modules)')}; print(*(set(sys.modules) - before))"
    return set(subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True).stdout.split())


def test_importing_costs_nothing_heavy() -> None:
    new = newly_imported("BEGIN; import orchestrator.config.load")
    assert "orchestrator.config.load" in new
    assert not new & {"tomllib", "json", "difflib", "pydantic", "pathlib", "orchestrator.config.locate"}


def test_a_good_configuration_needs_no_locator(tmp_path: Path) -> None:
    directory = written(tmp_path, {"targets.toml": TARGETS, "jobs/photos.toml": JOB})
    new = newly_imported(
        "from orchestrator.config.load import load_configuration; from orchestrator.config.models import EngineSection;"
        "from orchestrator.domain.job import KeepRules; engines = {'tree': EngineSection(name='tree', options=KeepRules)};"
        f"BEGIN; load_configuration({directory!r}, engines)"
    )
    assert "tomllib" in new
    assert not new & {"difflib", "json", "orchestrator.config.locate", "orchestrator.config.schema"}


def test_loading_twice_is_the_same(tmp_path: Path) -> None:
    directory = written(tmp_path, {"targets.toml": TARGETS, "jobs/photos.toml": JOB})
    assert load_configuration(directory, ENGINES) == load_configuration(directory, ENGINES)


def test_a_key_of_very_many_parts_is_a_mistake_and_costs_no_time(tmp_path: Path) -> None:
    for text in ("1." * 100_000, "a = {" + "b." * 50 + "c = 1}", "[" + '"x y" . ' * 40 + "z]"):
        found = parse_toml_file("x.toml", f"ok = 1\n{text}\n".encode(), least="")
        assert isinstance(found, ConfigMistake)
        assert (found.line, found.what) == (2, "a key of more than 32 parts")
    assert not isinstance(parse_toml_file("x.toml", f'a.b.c = "{"1." * 500}"\n'.encode(), least=""), ConfigMistake)
