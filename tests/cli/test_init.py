"""init, check, config schema and completion."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.ferry import Ferry


@pytest.fixture
def fresh(tmp_path: Path) -> Ferry:
    """A machine without a configuration."""
    made = Ferry(tmp_path)
    shutil.rmtree(made.config)
    return made


def test_init_writes_what_check_accepts(fresh: Ferry) -> None:
    (fresh.root / "mine").mkdir()
    told = fresh.run("init", "--source", "mine", "--target", "/backup/mine")
    assert told.code == 0
    assert f"wrote {fresh.config}/jobs/mine.toml" in told.out
    following = [line.strip() for line in told.out.splitlines()[-3:]]
    assert following == ["poolferry check --system", "poolferry plan mine", "poolferry run mine"]
    job = fresh.run("check", "--json").value["jobs"][0]
    assert (job["source"], job["target"]) == (str(fresh.root / "mine"), "/backup/mine")


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("root@nas:/srv", "ssh://root@nas/srv"),
        ("nas:/srv/a b", "ssh://nas/srv/a%20b"),
        ("[fe80::1]:/srv", "ssh://[fe80::1]/srv"),
    ],
)
def test_init_takes_a_place_as_scp_writes_it(fresh: Ferry, typed: str, written: str) -> None:
    told = fresh.run("init", "--source", typed, "--target", "/backup/mine")
    assert told.code == 0, told
    assert fresh.run("check", "--json").value["jobs"][0]["source"] == written


@pytest.mark.parametrize("typed", ["nas:tank/x", "tank/photos", "root@nas:photos"])
def test_init_guesses_no_place(fresh: Ferry, typed: str) -> None:
    told = fresh.run("init", "--source", typed, "--target", "/backup/mine")
    assert (told.code, typed in told.err, fresh.config.exists()) == (2, True, False), told


def test_a_place_as_scp_writes_it_is_understood(ferry: Ferry) -> None:
    """One that begins at the root; from a home, or a dataset, it is not, as a pool may have a colon in its name."""
    ferry.job()
    file = ferry.config / "jobs" / "photos.toml"
    for typed, host in (("root@nas:/srv/a b", "root@nas"), ("[fe80::1]:/srv/a b", "[fe80::1]")):
        file.write_text(re.sub(r"^source = .*$", f'source = "{typed}"', file.read_text(), flags=re.MULTILINE))
        assert f"copies ssh://{host}/srv/a%20b to" in ferry.run("check").out
    file.write_text(re.sub(r"^source = .*$", 'source = "root@nas:srv"', file.read_text(), flags=re.MULTILINE))
    assert 'expected "ssh://root@nas/srv" for a place on that host' in ferry.run("check").err


def test_a_dataset_as_syncoid_writes_it_gets_the_url_to_write(ferry: Ferry) -> None:
    ferry.job()
    (ferry.config / "targets.toml").write_text('[place.vault]\ndataset = "root@nas:tank/x"\n')
    assert 'expected "ssh://root@nas/tank/x" for a dataset on that host' in ferry.run("check").err


def test_init_needs_no_option(fresh: Ferry) -> None:
    assert fresh.run("init").code == 0
    assert fresh.run("check").code == 0


def test_init_names_the_directories_that_were_told(fresh: Ferry) -> None:
    told = fresh.run("init", "--json", "--config", "here and there")
    assert told.value["next"][1] == "poolferry plan home --config 'here and there'"
    assert (fresh.root / "here and there" / "targets.toml").exists()


def test_init_overwrites_nothing(fresh: Ferry) -> None:
    fresh.run("init")
    file = fresh.config / "jobs" / "home.toml"
    file.write_text("mine\n")
    told = fresh.run("init", "--json")
    assert told.code == 0
    assert told.value["written"] == []
    assert str(file) in told.value["existing"]
    assert file.read_text() == "mine\n"


def test_init_adds_a_job_beside_those_that_are_there(fresh: Ferry) -> None:
    """Files of a person stay as they are, but targets.toml gets the place; what would be a mistake changes nothing."""
    assert fresh.run("init", "/srv/photos", "/backup/photos").code == 0
    targets, first = fresh.config / "targets.toml", fresh.config / "jobs/photos.toml"
    targets.write_text(targets.read_text() + "# a word of mine")
    targets.chmod(0o640)
    before = targets.read_text(), first.read_text()
    told = fresh.run("init", "/srv/music", "/backup/music")
    assert (told.code, f"added [place.music-copies] to {targets}" in told.out) == (0, True), told
    assert f"left as it is: {first}" in told.out
    assert (targets.read_text().startswith(before[0]), first.read_text()) == (True, before[1])
    assert targets.stat().st_mode & 0o777 == 0o640
    other = fresh.run("init", "/opt/photos-copies", "/backup/other", "--json")
    assert other.code == 0, "a place of that name is another one's"
    jobs = fresh.run("check", "--json").value["jobs"]
    assert {job["job"]: job["target"] for job in jobs} == {
        "music": "/backup/music", "photos": "/backup/photos", "photos-copies": "/backup/other",
    }  # fmt: skip
    files = {path: path.read_text() for path in fresh.config.rglob("*") if path.is_file()}
    for words, said in (
        (("/mnt/music", "/backup/third"), "there is a job music already"), (("/etc", "/backup/photos/etc"), "/backup/photos"),
        (("/etc", "vault/etc"), "is a folder, vault/etc is a dataset"),
    ):  # fmt: skip
        refused = fresh.run("init", *words)
        assert (refused.code, said in refused.err) == (2, True), refused
    targets.write_text("nonsense")
    assert fresh.run("init", "/etc", "/backup/etc").code == 2
    targets.write_text(files[targets])
    assert {path: path.read_text() for path in fresh.config.rglob("*") if path.is_file()} == files


def test_init_puts_no_targets_beside_jobs_of_others(ferry: Ferry) -> None:
    ferry.job()
    (ferry.config / "targets.toml").unlink()
    ferry.run("init")
    assert not (ferry.config / "targets.toml").exists()
    assert os.listdir(ferry.config / "jobs") == ["photos.toml"]


def test_init_breaks_no_configuration_that_is_there(ferry: Ferry) -> None:
    ferry.job()
    told = ferry.run("init")
    assert f"left as it is: {ferry.config}/jobs/photos.toml" in told.out
    assert not (ferry.config / "jobs" / "home.toml").exists()
    assert ferry.run("check").code == 0


def test_check_tells_what_each_job_means(ferry: Ferry) -> None:
    source = ferry.job(more='daily = "02:30"\nlate-after = "26h"\n[keep]\ndaily = 7\n')
    ferry.job("music")
    told = ferry.run("check")
    assert told.code == 0
    first = f"photos: rsync copies {source} to {ferry.target()} (photos-copies), daily at 02:30, late after 1 d 2 h"
    assert f"{first}; keeps 7 daily\n" in told.out
    assert "only by hand" in told.out.splitlines()[0]


def test_check_of_the_system_looks_at_the_source(ferry: Ferry) -> None:
    source = ferry.job()
    told = ferry.run("check", "--system", "--json")
    subjects = {each["subject"]: each["good"] for each in told.value["jobs"][0]["advice"]}
    assert subjects[f"source {source}"] is True
    shutil.rmtree(source)
    again = ferry.run("check", "--system")
    assert again.code == 1
    assert f"!!  source {source}" in again.out


def test_check_of_the_system_reads_the_secrets_of_the_channels(ferry: Ferry) -> None:
    ferry.job()
    phone = '[notice.phone]\nkind = "ntfy"\ntopic = "https://ntfy.example.org/x"\ntoken-file = "phone-token"\n'
    (ferry.config / "poolferry.toml").write_text(phone)
    missing = ferry.run("check", "--system")
    assert missing.code == 1
    told = f"  !!  notice phone: its secret phone-token is missing in {ferry.config}: write it there, on one line, for its owner alone\n"
    assert told in missing.out
    assert ferry.run("check").code == 0
    token = ferry.config / "phone-token"
    token.write_text("tk_1\n")
    token.chmod(0o644)
    open_to_all = ferry.run("check", "--system", "--json")
    assert open_to_all.code == 0
    assert open_to_all.value["machine"] == [
        {
            "good": False,
            "hinders": False,
            "subject": "notice phone",
            "text": f"everybody on this machine may read its secret: chmod 600 {token}",
        }
    ]
    token.chmod(0o600)
    assert f"  ok  notice phone: its secret lies at {token}, mode 0600\n" in ferry.run("check", "--system").out


def test_the_schema_is_json_either_way(ferry: Ferry) -> None:
    job = json.loads(ferry.run("config", "schema", "job").out)
    assert "source" in job["properties"]
    both = ferry.run("config", "schema", "--json").value["schemas"]
    assert both["jobs/*.toml"] == job
    assert set(json.loads(ferry.run("config", "schema").out)) == {"jobs/*.toml", "targets.toml", "poolferry.toml"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script(ferry: Ferry, shell: str) -> None:
    told = ferry.run("completion", shell)
    assert told.code == 0
    assert f"_POOLFERRY_COMPLETE={shell}_complete" in told.out
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=told.out.encode(), check=True)


def test_completion_knows_the_jobs(ferry: Ferry) -> None:
    ferry.job()
    ferry.job("phones")
    told = ferry.run(_POOLFERRY_COMPLETE="bash_complete", COMP_WORDS="poolferry run pho", COMP_CWORD="2")
    assert [line.partition(",")[2] for line in told.out.split()] == ["phones", "photos"]
    nowhere = ferry.run(
        _POOLFERRY_COMPLETE="bash_complete",
        COMP_WORDS="poolferry run p",
        COMP_CWORD="2",
        POOLFERRY_CONFIG=os.fspath(ferry.root / "nowhere"),
    )
    assert (nowhere.out.strip(), nowhere.err) == ("", "")


@pytest.mark.parametrize("target", [["root@nas:/backup", "--together"], ["--disks", "offsite", "--together"]])
def test_init_writes_one_job_of_several_folders(fresh: Ferry, target: list[str]) -> None:
    told = fresh.run("init", "/etc", "/home", "/srv/www", *target)
    assert (told.code, "copy the folders /etc, /home, /srv/www, into one restore point" in told.out) == (0, True), told
    if "--disks" not in target:
        assert fresh.run("check", "--json").value["jobs"][0]["source"] == "/etc, /home, /srv/www"
    assert 'sources = ["/etc", "/home", "/srv/www"]' in (fresh.config / "jobs/folders.toml").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("/home", "/home/me", "/backup"), '"/home/me" lies inside "/home"'),
        (("tank/a", "tank/b", "vault/c"), "is for folders"),
    ],
)
def test_init_refuses_folders_that_one_job_cannot_have(fresh: Ferry, words: tuple[str, ...], said: str) -> None:
    told = fresh.run("init", *words, "--together")
    assert (told.code, said in told.err) == (2, True), told
