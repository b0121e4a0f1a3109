"""Imports of syncoid from whole files, in this process: the jobs, the notices, and what is lost."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from orchestrator import compose
from orchestrator.app.job_import import JobImport, SyncoidFiles, import_syncoid_jobs
from orchestrator.config.load import load_configuration
from orchestrator.config.machine import load_machine_config

NIGHTLY = (
    "30 2 * * * root /usr/sbin/syncoid -r --no-sync-snap tank/photos root@backup.lan:vault/replicas/photos >/dev/null\n"
)


class SyncoidImport:
    """An import into a folder of its own; what was written is loaded as a run loads it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "out"
        self.told: list[str] = []
        self.lost: list[str] = []

    def run(self, crontab: str = "", units: tuple[str, ...] = (), scripts: tuple[str, ...] = ()) -> JobImport:
        """One import of this crontab and these files."""
        (self.root / "cron").write_text(crontab)
        crontabs = (str(self.root / "cron"),) if crontab else ()
        made = import_syncoid_jobs(
            SyncoidFiles(crontabs=crontabs, units=units, scripts=scripts), str(self.folder), stdin=str
        )
        lines = [(each.lost, f"{each.where.removeprefix(f'{self.root}/')}: {each.text}") for each in made.lines]
        self.told = [text for lost, text in lines if not lost]
        self.lost = [text for lost, text in lines if lost]
        if made.written:
            load_configuration(str(self.folder), compose.EngineSections())
            load_machine_config(str(self.folder))
        return made

    def file(self, name: str, text: str) -> str:
        """Write a file beside the crontab and return its path."""
        (self.root / name).write_text(text)
        return str(self.root / name)

    def job(self, name: str) -> dict[str, Any]:
        """Return what was written for a job."""
        return tomllib.loads((self.folder / "jobs" / f"{name}.toml").read_text())

    def notices(self) -> dict[str, Any]:
        """Return the channels that were written."""
        found: dict[str, Any] = tomllib.loads((self.folder / "poolferry.toml").read_text())["notice"]
        return found

    def has(self, lines: list[str], *texts: str) -> bool:
        """Return whether each text is in one of these lines."""
        return all(any(text in line for line in lines) for text in texts)


@pytest.fixture
def imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SyncoidImport:
    monkeypatch.setattr("orchestrator.app.job_import.SANOID_CONF", str(tmp_path / "nowhere"))
    return SyncoidImport(tmp_path)


LINES = """\
MAILTO=admin@example.org
POOL=tank
0 1 * * * root flock -n /run/s.lock /usr/sbin/syncoid --no-sync-snap $POOL/a vault/a && curl -fsS -m 10 -o /dev/null https://hc-ping.com/0f0e
0 2 * * * root /usr/sbin/syncoid --no-sync-snap tank/b vault/b || mail -s 'it failed' night@example.org
0 3 * * * root curl https://kuma.example.org/api/push/x; syncoid --no-sync-snap tank/c vault/c 2>&1 | logger -t syncoid
"""


def test_pings_and_mails_become_notices(imports: SyncoidImport) -> None:
    assert imports.run(LINES).complete
    assert imports.notices() == {
        "ping-a": {"kind": "ping", "url": "@ping-a.secret", "jobs": ["a"]},
        "mail": {"kind": "mail", "to": ["admin@example.org"]},
        "mail-b": {"kind": "mail", "to": ["night@example.org"], "jobs": ["b"]},
        "ping-c": {"kind": "ping", "style": "plain", "url": "@ping-c.secret", "jobs": ["c"]},
    }
    secret = imports.folder / "ping-a.secret"
    assert (secret.read_text(), secret.stat().st_mode & 0o777) == ("https://hc-ping.com/0f0e\n", 0o600)
    assert imports.has(imports.told, "cron:3: flock /run/s.lock is not needed", "cron:5: what logger does")


@pytest.mark.parametrize(
    ("line", "url", "style"),
    [
        (
            "curl https://hc.lan/ping/1/start; CALL && curl https://hc.lan/ping/1 || curl https://hc.lan/ping/1/fail",
            "https://hc.lan/ping/1",
            None,
        ),
        ("CALL; curl https://hc-ping.com/0f0e0d0c-1/$?", "https://hc-ping.com/0f0e0d0c-1", None),
        ("CALL || wget -q https://hc-ping.com/0f0e0d0c-1/1", "https://hc-ping.com/0f0e0d0c-1", None),
        ("if CALL; then curl https://a.example.org/x; fi", "https://a.example.org/x", "plain"),
        ("bash -c 'CALL && curl https://a.example.org/x'", "https://a.example.org/x", "plain"),
    ],
)
def test_ways_to_ping(imports: SyncoidImport, line: str, url: str, style: str | None) -> None:
    imports.run(f"0 1 * * * {line.replace('CALL', 'syncoid --no-sync-snap tank/a vault/a')}\n")
    assert imports.lost == []
    (notice,) = imports.notices().values()
    assert (imports.folder / notice["url"][1:]).read_text() == f"{url}\n"
    assert notice.get("style") == style


