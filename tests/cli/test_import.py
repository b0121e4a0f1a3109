"""The commands of `poolferry import`: one whole run of each, and the configuration that it leaves."""

import pytest

from tests.ferry import Ferry

FILES = {
    "rsnapshot": ("snapshot_root\t/backup/\nretain\tdaily\t7\nbackup\t/home/\tlocalhost/\n", ()),
    "btrbk": ("volume /mnt/pool\nsubvolume home\ntarget /mnt/backup\n", ("--live",)),
    "zrepl": (
        "jobs:\n- type: snap\n  filesystems: {home<: true}\n  pruning: {keep: [{type: grid, grid: 7x1d}]}\n",
        (),
    ),
    "borgmatic": ("source_directories: [/home]\n", ("--target", "/backup/points")),
}


@pytest.mark.parametrize("program", FILES)
def test_each_program(ferry: Ferry, program: str) -> None:
    text, options = FILES[program]
    (ferry.root / "settings").write_text(text)
    told = ferry.run("import", program, "settings", *options, "--to", "out")
    assert told.code == 0, told.out
    assert "settings:" in told.out
    assert ferry.run("check", "--config", "out").code == 0


def test_a_file_that_cannot_be_read_is_one_clear_error(ferry: Ferry) -> None:
    (ferry.root / "settings").write_text("jobs: [\n")
    told = ferry.run("import", "zrepl", "settings")
    assert (told.code, "settings: line 2: is no YAML" in told.err) == (2, True), told


@pytest.mark.parametrize("program", ["rsnapshot", "borgmatic", "btrbk"])
def test_scripts_that_a_crontab_calls_are_read(ferry: Ferry, program: str) -> None:
    text, options = FILES[program]
    word = {"rsnapshot": "daily", "borgmatic": "create", "btrbk": "run"}[program]
    (ferry.root / "settings").write_text(text)
    inner, outer = ferry.root / "inner.sh", ferry.root / "outer"
    inner.write_text(f"#!/bin/sh\nset -e\n{program} {word} && curl https://hc-ping.com/0f0e-1\n")
    outer.write_text(f"#!/bin/bash\n{inner}\n")
    (ferry.root / "cron").write_text(f"30 2 * * * root {outer}\n0 4 * * * root /opt/other.sh\n")
    told = ferry.run("import", program, "settings", *options, "--crontab", "cron", "--to", "out")
    assert told.code == 0, told.out
    job = next((ferry.root / "out/jobs").iterdir()).read_text()
    assert 'schedule = "30 2 * * *"' in job
    assert "https://hc-ping.com/0f0e-1" in next((ferry.root / "out").glob("*.secret")).read_text()
    assert f"/opt/other.sh, which was not read: if it calls {program}, add --script /opt/other.sh" in told.out


def test_a_call_that_only_its_script_times_is_listed_and_a_named_script_is_read(ferry: Ferry) -> None:
    (ferry.root / "settings").write_text(FILES["rsnapshot"][0])
    (ferry.root / "nightly.sh").write_text(
        "if mountpoint -q /backup; then\n  rsnapshot daily\nfi\nwhile read x; do rsnapshot daily; done\n"
    )
    told = ferry.run("import", "rsnapshot", "settings", "--script", "nightly.sh", "--to", "out")
    assert told.code == 1, told.out
    assert "nightly.sh:4: its call of rsnapshot is not carried over: it stands in a" in told.out
    alone = ferry.root / "alone.sh"
    alone.write_text("rsnapshot daily\n")
    told = ferry.run("import", "rsnapshot", "settings", "--script", "alone.sh", "--to", "alone")
    assert (told.code, "alone.sh:1: when this script is called was not said" in told.out) == (0, True), told.out
