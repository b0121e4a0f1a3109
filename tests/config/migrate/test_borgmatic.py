"""borgmatic's configuration, in its present form and with the sections of before."""

from pathlib import Path

import pytest

from orchestrator.config.migrate.borgmatic import convert_pattern, import_borgmatic
from orchestrator.config.migrate.program_calls import ImportedSettings
from tests.config.migrate.imported import ENGINES, ImportedFiles, imported

CONFIG = """\
source_directories:
    - /home
    - /etc
repositories:
    - path: /mnt/backup/host.borg
exclude_patterns:
    - '*.pyc'
    - /home/*/.cache
one_file_system: true
keep_daily: 7
keep_monthly: 6
healthchecks: {ping_url: https://hc-ping.com/aaa-bbb}
ntfy: {topic: my-topic, server: https://ntfy.example.org}
"""
OLDER = """\
location:
    source_directories: [/home]
    repositories: [/mnt/backup/host.borg]
retention:
    keep_weekly: 4
hooks:
    healthchecks: https://hc-ping.com/aaa-bbb
"""
TIMER = "[Timer]\nOnCalendar=daily\nRandomizedDelaySec=3h\n"
SERVICE = "[Service]\nExecStart=systemd-inhibit --who=borgmatic /usr/bin/borgmatic --syslog-verbosity 1\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "out"


def run(
    folder: Path, text: str = CONFIG, target: str | None = None, units: tuple[tuple[str, str], ...] = ()
) -> ImportedFiles:
    settings = ImportedSettings(files=[("config.yaml", text)], units=units)
    return imported(import_borgmatic(settings, ENGINES, target), folder)


def test_all_source_folders_become_one_job(folder: Path) -> None:
    made = run(folder, units=(("borgmatic.service", SERVICE), ("borgmatic.timer", TIMER)))
    assert made.jobs == {"borgmatic": {
        "engine": "rsync", "sources": ["/home", "/etc"], "target": "borgmatic-copies", "schedule": "0 0 * * *", "late-after": "26h",
        "rsync": {"excludes": ["*.pyc", "/home/**/.cache"]}, "keep": {"daily": 7, "monthly": 6}, "verify": {"every": "7d"},
    }}  # fmt: skip
    assert made.places == {"borgmatic-copies": "/mnt/backup/poolferry/borgmatic"}
    assert made.notices == {
        "ping-borgmatic": {"kind": "ping", "url": "@ping-borgmatic.secret"},
        "ntfy-borgmatic": {"kind": "ntfy", "topic": "@ntfy-borgmatic.secret"},
    }
    assert [line.partition(" is ")[0] for line in made.lost] == [
        "config.yaml:5: the archives in /mnt/backup/host.borg are not carried over: only Borg can read them",
        "borgmatic.timer:3: RandomizedDelaySec=3h",
    ]


def test_folders_that_one_job_cannot_have_become_a_job_each(folder: Path) -> None:
    made = run(folder, CONFIG.replace("- /etc", "- /home/me"))
    assert {name: job["source"] for name, job in made.jobs.items()} == {"home": "/home", "me": "/home/me"}
    assert made.jobs["home"]["rsync"] == {"excludes": ["*.pyc", "/**/.cache"]}


def test_without_folders_nothing_is_made(folder: Path) -> None:
    made = run(folder, CONFIG.replace("source_directories:\n    - /home\n    - /etc\n", ""))
    assert (made.jobs, "it has no source_directories" in " ".join(made.lost)) == ({}, True)


def test_the_sections_of_before(folder: Path) -> None:
    made = run(folder, OLDER, "nas:/backup/points")
    assert made.jobs["home"]["keep"] == {"weekly": 4}
    assert made.places == {"home-copies": "ssh://nas/backup/points/home"}
    assert made.notices["ping-home" if "ping-home" in made.notices else "ping"]["kind"] == "ping"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("encryption_passcommand: x", "not encrypted"),
        ("compression: lz4", "compress"),
        ("postgresql_databases: [{name: a}]", "dump"),
        ("before_backup: [echo]", "[hooks] before"),
        ("exclude_if_present: [.nobackup]", "excludes"),
        ("keep_within: 3H", "[keep] counts"),
        ("zabbix: {server: x}", "no equivalent"),
        ("cronitor: 'no address'", "does not fit"),
    ],
)
def test_what_is_lost_has_its_line(folder: Path, line: str, why: str) -> None:
    lost = run(folder, CONFIG + line + "\n").lost
    assert any(each.startswith("config.yaml:14: ") and why in each for each in lost), lost


@pytest.mark.parametrize("text", ["", "source_directories: [docs]\n"])
def test_without_a_source_folder_nothing_is_made(folder: Path, text: str) -> None:
    made = run(folder, text, target="/backup")
    assert made.jobs == {}
    assert made.lost


def test_without_a_folder_for_the_copies_nothing_is_made(folder: Path) -> None:
    made = run(folder, CONFIG.replace("/mnt/backup/host.borg", "ssh://u@u.repo.example.org/./repo"))
    assert made.jobs == {}
    assert any("--target" in line for line in made.lost)
    with pytest.raises(ValueError, match="whole path"):
        run(folder, target="backup")


@pytest.mark.parametrize(
    ("pattern", "source", "rsync"),
    [
        ("*.pyc", "/home", "*.pyc"),
        ("/home/*/.cache", "/home", "/**/.cache"),
        ("sh:/home/*/.cache", "/home", "/*/.cache"),
        ("sh:**/node_modules", "/home", "node_modules"),
        ("*/node_modules", "/home", "node_modules"),
        ("pp:/home/a[1]", "/home", "/a\\[1]"),
        ("/var/x", "/home", ""),
        ("home/x", "/", "/home/x"),
        ("/*/x", "/home", None),
        ("re:x", "/home", None),
    ],
)
def test_patterns_of_borg(pattern: str, source: str, rsync: str | None) -> None:
    assert convert_pattern(pattern, source) == rsync
