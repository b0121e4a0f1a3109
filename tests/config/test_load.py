"""Good configurations as they are read, and each kind of mistake with its file, line and words.

Changes things.
"""

import os
import subprocess
import sys
from datetime import time
from pathlib import Path

import pytest

from orchestrator.config.load import load
from orchestrator.domain.errors import DeclarationError, Mistake
from orchestrator.domain.job import Guard, Hooks, Keep, Limit, Pipe, Retrying, Verify
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
    assert (job.keep, job.verify) == (Keep(daily=14), Verify(every=Seconds(0), digest="sha256"))
    assert job.guard == Guard(max_deleted=Limit(number=200, percent=False), max_changed=Limit(number=30, percent=True))
    assert job.pipe == Pipe(rate_limit=Bytes(1024 * 1536), ssh_options=("-i", "/root/.ssh/fetch"))
    assert job.retry == Retrying(attempts=1)
    calls = (("done", (("/bin/a b",),)), ("failed", (("/bin/c", ""),)), ("late", (("/bin/d",), ("/bin/e", "f"))))
    assert job.hooks == Hooks(calls=calls, timeout=Seconds(300))


def test_the_shortest_job_has_every_default(tmp_path: Path) -> None:
    job = loaded(tmp_path).job("photos")
    assert (job.schedule, job.late_after, job.after, job.stop_at) == (None, None, (), None)
    assert (job.options, job.keep, job.verify, job.guard) == (TreeOptions(), Keep(), Verify(), Guard())
    assert (job.pipe, job.retry, job.hooks) == (Pipe(), Retrying(), Hooks())


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


JOB_MISTAKES = [
    ("colour = 1", 4, "colour", "unknown key", '"engine", "source", "target", "schedule"'),
    ("late_after = '1h'", 4, "late_after", "unknown key", '"late-after", the nearest name'),
    ("Late-After = '1h'", 4, "Late-After", "unknown key", '"late-after"'),
    ("max-deleted = 3", 4, "max-deleted", "unknown key", "it below [guard]"),
    ("parallel = 3", 4, "parallel", "unknown key", "it below [tree]"),
    ("[keep]\ndaily = 3\nlate-after = '1h'", 6, "keep.late-after", "unknown key", "it before the first section"),
    ("[keep]\nattempts = 3", 5, "keep.attempts", "unknown key", "it below [retry]"),
    ("\n[guards]\nmax-deleted = 3", 5, "guards", "unknown key", "[guard], the nearest name"),
    ("[sets]\nlabel = 'x'", 4, "sets", 'the engine of this job is "tree"', "[tree], or no such section"),
    ("[keep]\n'odd key' = 1", 5, 'keep."odd key"', "unknown key", '"hourly", "daily"'),
    ("keep = 5", 4, "keep", "5 does not fit", "a section: [keep]"),
    ("[[keep]]\ndaily = 5", 4, "keep", "a list does not fit", "a section: [keep]"),
    ("[keep]\n\ndaily = true", 6, "keep.daily", "true does not fit", "a whole number of at least 0"),
    ("keep = { weekly = 1, daily = -1 }", 4, "keep.daily", "-1 is too small", "a whole number of at least 0"),
    ("[keep]\ndaily = 1.0", 5, "keep.daily", "1 does not fit", "a whole number of at least 0"),
    ("[verify]\ndigest = 'md5'", 5, "verify.digest", '"md5" does not fit', '"xxh128", "blake3" or "sha256"'),
    ("[verify]\nevery = 7", 5, "verify.every", "7 does not fit", "a duration such as"),
    ("[guard]\nmax-deleted = '30 files'", 5, "guard.max-deleted", '"30 files" does not fit', "a count such as 200"),
    ("[guard]\nmax-deleted = true", 5, "guard.max-deleted", "true does not fit", "a count such as 200"),
    ("[tree]\nexcludes = '*'", 5, "tree.excludes", '"*" does not fit', 'a list of texts in quotes, such as ["*.tmp"]'),
    ("[tree]\nexcludes = ['a', 3]", 5, "tree.excludes", "3 does not fit", "a list of texts in quotes"),
    ("[tree]\nexcludes = ['a', ' ']", 5, "tree.excludes", "is empty", "a list of texts in quotes"),
    ("[tree]\nkinds = ['file', 'door']", 5, "tree.kinds", '"door" does not fit', '"file", "link" or "pipe"'),
    ('[tree]\nlabel = "a\\u0000"', 5, "tree.label", '"a\\x00" holds a zero byte', "a text in quotes"),
    ("[tree]\nlabel = 1979-05-27", 5, "tree.label", "a date or time without quotes does not fit", "a text in quotes"),
    ("[tree]\nshare = nan", 5, "tree.share", "nan does not fit", "a number"),
    ("[tree]\nshare = -inf", 5, "tree.share", "-inf does not fit", "a number"),
    ("[tree]\nshare = false", 5, "tree.share", "false does not fit", "a number"),
    ("[tree]\nleast-free = '1000'", 5, "tree.least-free", '"1000" is too small', "a size such as"),
    (f"[tree]\nblock = '{'9' * 400}'", 5, "tree.block", "is too large", "a size such as"),
    (f"[tree]\nblock = 0x1{'0' * 40}\nparallel = -1{'0' * 40}", 6, "tree.parallel", "a huge number is too small", "1"),
    ("after = 'mail'", 4, "after", '"mail" does not fit', 'a list of texts in quotes, such as ["mail-store"]'),
    ("after = ['mail']", 4, "after", 'there is no job "mail"', "the name of another job"),
    ("after = ['photos']", 4, "after", "waits for itself: photos → photos", "jobs that do not wait"),
    ("stop-at = 06:30:00", 4, "stop-at", "a date or time without quotes does not fit", "a time of day"),
    ("late-after = '0s'", 4, "late-after", '"0s" does not fit', "a duration"),
    ("schedule = '* * * *'", 4, "schedule", '"* * * *" does not fit', "five fields"),
    ("on = 'boot'", 4, "on", '"boot" does not fit', '"attach"'),
    ("daily = '02:30'\n\nevery = '1h'", 6, "every", '"daily" tells already when', "only one of"),
    ("[hooks]\nfail = 'x'", 5, "hooks.fail", "unknown event", '"failed", the nearest name'),
    ("[hooks]\nmoon = 'x'", 5, "hooks.moon", "unknown event", '"before", "done"'),
    ("[hooks]\ndone = ['x', 3]", 5, "hooks.done", "a list does not fit", '"/path/program"'),
    ("[hooks]\ndone = [['x'], 'y']", 5, "hooks.done", "a list does not fit", '"/path/program"'),
    ("[hooks]\ndone = [['x'], []]", 5, "hooks.done", "a list does not fit", '"/path/program"'),
    ("[hooks]\ndone = [' ', 'x']", 5, "hooks.done", "a list does not fit", '"/path/program"'),
    ('[hooks]\ndone = ["x", "\\u0000"]', 5, "hooks.done", "a list does not fit", '"/path/program"'),
    ("[hooks]\ndone = []", 5, "hooks.done", "is empty", '"/path/program"'),
    ("[hooks]\ntimeout = 60", 5, "hooks.timeout", "60 does not fit", "a duration"),
    ("[tree]\nin-place = true\ndelete = true", 5, "tree.in-place", "does not go with delete", "one of them"),
]  # fmt: skip


