"""Each kind of mistake in one file, with its line, its key and its words."""

from pathlib import Path

import pytest

from tests.config.given import JOB, TARGETS, loaded, refused, told

JOB_MISTAKES = [
    ("colour = 1", 4, "colour", "unknown key", '"engine", "source", "sources", "target", "schedule"'),
    ("late_after = '1h'", 4, "late_after", "unknown key", '"late-after", the nearest name'),
    ("Late-After = '1h'", 4, "Late-After", "unknown key", '"late-after"'),
    ("max-deleted = 3", 4, "max-deleted", "unknown key", "it below [guard]"),
    ("parallel = 3", 4, "parallel", "unknown key", "it below [tree]"),
    ("[keep]\ndaily = 3\nlate-after = '1h'", 6, "keep.late-after", "unknown key", "it before the first section"),
    ("[keep]\nattempts = 3", 5, "keep.attempts", "unknown key", "it below [retry]"),
    ("\n[guards]\nmax-deleted = 3", 5, "guards", "unknown key", "[guard], the nearest name"),
    ("[snapshots]\ndaily = 3", 4, "snapshots", "the engine tree copies paths", "only datasets have snapshots"),
    ("[btrfs]\nx = 1", 4, "btrfs", "unknown key", "[guard], [hooks], [keep], [pipe], [retry], [sets], [snapshots], [tree], [verify]"),
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
    ("window = '22-6'", 4, "window", '"22-6" does not fit', 'a span of the day such as "22:00-06:00"'),
    ("window = '06:00-06:00'", 4, "window", "does not fit", "a span of the day"),
    ("window = '22:00-06:00'\nstop-at = '05:00'", 5, "stop-at", '"window" already says when', "only one of"),
    ("every = '2h'\nspread = '1h'", 5, "spread", "is for jobs that run at fixed times", "schedule or daily beside it"),
    ("daily = '02:30'\nspread = '25h'", 5, "spread", '"25h" does not fit', "at most a day"),
    ("daily = '02:30'\nmin-interval = '1h'", 5, "min-interval", "is for jobs that run when", 'on = "attach"'),
    ("priority = 'high'", 4, "priority", '"high" does not fit', "a whole number"),
    ("daily = '02:30'\n\nevery = '1h'", 6, "every", '"daily" already says when', "only one of"),
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
    (head("sets", "tank", "vault", "sets.label = 'x'\n[snapshots]"), 5, "snapshots", "keeps nothing", "daily = 14"),
    (head("sets", "tank", "vault", "sets.label = 'x'").replace("target", "# "), 1, "target", "is missing", "backup"),
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


SOURCES = [
    ("'/a', '/b', '/a'", '"/a" is named twice', "each folder once"),
    ("'/a/b/c', '/a/b'", '"/a/b/c" lies inside "/a/b"', "only the outer one"),
    ("'/a', 'b'", '"b" is no absolute path', 'a path that begins with "/"'),
    ("'/a', 'tank/b'", '"tank/b" is no absolute path', 'a path that begins with "/"'),
    ("'/a', '/'", '"/" holds all the others', 'source = "/"'),
    ("'/a', '/b/../c'", '"/b/../c" is no plain path', "without"),
    ("'root@nas:/a', '/b'", "folders of two machines: root@nas and this machine", "a job for each"),
    ("'root@nas:/a', 'ssh://nas/b'", "folders of two machines: root@nas and nas", "a job for each"),
    ("'/a', true", "true does not fit", "a path"),
    ("", "is empty", 'a list of texts in quotes, such as ["/home"'),
]


@pytest.mark.parametrize(("folders", "what", "expected"), SOURCES)
def test_a_mistake_in_a_list_of_folders(tmp_path: Path, folders: str, what: str, expected: str) -> None:
    (mistake,) = refused(tmp_path, f"engine = 'tree'\ntarget = 'backup'\nsources = [{folders}]\n")
    assert (mistake.file, mistake.line, mistake.key) == (f"{tmp_path}/jobs/photos.toml", 3, "sources")
    assert (what in mistake.what, expected in mistake.expected) == (True, True), mistake


def test_an_element_of_a_list_is_named_by_its_own_line(tmp_path: Path) -> None:
    text = "engine = 'tree'\ntarget = 'backup'\nsources = [\n'/a',\n'b', # here\n'/c',\n'd']\n[tree]\nexcludes = [\n'x',\n3]\nkinds = ['file',\n'lnk',\n]\n"
    found = [(each.line, each.key) for each in refused(tmp_path, text)]
    assert sorted(found) == [(5, "sources"), (7, "sources"), (11, "tree.excludes"), (13, "tree.kinds")]
    (twice,) = refused(tmp_path / "twice", "engine = 'tree'\ntarget = 'backup'\nsources = [\n'/a',\n'/b',\n'/a']\n")
    assert twice.line == 6


def test_folders_are_named_once_are_paths_and_lie_apart_from_the_copies(tmp_path: Path) -> None:
    (both,) = refused(tmp_path, JOB + "sources = ['/a']\n")
    assert (both.line, both.key, both.expected) == (4, "sources", "one of source and sources")
    (none,) = refused(tmp_path, "engine = 'tree'\ntarget = 'backup'\n")
    assert (none.key, none.what) == ("source", "is missing")
    told = refused(tmp_path, "engine = 'sets'\ntarget = 'vault'\nsources = ['tank/a', 'tank/b']\n")
    assert (3, "sources", "the engine sets takes one dataset") in [(each.line, each.key, each.what) for each in told]
    (inside,) = refused(tmp_path, "engine = 'tree'\ntarget = 'backup'\nsources = ['/home', '/backup']\n")
    assert (inside.key, inside.expected) == ("target", "a place apart from /backup")
