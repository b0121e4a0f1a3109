"""syncoid's own command line, and which keys of a job its options become."""

import pytest

from orchestrator.config.migrate.job_text import Value
from orchestrator.config.migrate.map_syncoid import map_options
from orchestrator.config.migrate.result import Lost
from orchestrator.config.migrate.syncoid import SyncoidCall, parse_pattern, parse_special, parse_syncoid
from orchestrator.domain.place import Host, Location


def parsed(line: str) -> SyncoidCall:
    return parse_syncoid(tuple(line.split("|")))


def carried(options: str, source: str = "tank/photos") -> tuple[dict[str, dict[str, Value]], list[str]]:
    return map_options(parsed("|".join(filter(None, ("--no-rollback", options, source, "backup/photos")))))


def test_places() -> None:
    told = parsed("root@vault.lan:pool/my own|backup/photos")
    assert told.source == Location(path="pool/my own", host=Host(name="vault.lan", user="root"))
    assert told.target == Location(path="backup/photos")
    assert parsed("--sshport=2222|a/b|vault:c/d").target.host == Host(name="vault", port=2222)
    assert parsed("a/b:c|d").source == Location(path="a/b:c")


def test_options_as_its_own_parser_reads_them() -> None:
    told = parsed("-r|--exclude|x|a/b|--exclude=y|--NO-SYNC|-compress=lz4|c/d|-F|-o|A=B")
    assert told.options == (
        ("recursive", ""), ("exclude", "x"), ("exclude", "y"), ("no-sync-snap", ""), ("compress", "lz4"),
        ("force-delete", ""), ("sshoption", "A=B"),
    )  # fmt: skip
    assert told.of("exclude") == ("x", "y")
    assert not told.has("no-stream")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("--wat|a|b", "--wat is no option"),
        ("--no|a|b", "--no is no option"),
        ("a", "needs a source and a target"),
        ("a|b|c", "has 3 places"),
        ("a|b|--exclude", "--exclude lacks its value"),
        ("/a/b|c", "no name of a dataset"),
        ("a@b:c|d?", "no name of a dataset"),
    ],
)
def test_what_is_no_call_of_syncoid(line: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parsed(line)


@pytest.mark.parametrize(
    ("regex", "pattern"),
    [
        ("scratch", "*scratch*"),
        ("^tank/a", "tank/a*"),
        ("/tmp$", "*/tmp"),
        ("^a.*b$", "a*b"),
        (r"my\.host", "*my.host*"),
        ("(a|b)", None),
        ("a+", None),
        ("", None),
    ],
)
def test_expressions_as_patterns(regex: str, pattern: str | None) -> None:
    assert parse_pattern(regex) == pattern


def test_special_options() -> None:
    assert list(parse_special("Lc e")) == [("L", ""), ("c", ""), ("e", "")]
    assert list(parse_special("ux recordsize o compression=lz4")) == [
        ("u", ""), ("x", "recordsize"), ("o", "compression=lz4"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "section", "key", "value"),
    [
        ("", "zfs", "recursive", False),
        ("-r", "zfs", "recursive", True),
        ("--no-stream", "zfs", "catch-up", "newest"),
        ("-r|--exclude=^tank/photos/tmp", "zfs", "exclude", ("tmp*",)),
        ("-r|--exclude=tank/photos/a$", "zfs", "exclude", ("a",)),
        ("-r|--exclude=/a$", "zfs", "exclude", ("a", "*/a")),
        ("-r|--exclude=swap", "zfs", "exclude", ("*swap*",)),
        ("--sendoptions=w", "zfs", "raw", "yes"),
        ("--recvoptions=u x mountpoint x quota", "zfs", "protect", ("mountpoint", "quota")),
        ("--include-snaps=^autosnap", "zfs", "snapshots", ("autosnap*",)),
        ("--exclude-snaps=hourly$", "zfs", "skip-snapshots", ("*hourly",)),
        ("--source-bwlimit=10m|--target-bwlimit=2m", "pipe", "rate-limit", "2M"),
        ("--bwlimit=5m", "pipe", "rate-limit", "5M"),
        ("--mbuffer-size=256M", "pipe", "buffer", "256M"),
        ("--sshkey=/k|--sshconfig=/f|-o|A=B", "pipe", "ssh-options", ("-F", "/f", "-i", "/k", "-o", "A=B")),
    ],
)
def test_what_becomes_a_key(options: str, section: str, key: str, value: Value) -> None:
    keys, notes = carried(options)
    assert keys[section][key] == value
    assert all("$" in note for note in notes)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ("-r|--exclude=(a|b)".replace("|b", "b+"), "--exclude="),
        ("-r|--exclude=^other", "--exclude=^other"),
        ("-r|--exclude=a$", "below it too"),
        ("--force-delete", "--aside"),
        ("--delete-target-snapshots", "[keep]"),
        ("--sendoptions=R", "zfs send -R"),
        ("--recvoptions=F", "zfs receive -F"),
        ("--recvoptions=o compression=lz4", "compression=lz4"),
        ("--source-bwlimit=fast", "bwlimit fast"),
        ("--exclude-snaps=a+", "--exclude-snaps=a+"),
        ("--sshport=x", "--sshport x"),
    ],
)
def test_what_does_not_is_told(options: str, word: str) -> None:
    _, notes = carried(options)
    assert len(notes) == 1
    assert word in notes[0]
    assert isinstance(notes[0], Lost) is (options != "-r|--exclude=a$")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ("--use-hold", "zfs release"),
        ("--identifier=a", "bookmark"),
        ("--compress=lzo", "compressed"),
        ("--keep-sync-snap", "takes no snapshot"),
        ("--create-bookmark", "its own bookmark"),
    ],
)
def test_what_is_not_needed_is_told_and_not_lost(options: str, word: str) -> None:
    (note,) = carried(options)[1]
    assert word in note
    assert not isinstance(note, Lost)


def test_the_consent_to_roll_back_is_only_proposed() -> None:
    keys, notes = map_options(parsed("tank/photos|backup/photos"))
    assert keys["zfs"]["# may-destroy"] == ("rollback",)
    assert "may-destroy" not in keys["zfs"]
    assert notes == []
    assert "# may-destroy" not in carried("")[0]["zfs"]


def test_what_needs_sudo() -> None:
    def sudo(options: str, source: str) -> object:
        return carried(options, source)[0]["zfs"].get("sudo")

    assert sudo("", "ferry@a:tank/photos") is True
    assert sudo("--no-privilege-elevation", "ferry@a:tank/photos") is None
    assert sudo("", "root@a:tank/photos") is None
    assert "sudo" in carried("", "a:tank/photos")[1][0]
