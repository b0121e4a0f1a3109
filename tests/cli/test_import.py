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
