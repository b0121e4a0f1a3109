"""disks enroll: the only command that may erase. disks eject: let go of a disk by hand."""

import os
from typing import TYPE_CHECKING

import click

from orchestrator import compose
from orchestrator.app.settings import Frame
from orchestrator.cli.options import Command, pass_frame
from orchestrator.views import output as door

if TYPE_CHECKING:
    from orchestrator.config.models import Configuration
    from orchestrator.domain.device import Device
    from orchestrator.domain.plan import Refusal
    from orchestrator.domain.rotation import Disk
    from orchestrator.planners.enroll import Wish

_CONTENTS = ("ext4", "xfs", "btrfs", "zfs")
_REFUSED = 3


@click.command(cls=Command, short_help="Make a disk a member of a set; the only command that may erase.")
@click.argument("device", type=click.Path())
@click.option("--set", "rotation", required=True, metavar="SET", help="the rotation set it will belong to")
@click.option("--name", required=True, metavar="NAME", help="what to call it; write this on its sticker")
@click.option("--content", type=click.Choice(_CONTENTS), default="ext4", show_default=True, help="what it holds")
@click.option("--adopt", is_flag=True, help="keep what is on it: nothing is erased")
@click.option("--erase", default="", metavar="SERIAL", help="erase what is on it: type in the disk's own serial")
@click.option("--inner", is_flag=True, help="it can be pulled out, though the kernel does not know that")
@click.option("--luks", is_flag=True, help="in a LUKS container, which --key-file opens")
@click.option("--key-file", default=None, metavar="FILE", help="opens its LUKS container, or is its pool's key")
@click.option("--note", default="", metavar="TEXT", help="what tells it from others for people, such as its colour")
@pass_frame
def enroll(
    frame: Frame, device: str, rotation: str, name: str, content: str, adopt: bool, erase: str, inner: bool, luks: bool,
    key_file: str | None, note: str,
) -> int:  # fmt: skip
    """Make DEVICE a disk of a set: a blank one is made ready; one that holds something only with --adopt or --erase."""
    from orchestrator.disks.detect import find_path
    from orchestrator.planners.enroll import Wish, refuse
    from orchestrator.process.executor import Writer

    known = frame.configuration()
    _require_free(known, rotation, name)
    _require_fit(known, rotation, content)
    if luks and key_file is None:
        raise click.UsageError("--luks needs a --key-file")
    if key_file is not None and not os.path.isfile(key_file):
        raise click.UsageError(f"--key-file: there is no file {key_file}")
    if key_file is not None and not key_file.startswith("/"):
        raise click.UsageError("--key-file: expected an absolute path, as it is written to targets.toml")
    if key_file is not None and not luks and content != "zfs":
        raise click.UsageError("--key-file is for --luks or --content zfs: nothing else would be encrypted with it")
    looker = Writer(log=frame.log)
    found, devices = find_path(device, looker)
    if found is None:
        raise click.UsageError(f"there is no device {device}")
    wish = Wish(name=name, set=rotation, content=content, adopt=adopt, erase=erase, inner=inner, locked=luks)
    disks = [disk for each in known.sets for disk in each.disks]
    refusal = refuse(wish, found, devices, disks)
    if refusal is not None:
        return _refused(frame, name, refusal)
    return _enrolled(frame, wish, found, key_file, note)


def _require_free(known: "Configuration", rotation: str, name: str) -> None:
    """Before anything is touched: the lines that will be written must be right."""
    from orchestrator.domain.names import JOB_NAME

    if rotation not in [each.name for each in known.sets]:
        raise click.UsageError(f"there is no set {rotation}; write [set.{rotation}] into targets.toml first")
    taken = [*(place.name for place in known.places), *(each.name for each in known.sets)]
    taken += [disk.name for each in known.sets for disk in each.disks]
    if name in taken:
        raise click.UsageError(f"the name {name} is taken")
    if not JOB_NAME.fullmatch(name):
        raise click.UsageError(f"{name} is no name for a disk: letters, digits, dots, - and _")


def _require_fit(known: "Configuration", rotation: str, content: str) -> None:
    """A disk of another kind would make the jobs of its set wrong."""
    from orchestrator.runner.disk.state import of_set

    for job in of_set(known.rotation(rotation), known.jobs):
        datasets = not job.target.location.path.startswith("/")
        if (content == "zfs") is not datasets:
            wanted = "zfs" if datasets else "ext4, xfs or btrfs"
            raise click.UsageError(
                f"job {job.name} copies to the set {rotation}, and its engine {job.engine} wants --content {wanted}"
            )