@pytest.mark.parametrize(("more", "line", "key", "what", "expected"), JOB_MISTAKES)
def test_a_mistake_in_a_job(tmp_path: Path, more: str, line: int, key: str, what: str, expected: str) -> None:
    (mistake,) = refused(tmp_path, JOB + more)
    assert (mistake.file, mistake.line, mistake.key) == (f"{tmp_path}/jobs/photos.toml", line, key)
    assert what in mistake.what
    assert expected in mistake.expected


def head(engine: str, source: str, target: str, more: str = "") -> str:
    return f'engine = "{engine}"\nsource = "{source}"\ntarget = "{target}"\n{more}'


HEADS = [
    ('engine = "tree"\n\ntarget = "backup"', 1, "source", "is missing", "what to copy: an absolute path"),
    ('source = "/a"\ntarget = "backup"\n[sets]\nlabel=1', 1, "engine", "is missing", 'such as "rsync"'),
    (head("tre", "/a", "backup", "[tre]"), 1, "engine", 'there is no engine "tre"', '"tree" or "sets"'),
    ('engine = 5\ntarget = "backup"\nsource = "/a"', 1, "engine", "5 does not fit", "a text in quotes"),
    (head("tree", "photos", "backup"), 2, "source", '"photos" is no absolute path', 'begins with "/"'),
    (head("tree", "~/photos", "backup"), 2, "source", "is no absolute path", "~ and $NAME"),
    (head("tree", "ssh://[::1/a", "backup"), 2, "source", "does not fit", 'a host as in "ssh://'),
    (head("tree", "ftp://a/b", "backup"), 2, "source", "does not fit", 'a path, or "ssh://'),
    (head("tree", "", "backup"), 2, "source", "is empty", "a path"),
    (head("tree", "/a", "bakup"), 3, "target", 'no place "bakup"', '"backup", the nearest name'),
    (head("tree", "/a", "zzz"), 3, "target", 'no place "zzz"', 'one of targets.toml: "backup"'),
    (head("sets", "tank", "backup", "sets.label = 'x'"), 3, "target", 'place "backup" is a path', "a dataset"),
    (head("sets", "tank", "vault"), 1, "sets.label", "is missing", "a name for it"),
    (head("sets", "tank", "vault", "\n[sets]"), 5, "sets.label", "is missing", 'such as "nightly"'),
    (head("sets", "/tank", "vault", "sets.label = 'x'"), 2, "source", "no name of a dataset", "vault/replicas"),
    (head("sets", "vault", "vault", "sets.label = 'x'"), 3, "target", "vault/copies lies inside the source", "apart"),
    (head("tree", "/a", "vault"), 3, "target", 'place "vault" is a dataset', "a path, which is what"),
    (head("tree", "/backup/photos/", "backup"), 3, "target", "/backup/photos is the source", "apart"),
    (head("tree", "//backup/./x/..", "backup"), 3, "target", "lies inside the source", "a place apart"),
    (head("tree", "/", "backup"), 3, "target", "/backup/photos lies inside the source", "a place apart from /"),
    (head("tree", "/backup/photos/new", "backup"), 3, "target", "holds the source", "a place apart from"),
    (head("tree", "ssh://NAS:22/c/x", "nas"), 3, "target", "ssh://me@nas/c holds the source", "apart"),
    (head("tree", "ssh://nas:23/c/x", "nas"), 2, "source", "is on another machine", "one of them here"),
]


