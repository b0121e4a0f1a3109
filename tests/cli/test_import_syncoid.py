"""import syncoid: real files in, a configuration that `check` accepts out, and a word on each line."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.ferry import Ended, Ferry

CONF = """\
[tank/photos]
use_template = nightly
recursive = yes
[tank/vm]
use_template = nightly
recursive = yes
hourly = 36
[tank/vm/scratch]
daily = 1
[backup/mail]
autosnap = no
hourly = 0
daily = 90
[tank/none]
autosnap = no
autoprune = no
[template_nightly]
hourly = 0
daily = 30
monthly = 3
"""
NIGHTLY = "30 2 * * * root /usr/sbin/syncoid -r --no-sync-snap --no-rollback tank/photos root@backup.lan:vault/replicas/photos >/dev/null\n"


class Import:
    """The command in a directory of its own."""

    def __init__(self, ferry: Ferry) -> None:
        self.ferry = ferry
        self.folder = ferry.root / "out"

    def run(self, crontab: str = "", conf: str = "", *more: str) -> Ended:
        """One import of these texts."""
        arguments = []
        for option, name, text in (("--crontab", "cron", crontab), ("--sanoid-conf", "sanoid.conf", conf)):
            if text:
                (self.ferry.root / name).write_text(text)
                arguments += [option, name]
        return self.ferry.run("import", "syncoid", *arguments, "--to", "out", *more)

    def job(self, name: str) -> dict[str, Any]:
        """Return what was written for a job."""
        return tomllib.loads((self.folder / "jobs" / f"{name}.toml").read_text())

    def checked(self) -> Ended:
        """Return what `check` says of what was written."""
        return self.ferry.run("check", "--config", "out")


@pytest.fixture
def imports(ferry: Ferry) -> Import:
    return Import(ferry)


def test_a_line_and_its_rules_become_one_job(imports: Import) -> None:
    told = imports.run(NIGHTLY, CONF)
    assert told.code == 1, told.err  # of tank/vm/scratch
    assert imports.job("photos") == {
        "engine": "zfs", "source": "tank/photos", "target": "backup.lan-vault-replicas", "schedule": "30 2 * * *", "late-after": "26h",
        "zfs": {"recursive": True, "skip-snapshots": ["syncoid_*"]}, "snapshots": {"daily": 30, "monthly": 3},
    }  # fmt: skip
    places = tomllib.loads((imports.folder / "targets.toml").read_text())
    assert places["place"]["backup.lan-vault-replicas"] == {"dataset": "ssh://root@backup.lan/vault/replicas"}
    assert "cron:1: became jobs/photos.toml" in told.out
    assert "sanoid.conf:1: became [snapshots] in jobs/photos.toml" in told.out
    assert "sanoid.conf:14: became nothing: sanoid takes and removes no snapshots of tank/none" in told.out
    assert "grep @syncoid_" in told.out
    checked = imports.checked()
    assert checked.code == 0, checked.err
    assert "photos: zfs copies tank/photos to ssh://root@backup.lan/vault/replicas/photos" in checked.out


def test_rules_that_need_more_runs_get_a_job_of_their_own(imports: Import) -> None:
    assert imports.run("0 3 * * * root syncoid -r --no-sync-snap tank/vm vault/vm\n", CONF).code == 1
    assert "snapshots" not in imports.job("vm")
    assert imports.job("vm-snapshots") == {
        "engine": "sanoid", "source": "tank/vm", "schedule": "0 * * * *",
        "snapshots": {"hourly": 36, "daily": 30, "monthly": 3}, "sanoid": {"exclude": ["scratch"]},
    }  # fmt: skip
    assert imports.checked().code == 0


def test_an_exception_from_recursive_rules_stays_with_sanoid(imports: Import) -> None:
    told = imports.run("", CONF)
    assert told.code == 1
    assert "sanoid.conf:8: is not carried over: the job vm-snapshots has rules around it" in told.out
    assert not (imports.folder / "jobs" / "scratch-snapshots.toml").exists()
    assert imports.checked().code == 0


def test_two_copies_of_one_dataset_have_one_set_of_rules(imports: Import) -> None:
    more = NIGHTLY.replace("root@backup.lan:vault/replicas", "disk")
    imports.run(NIGHTLY + more, CONF)
    assert "snapshots" in imports.job("photos")
    assert "snapshots" not in imports.job("photos-to-disk")
    assert imports.job("photos-to-disk")["zfs"]["skip-snapshots"] == ["syncoid_*"]
    assert imports.checked().code == 0


@pytest.mark.parametrize(
    ("schedule", "kind", "within"),
    [
        ("5 * * * *", "hourly", True),
        ("5 3 * * *", "hourly", False),
        ("*/5 * * * *", "frequently", True),
        ("5 * * * *", "frequently", False),
        ("5 3 * * *", "daily", True),
        ("5 3 * * 1", "daily", False),
        ("@reboot", "daily", False),
    ],
)
def test_often_enough(imports: Import, schedule: str, kind: str, within: bool) -> None:
    rules = f"[tank/a]\n{kind} = 5\nhourly = 0\ndaily = 0\nmonthly = 0\n"
    assert imports.run(f"{schedule} syncoid tank/a vault/a\n", rules).code == (schedule == "@reboot")
    assert ("snapshots" in imports.job("a")) is within
    assert (imports.folder / "jobs" / "a-snapshots.toml").exists() is not within
    assert imports.checked().code == 0


def test_rules_for_more_than_is_copied_get_a_job_of_their_own(imports: Import) -> None:
    assert imports.run("0 3 * * * root syncoid tank/photos vault/photos\n", CONF).code == 1
    assert "snapshots" not in imports.job("photos")
    assert imports.job("photos-snapshots")["snapshots"] == {"daily": 30, "monthly": 3}


def test_a_copy_that_sanoid_prunes_here_gets_its_keep(imports: Import) -> None:
    told = imports.run("0 4 * * * syncoid --sshport=2222 ferry@mail.lan:pool/spool backup/mail\n", CONF)
    job = imports.job("spool")
    assert (job["source"], job["target"]) == ("ssh://ferry@mail.lan:2222/pool/spool", "backup")
    assert job["zfs"] == {"recursive": False, "sudo": True, "name": "mail"}
    assert job["keep"] == {"daily": 90, "monthly": 6}
    assert "sanoid.conf:10: became [keep] in jobs/spool.toml" in told.out
    assert imports.checked().code == 0


def test_several_jobs_share_a_place_and_wait_for_each_other(imports: Import) -> None:
    imports.run("0 1 * * * syncoid tank/a vault/a && syncoid tank/b vault/b; syncoid other/a vault/c\n")
    assert (imports.folder / "targets.toml").read_text() == '[place.vault]\ndataset = "vault"\n'
    assert imports.job("b")["after"] == ["a"]
    assert "after" not in imports.job("other-a")
    assert imports.job("other-a")["zfs"]["name"] == "c"
    assert imports.checked().code == 0


def test_each_line_that_becomes_nothing_says_why(imports: Import) -> None:
    lines = {
        "0 1 * * * syncoid tank backup": "whole pool backup",
        "0 1 * * * syncoid a@x:tank/a b@y:tank/b": "between two others",
        "0 1 * * * syncoid tank/$DS backup/x": "only its shell knows",
        "0 1 * * * syncoid --wat tank/a backup/x": "no option of syncoid",
        "0 1 * * * ssh root@nas syncoid tank/g backup/g": "runs on root@nas, through ssh",
        "0 1 * * * syncoid --skip-parent -r tank backup": "zfs list -H -o name -r -d 1 'tank'",
        "*/15 * * * * TZ=UTC /usr/sbin/sanoid --cron": "take it away",
    }
    told = imports.run("\n".join(lines) + "\n")
    assert told.code == 1
    assert not imports.folder.exists()
    for number, why in enumerate(lines.values(), start=1):
        assert any(line.startswith(f"cron:{number}: ") and why in line for line in told.out.splitlines()), why


def test_what_is_not_as_it_was_is_told(imports: Import) -> None:
    told = imports.run(
        "@reboot nice -n 19 syncoid tank/a vault/a\n0 1 * * * backup syncoid --no-sync-snap tank/b vault/b\n"
    )
    for why in ("@reboot", "nice -n 19", "nobody takes any now", "runs as the user backup", "may-destroy"):
        assert why in told.out, why


def test_the_older_spelling(imports: Import) -> None:
    (imports.ferry.root / "cron").write_text(NIGHTLY)
    told = imports.ferry.run("import-syncoid", "--crontab", "cron", "--to", "out")
    assert "cron:1: became jobs/photos.toml" in told.out


def test_nothing_is_overwritten(imports: Import) -> None:
    imports.run(NIGHTLY)
    file = imports.folder / "jobs" / "photos.toml"
    file.write_text("mine\n")
    again = imports.run(NIGHTLY, "", "--json").value
    assert (again["written"], again["next"]) == ([], [])
    assert str(file) in again["existing"]
    assert file.read_text() == "mine\n"


def test_json_tells_the_same(imports: Import) -> None:
    value = imports.run(NIGHTLY, CONF, "--json").value
    first = {"where": "cron:1", "job": "photos", "text": "became jobs/photos.toml", "lost": False}
    assert value["told"][0] == first
    assert value["written"][0] == str(imports.folder / "jobs" / "photos.toml")
    assert value["next"][-1] == f"poolferry check --config {imports.folder}"


def test_wrong_usage(imports: Import, tmp_path: Path) -> None:
    if not Path("/etc/sanoid/sanoid.conf").exists():
        assert imports.run().code == 2
    broken = imports.run("", "[a]\nhuh\n")
    assert (broken.code, "line 2" in broken.err) == (2, True)
    assert imports.ferry.run("import", "syncoid", "--crontab", "nowhere").code == 2