def _refused(frame: Frame, name: str, refusal: "Refusal") -> int:
    value = {"disk": name, "outcome": "refused", "why": refusal.why, "cure": refusal.cure}
    frame.answer(value, [f"refused: {refusal.why}", f"  what to do: {refusal.cure}"])
    return _REFUSED


def _enrolled(frame: Frame, wish: "Wish", device: "Device", key_file: str | None, note: str) -> int:
    from orchestrator.app.disk_visits import dock
    from orchestrator.app.session import opened
    from orchestrator.domain.plan import Refusal
    from orchestrator.runner.disk.enroll import enroll as enrolled

    with opened(frame) as desk:
        used = dock(frame.where, desk.history, say=door.say, log=frame.log)
        made = enrolled(wish, device, used, key_file=key_file, note=note)
    if isinstance(made, Refusal):
        return _refused(frame, wish.name, made)
    _declare(os.path.join(frame.where.config, "targets.toml"), made.disk)
    sticker = f"{made.disk.name} · set {made.disk.set} · {compose.now().astimezone():%Y-%m}"
    value = {
        "disk": made.disk.name, "set": made.disk.set, "identity": made.disk.identity, "content": made.disk.content,
        "id": made.marker.disk, "outcome": "done", "sticker": sticker,
    }  # fmt: skip
    frame.answer(value, [
        f"{device.called} is disk {made.disk.called} of the set {made.disk.set} now, and may be unplugged",
        f"write this on its sticker: {sticker}",
        f"to try it: unplug it, plug it in again, and call {frame.repeat('disks scan')}",
    ])  # fmt: skip
    return 0


def _declare(path: str, disk: "Disk") -> None:
    """Adds the disk's lines to targets.toml: all of them, or none."""
    from json import dumps  # a TOML text is written as JSON writes it

    told = [("set", disk.set), ("identity", disk.identity), ("content", disk.content), ("inside", disk.inside)]
    told += [("key-file", disk.key_file), ("note", disk.note)]
    lines = [f"{key} = {dumps(value, ensure_ascii=False)}" for key, value in told if value]
    with open(path, encoding="utf-8") as file:
        before = file.read()
    text = (
        before.rstrip("\n")
        + f"\n\n[disk.{dumps(disk.name) if '.' in disk.name else disk.name}]\n"
        + "\n".join(lines)
        + "\n"
    )
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), os.stat(path).st_mode & 0o777)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.new", path)


@click.command(cls=Command, short_help="Let go of a disk, and say when it is safe to remove.")
@click.argument("disk")
@pass_frame
def eject(frame: Frame, disk: str) -> int:
    """Let go of a disk that is still attached, and say when it may be pulled out."""
    from orchestrator.app.disk_visits import leave_the_case
    from orchestrator.disks import disk as medium
    from orchestrator.disks.detect import held, survey_devices
    from orchestrator.disks.release import let_go
    from orchestrator.domain.errors import OrchestratorError
    from orchestrator.domain.rotation import POOL
    from orchestrator.planners.identify_disk import held_alone
    from orchestrator.process.executor import Writer
    from orchestrator.runner.locks import visiting

    known = frame.configuration()
    found = [(each, own) for each in known.sets for own in each.disks if own.name == disk]
    if not found:
        raise click.UsageError(f"there is no disk {disk}")
    rotation, own = found[0]
    writer = Writer(log=frame.log)
    here = [each for each in survey_devices(writer) if each.uuid == own.identity and not each.parts]
    # What lies above it is ours, and may have the same identity: the device below a pool.
    devices = [each for each in here if not each.path.startswith(f"/dev/mapper/{POOL}")]
    if not devices and (waiting := held([own])):
        lost = held_alone(own, hangs=waiting[own.name])
        raise OrchestratorError(lost.says, cure=lost.cure)
    if len(devices) != 1:
        raise OrchestratorError(f"disk {disk} is not here" if not devices else f"disk {disk} is there twice", cure="")
    with visiting(own, frame.where.state):
        medium.detach(own, writer)
        told = let_go(devices[0], writer, power_off=rotation.power_off)
    safe = f"SAFE TO REMOVE: {own.called}" + (f". {leave_the_case(told.beside)}" if told.beside else "")
    lines = [f"NOT SAFE TO REMOVE: {disk}: {told.hinders}"] if told.hinders else [safe]
    frame.answer({"disk": disk, "safe": not told.hinders, "why": told.hinders, "beside": told.beside}, lines)
    return 1 if told.hinders else 0