@pytest.mark.parametrize(("job", "line", "key", "what", "expected"), HEADS)
def test_a_mistake_before_the_first_section(
    tmp_path: Path, job: str, line: int, key: str, what: str, expected: str
) -> None:
    more = '[place.vault]\ndataset = "vault/copies"\n[place.nas]\npath = "ssh://me@nas/c"\n'
    mistakes = refused(tmp_path, job, TARGETS + more)
    assert [
        each
        for each in mistakes
        if (each.line, each.key) == (line, key) and what in each.what and expected in each.expected
    ]
    assert all(each.key == key or "another machine" in each.what for each in mistakes)


@pytest.mark.parametrize("source", ["/backup/photo", "/backup/photos2", "/backup/mail", "ssh://nas/backup/photos"])
def test_a_source_beside_its_target_is_no_mistake(tmp_path: Path, source: str) -> None:
    assert str(loaded(tmp_path, head("tree", source, "backup")).job("photos").source) == source


PLACE_MISTAKES = [
    ("[set.offsite]\nexpect = 'oldest'", 3, "set.offsite", "rotation sets are not available in this version"),
    ("[disk.red]\n[disk.blue]", 3, "disk.red", "enrolled disks are not available"),
    ("[set]", 3, "set", "rotation sets are not available"),
    ("[places.x]\npath = '/x'", 3, "places", "unknown key"),
    ("[colour]\nred = 1", 3, "colour", "unknown key"),
    ("[place.x]\npath = 5.5", 4, "place.x.path", '"5.5" is no absolute path'),
    ("[place.x]\npath = false", 4, "place.x.path", "false does not fit"),
    ("[place.x]\npath = 'vault/x'", 4, "place.x.path", '"vault/x" is no absolute path'),
    ("[place.x]\npath = '/'", 4, "place.x.path", "is the top of everything"),
    ("[place.x]\npath = '/a/..'", 4, "place.x.path", "is the top of everything"),
    ("[place.x]\npath = 'ssh://host//'", 4, "place.x.path", "is the top of everything"),
    ("[place.x]\ndataset = '/vault'", 4, "place.x.dataset", '"/vault" is no name of a dataset'),
    ("[place.x]\ndataset = 'vault@now'", 4, "place.x.dataset", "is no name of a dataset"),
    ("[place.x]\ndataset = 'vault'\npath = '/x'", 3, "place.x", "has both a path and a dataset"),
    ("[place.x]\n", 3, "place.x", "has no path"),
    ("[place.x]\npath = '/x'\npaht = '/x'", 5, "place.x.paht", "unknown key"),
    ("[place]\nx = '/x'", 4, "place.x", '"/x" does not fit'),
    ("[place.'x y']\npath = '/x'", 3, 'place."x y"', "is no name for a place"),
]  # fmt: skip


@pytest.mark.parametrize(("more", "line", "key", "what"), PLACE_MISTAKES)
def test_a_mistake_in_the_targets(tmp_path: Path, more: str, line: int, key: str, what: str) -> None:
    first = refused(tmp_path, targets=TARGETS + more)[0]
    assert (first.file, first.line, first.key) == (f"{tmp_path}/targets.toml", line, key)
    assert what in first.what