@pytest.mark.parametrize(
    "rest",
    [
        "|| curl https://hooks.example.org/only-when-it-failed",
        "; curl -X POST -d x https://x.example.org/y",
        "&& curl https://x.example.org/$TOKEN",
        "&& curl https://[x]/y",  # no address: nothing answers there
        "|| mail -s x 'a b'",
        "&& zpool scrub tank",
        "&& ssh nas zpool scrub vault",
    ],
)
def test_what_a_line_does_besides_is_lost_with_its_line(imports: SyncoidImport, rest: str) -> None:
    assert not imports.run(f"0 1 * * * syncoid --no-sync-snap tank/a vault/a {rest}\n").complete
    assert imports.told == ["cron:1: became jobs/a.toml"]
    assert len(imports.lost) == 1
    assert imports.has(imports.lost, "cron:1: ")


def test_what_stood_before_is_lost_or_not_needed(imports: SyncoidImport) -> None:
    imports.run(
        "0 1 * * * A=1 LC_ALL=C sudo -u backup nice -n 19 ionice -c 3 chronic timeout -k 5 6h syncoid --no-sync-snap tank/a vault/a\n"
    )
    assert imports.has(imports.lost, "A=1 is not carried over", "nice -n 19 is", "ionice -c 3 is", "timeout 6h is")
    assert len(imports.lost) == 4
    assert imports.has(imports.told, "ran as the user backup")
    assert "vault/a" not in imports.job("a").values()


def test_what_becomes_no_job_says_why(imports: SyncoidImport) -> None:
    lines = {
        "for x in $(zfs list); do syncoid tank/$x vault/$x; done": 'stands in a "for"',
        "syncoid --no-sync-snap tank/a vault/a && syncoid --no-sync-snap tank/a vault/a": "the same copy as that of jobs/a.toml",
        "syncoid -r tank backup": "the whole pool backup",
        "ssh -p 22 root@nas 'syncoid tank/g backup/g'": "it runs on root@nas, through ssh",
        "[ -x /usr/sbin/syncoid ] && syncoid 'tank/a vault/b": "a quotation is not closed",
    }
    assert not imports.run("".join(f"0 1 * * * {line}\n" for line in lines)).complete
    for number, why in enumerate(lines.values(), start=1):
        assert any(line.startswith(f"cron:{number}: is not carried over") and why in line for line in imports.lost), why
    assert [path.name for path in (imports.folder / "jobs").iterdir()] == ["a.toml"]


def test_a_file_with_a_line_end_in_its_name_writes_no_line_into_a_job(imports: SyncoidImport) -> None:
    made = imports.run("", scripts=(imports.file('a\nsource = "b".sh', "syncoid --no-sync-snap tank/a vault/a\n"),))
    assert len(made.written) == 2
    assert imports.job("a")["source"] == "tank/a"


def test_the_second_try_of_a_line_is_not_needed(imports: SyncoidImport) -> None:
    assert imports.run("0 1 * * * syncoid --no-sync-snap a/b c/d || syncoid --no-sync-snap a/b c/d\n").complete
    assert imports.has(imports.told, "a run tries again by itself")


def test_a_job_that_check_would_refuse_is_lost(imports: SyncoidImport) -> None:
    imports.run(
        "0 1 * * * syncoid --no-sync-snap tank/a tank/a/copy\n0 2 * * * syncoid --no-sync-snap tank/b vault/b\n"
    )
    assert [path.name for path in (imports.folder / "jobs").iterdir()] == ["b.toml"]
    assert imports.has(imports.lost, "cron:1: is not carried over: target: ")


SCRIPT = """\
#!/bin/bash
set -e
SRC=tank
OPTIONS="-r --no-sync-snap"
for dataset in mail www; do
  syncoid $OPTIONS \\
    "$SRC/$dataset" "root@offsite:vault/$dataset"
done
exec >> /var/log/syncoid.log 2>&1
curl -s https://hc-ping.com/0f0e/$?
"""


def test_a_script_that_a_crontab_calls_is_read(imports: SyncoidImport) -> None:
    script = imports.file("replicate.sh", SCRIPT)
    assert imports.run(f"0 4 * * * {script} >/dev/null\n0 5 * * * /opt/backup-nas.sh\n").complete
    assert imports.has(
        imports.told, "replicate.sh:6: became jobs/mail.toml", "cron:2: calls /opt/backup-nas.sh, which was not read"
    )
    assert imports.job("www") == {
        "engine": "zfs", "source": "tank/www", "target": "offsite-vault", "schedule": "0 4 * * *", "late-after": "26h",
        "after": ["mail"], "zfs": {"recursive": True},
    }  # fmt: skip
    assert imports.notices()["ping"] == {"kind": "ping", "of": "protected", "url": "@ping.secret"}


