"""Archives of recovery kits: what is packed from folders and mounts, and what a far host is sent."""

import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from orchestrator.disks import kits
from orchestrator.domain.command_line import brief_line, ssh_argv
from orchestrator.domain.place import Host
from orchestrator.domain.plan import Pipeline
from orchestrator.process.scripts import script

BOX = Host(name="box")
# Stands in for mount(8): a dataset is a folder, and what OpenZFS refuses is refused.
MOUNT = """#!/bin/sh
case $* in
  "-t zfs"*nosymfollow*) echo "invalid option 'nosymfollow'" >&2; exit 1;;
  "-t zfs"*) printf "%s\\n" "$4" >> "$LOG";;
  *) exec {mount} "$@";;
esac
exec {mount} --bind "$5" "$6"
"""


def packed(argv: tuple[str, ...], **environment: str) -> tuple[list[str], str]:
    """Names in the archive, and what was complained of."""
    done = subprocess.run(argv, capture_output=True, env={"PATH": os.environ["PATH"], **environment}, timeout=60)
    assert done.returncode == 0, done.stderr
    with tarfile.open(fileobj=io.BytesIO(done.stdout), mode="r:") as archive:
        return sorted(one.name for one in archive), done.stderr.decode()


def only(pipeline: Pipeline) -> tuple[str, ...]:
    (command,) = pipeline.stages
    return command.argv


def test_a_folder_on_a_host_is_packed_as_here(tmp_path: Path) -> None:
    (tmp_path / ".poolferry" / "configuration").mkdir(parents=True)
    (tmp_path / ".poolferry" / "kit.json").write_text("{}")
    (tmp_path / ".poolferry" / "configuration" / "a b.toml").write_text("")
    (tmp_path / ".poolferry" / "target.json").symlink_to("/etc/hostname")
    os.mkfifo(tmp_path / ".poolferry" / "RECOVERY.md")
    (tmp_path / "points").mkdir()
    (tmp_path / "points" / "kit.json").write_text("{}")
    expected = (["./.poolferry/configuration/a b.toml", "./.poolferry/kit.json"], "")
    assert packed(only(kits.folder_pipeline(str(tmp_path), "/x"))) == expected
    assert packed(only(kits.host_pipeline(str(tmp_path), BOX, "/x"))) == expected


def test_what_a_host_is_sent_fits_any_login_shell_and_is_shown_by_its_name() -> None:
    """csh knows no newline inside quotes; and a whole script as an argument would hide what was asked for."""
    pipeline = kits.host_pipeline("/backup/photos", BOX, "")
    (command,) = pipeline.stages
    assert "\n" not in ssh_argv(command)[-1]
    assert brief_line(pipeline) == "box: pack-either.sh /backup/photos"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Stand-ins for zfs, which has the datasets that DATASETS names, and for mount."""
    if os.geteuid() != 0:
        pytest.skip("mounts need root")
    folder = tmp_path / "bin"
    folder.mkdir()
    found = next(place for place in ("/usr/bin/mount", "/bin/mount") if os.path.exists(place))
    texts = {"mount": MOUNT.replace("{mount}", found), "zfs": '#!/bin/sh\nprintf "%s\\n" "$DATASETS"\n'}
    for name, text in texts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.namespace
def test_where_no_dataset_is_one_for_kits_the_archive_is_empty_and_nothing_is_complained_of(programs: Path) -> None:
    path = f"{programs}:{os.environ['PATH']}"
    argv = only(kits.dataset_pipeline("vault", "/x"))
    assert packed(argv, PATH=path, DATASETS="vault", LOG="/dev/null") == ([], "")
    asked = kits.host_pipeline("/nowhere/vault", BOX, "/x")
    assert packed(only(asked), PATH=path, DATASETS="vault", LOG="/dev/null") == ([], "")


@pytest.mark.namespace
def test_datasets_for_kits_are_mounted_so_that_no_link_in_them_is_followed(programs: Path, tmp_path: Path) -> None:
    """OpenZFS refuses nosymfollow in its own mount; the mount gets it afterwards."""
    dataset = tmp_path / "vault" / "poolferry-kit"
    (dataset / "photos").mkdir(parents=True)
    (dataset / "photos" / "kit.json").write_text("{}")
    text = script("disks", "kit-files.sh") + (
        'mount -t tmpfs none /mnt && mount_kit_datasets "$1" && grep " /mnt/1 " /proc/self/mountinfo'
    )
    path = f"{programs}:{os.environ['PATH']}"
    environment = {"PATH": path, "DATASETS": str(dataset), "LOG": str(tmp_path / "log")}
    done = subprocess.run(
        ("unshare", "--mount", "--propagation", "slave", "sh", "-c", text, "sh", "vault"),
        capture_output=True, text=True, env=environment, timeout=60,
    )  # fmt: skip
    assert {"ro", "nosuid", "nodev", "noexec", "nosymfollow"} <= set(done.stdout.split()[5].split(",")), done
    assert (tmp_path / "log").read_text() == "ro,nosuid,nodev,noexec\n"
    found, complaints = packed(only(kits.dataset_pipeline("vault", "/x")), **environment)
    assert (found, complaints) == (["1/photos/kit.json"], "")