@pytest.mark.parametrize(
    ("text", "line", "key", "what"),
    [
        ("", 1, "", "the file is empty"),
        ("# nothing\n\n", 1, "", "the file is empty"),
        ("place = 5", 1, "place", "5 does not fit"),
        ("[place]", 1, "place", "there is no place"),
        ("[set.x]", 1, "set.x", "rotation sets are not available"),
        ("path = '/x'", 1, "path", "unknown key"),
    ],
)
def test_targets_without_a_place(tmp_path: Path, text: str, line: int, key: str, what: str) -> None:
    (mistake,) = refused(tmp_path, targets=text)
    assert (mistake.line, mistake.key) == (line, key)
    assert what in mistake.what


def test_a_job_whose_target_is_wrong_itself_is_not_blamed_for_it(tmp_path: Path) -> None:
    assert told(refused(tmp_path, targets='[place.backup]\npath = "backup"\n')) == ["targets.toml:2:place.backup.path"]
    assert told(refused(tmp_path, targets="[place.backup\n")) == ["targets.toml:1:"]


def test_a_target_that_is_a_set_is_told_so(tmp_path: Path) -> None:
    mistakes = refused(tmp_path, JOB.replace("backup", "offsite"), TARGETS + "[set.offsite]\n")
    assert told(mistakes) == ["photos.toml:3:target", "targets.toml:3:set.offsite"]
    assert {mistake.what for mistake in mistakes} == {"rotation sets are not available in this version"}


BROKEN = [
    (b"a = 1\nb = backup\n", 2, "", "no valid TOML (invalid value)", "a text in quotes"),
    (b"a = 1\n\nb 2\n", 3, "", "no valid TOML (expected '=' after", "name = value"),
    (b"a = 1\n= 2\n", 2, "", "no valid TOML (invalid statement)", "name = value"),
    (b'a = "C:\\path"\n', 1, "", "no valid TOML (unescaped", "written twice"),
    (b'a = "x\nb = 1\n', 1, "", "no valid TOML (illegal character", "ends in the line"),
    (b"a = [1,\n2\n\n", 2, "", "no valid TOML", ""),
    (b"engine = 'tree'\nsource = '/a'\nengine = 'sets'\n", 3, "engine", "a second time, after line 1", "each key once"),
    (b"engine = 'tree'\n[keep]\n[hooks]\n[keep]\n", 4, "keep", "a second time, after line 2", "each key once"),
    (b"engine = 'tree'\nx = {}\n[x.y]\n", 3, "", "no valid TOML (cannot", ""),
    (b"a = '\xff'\n", 1, "", "byte 0xff is no UTF-8", "a file saved as UTF-8"),
    (b"a = 1\n# M\xfcller\n", 2, "", "byte 0xfc is no UTF-8", "a file saved as UTF-8"),
    (b"", 1, "", "the file is empty", "engine, source and target"),
    (b"a = 1\x00", 1, "", "no valid TOML", ""),
    (b"a = " + b"[" * 9000, 1, "", "", ""),
    (b"a = " + b"9" * 5000, 1, "", "", ""),
]  # fmt: skip


@pytest.mark.parametrize(("content", "line", "key", "what", "expected"), BROKEN)
def test_a_broken_file_is_one_mistake(
    tmp_path: Path, content: bytes, line: int, key: str, what: str, expected: str
) -> None:
    (mistake,) = refused(tmp_path, content)
    assert (mistake.file, mistake.line, mistake.key) == (f"{tmp_path}/jobs/photos.toml", line, key)
    assert what in mistake.what
    assert expected in mistake.expected


def test_mistakes_of_all_files_come_at_once_in_order(tmp_path: Path) -> None:
    found = refused(
        tmp_path,
        JOB + "[keep]\ndialy = 1\nhourly = -1\n[hooks]\nfail = 1\n",
        TARGETS + "[set.x]\n",
        albums="nonsense",
        zoo=JOB + "x = 1\n",
    )
    assert told(found) == [
        "albums.toml:1:", "photos.toml:5:keep.dialy", "photos.toml:6:keep.hourly", "photos.toml:8:hooks.fail",
        "zoo.toml:3:target", "zoo.toml:4:x", "targets.toml:3:set.x",
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


def only(directory: str) -> Mistake:
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
        "from orchestrator.config.load import load; from orchestrator.config.models import EngineSection;"
        "from orchestrator.domain.job import Keep; engines = {'tree': EngineSection(name='tree', options=Keep)};"
        f"BEGIN; load({directory!r}, engines)"
    )
    assert "tomllib" in new
    assert not new & {"difflib", "json", "orchestrator.config.locate", "orchestrator.config.schema"}


def test_loading_twice_is_the_same(tmp_path: Path) -> None:
    directory = written(tmp_path, {"targets.toml": TARGETS, "jobs/photos.toml": JOB})
    assert load(directory, ENGINES) == load(directory, ENGINES)