def test_a_script_that_another_one_calls_is_read_too(imports: SyncoidImport) -> None:
    inner = imports.file("inner.sh", "syncoid --no-sync-snap tank/a vault/a\n")
    outer = imports.file("outer.sh", f"#!/bin/sh\nset -e\nsh {inner}\ncurl -s https://hc-ping.com/0f0e\n")
    assert imports.run(f"0 4 * * * {outer}\n").complete
    assert imports.has(imports.told, "inner.sh:1: became jobs/a.toml", "outer.sh:4: its ping")


def test_a_script_from_another_machine_is_known_by_its_name(imports: SyncoidImport) -> None:
    script = imports.file("nightly.sh", "syncoid --no-sync-snap tank/a vault/a\n")
    crontab = (
        "0 4 * * * /opt/nowhere/nightly.sh\n0 5 * * * /opt/nowhere/other.sh\n0 6 * * * certbot renew\n0 7 * * * my.sh\n"
    )
    imports.run(crontab, scripts=(script,))
    assert imports.job("a")["schedule"] == "0 4 * * *"
    unread = [line.partition(", which")[0] for line in imports.told if "was not read" in line]
    assert unread == ["cron:2: calls /opt/nowhere/other.sh", "cron:4: calls my.sh"]


def test_programs_that_are_no_scripts_of_a_shell_are_not_taken_for_such(imports: SyncoidImport) -> None:
    (imports.root / "bin").mkdir()
    syncoid = imports.file("bin/syncoid", "#!/usr/bin/perl\nmy $x = 'syncoid a b';\n")
    python = imports.file("copy", "#!/usr/bin/env python3\nrun('syncoid')\n")
    other = imports.file("other", "#!/usr/bin/env python3\nrun('true')\n")
    crontab = f"0 4 * * * {syncoid} --no-sync-snap tank/a vault/a\n0 5 * * * {python}\n0 6 * * * {other}\n"
    imports.run(crontab)
    assert imports.told == ["cron:1: became jobs/a.toml"]
    assert imports.lost == [
        f"cron:2: calls {python}, which names syncoid and is no script of a shell: import its calls as lines of a crontab"
    ]


def test_a_script_alone_has_no_times(imports: SyncoidImport) -> None:
    imports.run("", scripts=(imports.file("replicate.sh", SCRIPT),))
    assert imports.has(imports.told, "by hand until they have a schedule")
    assert "schedule" not in imports.job("mail")


SERVICE = """\
[Service]
Nice=10
User=backup
Environment="POOL=tank" OTHER=1
ExecStart=/usr/sbin/syncoid --no-sync-snap \\
  ${POOL}/a vault/a
ExecStartPost=-/usr/bin/curl -s https://hc-ping.com/0f0e
OnFailure=mail@%n.service
"""


def test_a_service_and_its_timer(imports: SyncoidImport) -> None:
    timer = "[Timer]\nOnCalendar=Mon..Fri 02:30\nRandomizedDelaySec=1h\nPersistent=true\n"
    made = imports.run("", units=(imports.file("syncoid.service", SERVICE), imports.file("syncoid.timer", timer)))
    assert imports.job("a") == {
        "engine": "zfs", "source": "tank/a", "target": "vault", "schedule": "30 2 * * mon-fri", "late-after": "74h",
        "zfs": {"recursive": False},
    }  # fmt: skip
    assert imports.has(imports.told, "syncoid.service:5: became jobs/a.toml", "runs as the user backup")
    assert imports.has(
        imports.lost,
        "syncoid.service:2: Nice=10",
        "syncoid.service:8: OnFailure=mail@%n.service",
        "syncoid.timer:3: Randomized",
    )
    assert len(imports.lost) == 3
    assert (imports.folder / "ping-a.secret").exists()
    assert any(line.startswith("systemctl disable --now syncoid.timer") for line in made.following)


@pytest.mark.parametrize(
    ("timer", "key", "value"),
    [
        ("OnUnitActiveSec=15min", "every", "15m"),
        ("OnCalendar=hourly", "schedule", "0 * * * *"),
        ("OnCalendar=daily\nOnCalendar=*:0/5", "schedule", None),
        ("OnBootSec=5min", "every", None),
    ],
)
def test_times_of_timers(imports: SyncoidImport, timer: str, key: str, value: str | None) -> None:
    files = (
        imports.file("a.service", "[Service]\nExecStart=syncoid --no-sync-snap a/b c/d\n"),
        imports.file("a.timer", f"[Timer]\n{timer}\n"),
    )
    imports.run("", units=files)
    assert imports.job("b").get(key) == value
    assert bool(imports.lost) is (value is None)


def test_a_folder_with_jobs_gets_nothing(imports: SyncoidImport) -> None:
    (imports.folder / "jobs").mkdir(parents=True)
    (imports.folder / "jobs" / "home.toml").write_text("")
    made = imports.run(NIGHTLY)
    assert (made.written, made.existing[0], made.complete) == ((), str(imports.folder / "jobs" / "home.toml"), False)
    assert not (imports.folder / "targets.toml").exists()
