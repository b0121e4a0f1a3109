"""rsnapshot.conf, with the times at which a crontab calls rsnapshot."""

import re
from pathlib import Path

import pytest

from orchestrator.config.migrate.program_calls import ImportedSettings
from orchestrator.config.migrate.rsnapshot import import_rsnapshot
from tests.config.migrate.imported import ENGINES, ImportedFiles, imported

CONF = """\
config_version	1.2
snapshot_root	/backup/
no_create_root	1
cmd_rsync	/usr/bin/rsync
retain	alpha	6
retain	beta	7
retain	gamma	4
retain	monthly	3
exclude	*.iso
exclude	/home/*/.cache/
ssh_args	-p 2222 -i /root/.ssh/id
backup	/home/	localhost/
backup	/etc/	localhost/	one_fs=1
backup	root@web.lan:/var/www/	web/
"""
CRONTAB = """\
MAILTO=me@example.org
0 */4 * * * root /usr/bin/rsnapshot alpha && curl https://hc-ping.com/0f0e
30 3 * * * root /usr/bin/rsnapshot beta
0 3 * * 1 root /usr/bin/rsnapshot gamma
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "out"


def run(folder: Path, conf: str = CONF, crontab: str = CRONTAB) -> ImportedFiles:
    crontabs = [("cron", crontab)] if crontab else []
    return imported(
        import_rsnapshot(ImportedSettings(files=[("rsnapshot.conf", conf)], crontabs=crontabs), ENGINES), folder
    )


def test_each_backup_line_becomes_a_job(folder: Path) -> None:
    made = run(folder)
    assert made.lost == []
    assert made.jobs["home"] == {
        "engine": "rsync", "source": "/home", "target": "home-copies", "schedule": "0 */4 * * *", "late-after": "8h",
        "rsync": {"one-file-system": False, "excludes": ["*.iso", "/*/.cache/"]},
        "keep": {"hourly": 6, "daily": 7, "weekly": 4, "monthly": 3},
    }  # fmt: skip
    assert made.jobs["etc"]["rsync"] == {"one-file-system": True, "excludes": ["*.iso"]}
    assert made.jobs["www"]["source"] == "ssh://root@web.lan/var/www"
    assert made.jobs["www"]["pipe"] == {"ssh-options": ["-p", "2222", "-i", "/root/.ssh/id"]}
    assert made.places == {
        "home-copies": "/backup/poolferry/localhost/home",
        "etc-copies": "/backup/poolferry/localhost/etc",
        "www-copies": "/backup/poolferry/web.lan/www",
    }
    assert made.notices["mail"] == {"kind": "mail", "to": ["me@example.org"]}
    assert made.notices["ping"]["of"] == "protected"


def test_lines_of_one_machine_become_one_job(folder: Path) -> None:
    more = "backup\t/srv/mail\tlocalhost/\nbackup\troot@web.lan:/etc\tweb/\nbackup\troot@db.lan:/etc\tdb/\n"
    made = run(folder, CONF + more)
    assert made.lost == []
    assert set(made.jobs) == {"localhost", "etc", "web.lan", "etc-2"}
    assert made.jobs["localhost"]["sources"] == ["/home", "/srv/mail"]
    assert made.jobs["localhost"]["rsync"]["excludes"] == ["*.iso", "/home/*/.cache/"]
    assert made.jobs["web.lan"]["sources"] == ["ssh://root@web.lan/var/www", "ssh://root@web.lan/etc"]
    assert made.jobs["web.lan"]["rsync"]["excludes"] == ["*.iso"], "the other lies in none of them"
    assert made.places["localhost-copies"] == "/backup/poolferry/localhost/all"
    inside = run(folder / "again", CONF + "backup\t/home/me\tlocalhost/\nrsync_long_args\t--delete\nbackup\t/opt\tx/\n")
    assert [inside.jobs[name]["source"] for name in ("home", "me", "opt")] == ["/home", "/home/me", "/opt"]
    (lost,) = inside.lost
    assert '"/home/*/.cache/" begins at the top of the source, so it is for /home/home/*/.cache/' in lost
    assert 'in [rsync] excludes write "/*/.cache/"; "/[h]ome/*/.cache/" for that' in lost
    assert inside.jobs["home"]["rsync"]["excludes"] == ["*.iso"]
    both = run(folder / "both", CONF.replace("one_fs=1", "") + "rsync_long_args\t--delete\n")
    assert both.jobs["localhost"]["rsync"]["excludes"] == ["*.iso", "/home/home/*/.cache/", "/etc/home/*/.cache/"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("backup_script	/usr/local/bin/dump.sh	db/", "hooks"),
        ("backup	rsync://x/y	z/", "through ssh"),
        ("backup	/	everything/", "lies inside the source"),
        ("backup	/home/*	x/", "one folder"),
        ("backup	/srv/	x/	+rsync_long_args=--bwlimit=100", "+rsync_long_args"),
        ("backup /srv/ x/", "wants tabs"),
        ("backup	/srv/", "a source and a folder"),
        ("exclude_file	/etc/x", "excludes"),
        ("rsync_long_args	--delete --numeric-ids --relative --fake-super", "--fake-super"),
        ("rsync_short_args	-aK", "-K"),
        ("cmd_preexec	/x", "[hooks] before"),
        ("retain	delta	3", "which span"),
        ("retain	daily	3", "[keep] daily is taken"),
        ("include_conf	/x", "include_conf"),
    ],
)
def test_what_is_lost_has_its_line(folder: Path, line: str, why: str) -> None:
    made = run(folder, CONF + line + "\n")
    (lost,) = made.lost
    assert lost.startswith("rsnapshot.conf:15: ")
    assert why in lost
    assert {"home" if "localhost" not in made.jobs else "localhost", "etc", "www"} <= set(made.jobs)


def test_patterns_that_check_refuses_are_lost_and_their_jobs_are_not(folder: Path) -> None:
    made = run(folder, CONF + "exclude\t!\nexclude\t*.tmp\nexclude\ta[b\n")
    assert made.jobs["etc"]["rsync"]["excludes"] == ["*.iso", "*.tmp"]
    assert sorted(set(re.findall(r'a pattern is not carried over: (".*?") ', " ".join(made.lost)))) == ['"!"', '"a[b"']


def test_patterns_begin_at_the_source_where_rsync_is_not_relative(folder: Path) -> None:
    made = run(folder, CONF + "rsync_long_args	--delete --numeric-ids\n")
    assert made.jobs["etc"]["rsync"]["excludes"] == ["*.iso", "/home/*/.cache/"]


def test_without_a_crontab_the_spans_of_own_names_are_unknown(folder: Path) -> None:
    made = run(folder, crontab="")
    assert made.jobs["home"]["keep"] == {"monthly": 3}
    assert [line.partition(" is ")[0] for line in made.lost] == [
        "rsnapshot.conf:5: retain alpha",
        "rsnapshot.conf:6: retain beta",
        "rsnapshot.conf:7: retain gamma",
    ]
    assert any("--crontab" in line for line in made.told)


def test_without_a_root_nothing_is_made(folder: Path) -> None:
    made = run(folder, "backup	/home/	localhost/\n")
    assert made.jobs == {}
    assert "snapshot_root" in made.lost[0]
