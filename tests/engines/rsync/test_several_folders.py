"""Several folders as one source: their survey, the commands that name each of them, and what refuses one without the others."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import NothingToDo, Plan, Refusal
from orchestrator.domain.source_tree import SourceTree
from orchestrator.engines.rsync import commands, script_commands
from orchestrator.engines.rsync.errors import find_skipped_entries
from orchestrator.engines.rsync.model import SourceSurvey
from orchestrator.engines.rsync.parallel import ParallelCopies, TreeSplitter
from orchestrator.engines.rsync.parse import DryRunReader, join_surveys, parse_sources
from orchestrator.engines.rsync.plan import plan
from tests.engines.rsync.builders import ACCOUNT, ASKED, EMPTY, FIRST, UNCHANGED, USED, failed, job, world

PARTS = ("home", "srv/www")
TREE = SourceTree(root=Location(path="/"), parts=PARTS)
THERE = SourceSurvey(exists=True, directory=True, device=1, mounted=False, empty=False, folder="/home")
WWW = replace(THERE, folder="/srv/www", mounted=True, owner=7, shared=True)
SEVERAL = replace(job(source=Location(path="/")), parts=PARTS)


def test_each_folder_is_surveyed() -> None:
    text = b"d 7 0 755\n3 0 755\0x\0l /data/www\0f\0a\0d 7 0 755\n7 0 755\0\0"
    parts = ("home", "www", "file", "none", "bare")
    seen = parse_sources(text, replace(TREE, parts=parts))
    assert [each.folder for each in seen] == [f"/{part}" for part in parts]
    assert [(each.exists, each.directory, each.leads) for each in seen] == [
        (True, True, ""), (True, False, "/data/www"), (True, False, ""), (False, False, ""), (True, True, ""),
    ]  # fmt: skip
    assert [each.empty for each in seen] == [False, False, False, False, True]
    joined = join_surveys((THERE, WWW))
    assert (joined.directory, joined.mounted, joined.shared, join_surveys(seen).directory) == (True, False, True, False)
    assert join_surveys((WWW,)) is WWW


def test_the_dry_run_counts_by_folder_and_without_a_root() -> None:
    look = DryRunReader(TREE)
    for line in (
        b"pf:*deleting  |0|home/a",
        b"pf:*deleting  |0|srv/www/b",
        b"pf:>f.st......|5|srv/www/c",
        *ACCOUNT.splitlines(),
    ):
        look.feed(line)
    changes = look.changes()
    assert changes is not None
    assert {top: (each.deleted, each.changed) for top, each in changes.folders.items()} == {
        b"home": (1, 0),
        b"srv/www": (1, 1),
    }
    assert changes.entries_now == 25


def test_rsync_gets_each_folder_by_its_whole_path() -> None:
    there = replace(SEVERAL, source=Location(path="/", host=Host(name="nas")), parts=("home", "srv/a b[1]"))
    argv = commands.dry_run_command(there, Location(path="/b"), there=None, coarse=False).argv
    at = argv.index("--relative")
    assert argv[at:] == ("--relative", "--", "nas:/./home", "nas:/./srv/a b\\[1\\]", "/b/")
    assert "--protect-args" in argv
    settled = commands.settle_command(SEVERAL, Location(path="/b"), world(), "/n").argv
    assert ("--include-from=/n" in settled, commands.settle_names(SEVERAL, [b"home/x"])) == (True, b"/home/\0/home/x\0")
    split = commands.copy_command(SEVERAL, Location(path="/b"), world(), base=None, parallel_copy=True).argv
    assert ("--relative" in split, split[-2:]) == (False, ("/", "/b/"))


def test_no_parallel_copy_takes_a_folder_whole_that_is_above_one() -> None:
    def paths(shared: tuple[str, ...]) -> list[bytes]:
        listed = TreeSplitter(shared=shared)
        listed.add(b"srv/www/a", b"f", 5, 1, 1)
        for number in range(9):
            listed.add(b"home/%d" % number, b"f", 1 << 30, 1, 1)
        made = listed.parallel_copies(2)
        assert isinstance(made, ParallelCopies)
        return [path for each in made.parallel_copies for path in each.paths]

    assert b"srv" in paths(())
    assert (b"srv" in paths(TREE.above), b"srv/www" in paths(TREE.above)) == (False, True)


@pytest.mark.parametrize(("wrong", "why", "hint"), [
    (replace(WWW, exists=False, directory=False), "the source /srv/www is not there", "take it out of `sources`"),
    (replace(WWW, directory=False), "the source /srv/www is not a folder", "mount it"),
    (replace(WWW, directory=False, leads="/data/www"), "a link leads to the source /srv/www", 'write "/data/www"'),
])  # fmt: skip
def test_one_folder_that_is_not_there_refuses_all(wrong: SourceSurvey, why: str, hint: str) -> None:
    found = plan(SEVERAL, world(source=join_surveys((THERE, wrong)), parts=(THERE, wrong)), ASKED)
    assert isinstance(found, Refusal)
    assert (found.why, hint in found.hint) == (why, True)
    alone = plan(SEVERAL, world(source=wrong, parts=(wrong,)), ASKED)
    assert isinstance(alone, Refusal)


def test_what_the_job_names_no_more_is_named_and_left_out_of_the_next_point() -> None:
    equal = world(changes=UNCHANGED, parts=(THERE, WWW))
    assert isinstance(plan(SEVERAL, equal, ASKED), NothingToDo)
    fewer = plan(SEVERAL, replace(equal, others=tuple(b"%d" % number for number in range(7))), ASKED)
    assert isinstance(fewer, Plan)
    assert fewer.warnings == (
        f"no source of this job any more, and in the points until {USED.points[-1].name}: 0, 1, 2, 3, 4 and 2 more",
    )
    cut = plan(SEVERAL, world(replace(USED, work=True), parts=(THERE, WWW)), ASKED)
    assert isinstance(cut, Plan)
    assert "discard what is no source any more" in [step.action for step in cut.steps]
    mirror = replace(job(source=Location(path="/"), points=False), parts=PARTS)
    mirrored = plan(mirror, world(replace(EMPTY, owner="photos"), parts=(THERE, WWW), others=(b"etc",)), ASKED)
    assert isinstance(mirrored, Plan)
    assert "/backup/photos, where it stays: etc" in mirrored.warnings[0]


def test_an_empty_folder_is_named_by_the_first_copy() -> None:
    first = plan(SEVERAL, world(EMPTY, FIRST, parts=(THERE, replace(WWW, empty=True))), ASKED)
    assert isinstance(first, Plan)
    assert first.warnings == ("the source /srv/www is empty, and so is its first copy: is it mounted?",)


def test_what_is_no_part_is_found_and_removed_without_following_links(tmp_path: Path) -> None:
    for name in ("a[1]*/x", "a[1]b/y", "srv/www/z", "srv/-rf", "srv/new\nline/q", ".hidden", "..odd", "elsewhere/dear"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "etc").symlink_to(tmp_path / "elsewhere")
    parts, tree = ("a[1]*", "srv/www", "etc/x"), Location(path=str(tmp_path))
    found = subprocess.run(script_commands.others_command(tree, parts).argv, capture_output=True, check=True).stdout
    others = {b"a[1]b", b"srv/-rf", b"srv/new\nline", b".hidden", b"..odd", b"elsewhere"}
    assert set(found.split(b"\0")[:-1]) == others
    kept = (*parts, "elsewhere")
    subprocess.run(script_commands.discard_others_command(tree, kept).argv, check=True)
    assert {path.name for path in tmp_path.iterdir()} == {"a[1]*", "srv", "etc", "elsewhere"}
    assert [path.name for path in (tmp_path / "srv").iterdir()] == ["www"]
    assert (tmp_path / "elsewhere/dear").exists()


def test_a_folder_that_vanishes_while_it_is_copied_is_a_failure() -> None:
    words = "rsync warning: some files vanished before they could be transferred (code 24) at main.c(1) [sender=3.5.0]"
    for name, skipped in (("/srv/www/x", True), ("/srv/www", False), ("/srv", False)):
        found = find_skipped_entries(failed(words, 24), [f'file has vanished: "{name}"'.encode()], TREE, "/t")
        assert (found is not None) is skipped, name


def test_partial_files_of_a_mirror_are_ours_where_its_root_is() -> None:
    seen = world(replace(USED, by_root=True), parts=(THERE, WWW))
    assert seen.keeps_partials
    assert not replace(seen, target=replace(seen.target, root_owner=7)).keeps_partials
    assert not replace(seen, target=replace(seen.target, root_shared=True)).keeps_partials
