"""The requests of runs that push datasets through a gate, and that pull them: each as our own side builds it."""

from orchestrator.domain.job import PipeOptions
from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Command
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.commands.commands import CommandHost
from orchestrator.engines.zfs.model import DatasetType, ReceiveEncryption, SendFlags, SideSurvey
from orchestrator.engines.zfs.plan.hold_names import (
    cursor_bookmark_name,
    hold_bookmark_name,
    hold_tag,
    replication_target_id,
)
from orchestrator.engines.zfs.recovery.kit import kit_command
from orchestrator.engines.zfs.restore.survey import properties_command
from orchestrator.engines.zfs.verify.read_copy import listing_command, read_command
from orchestrator.process.moved_dataset import find_datasets_command
from tests.engines.zfs.sides import LATER

HOST = Host(user="root", name="nas", port=None)
WHERE = CommandHost(host=HOST)
PIPE = PipeOptions()
TARGET_ID = replication_target_id(0xBEEF, Location(path="vault/in/laptop"))


def far_side(root: str, *, mbuffer: bool = True, programs: bool = True) -> SideSurvey:
    """A side at the other machine."""
    return SideSurvey(
        root=Location(path=root, host=HOST), pool_guid=0xBEEF, version=(2, 3), mbuffer=mbuffer, programs=programs
    )


def looks(copy: str, *, target: bool) -> list[Command]:
    """The surveys of a side, and what both kinds of runs ask."""
    root = Location(path=copy, host=HOST)
    surveys = [
        commands.survey_command(
            root, target=target, recursive=recursive, sudo=sudo, above=above, created=not target and above,
            newest=target and recursive,
        )
        for recursive in (True, False) for sudo in (True, False) for above in (True, False)
    ]  # fmt: skip
    return [
        *surveys,
        commands.confirm_command((copy, f"{copy}@a", f"{copy}/b c@-x"), HOST),
        commands.newest_command((copy, f"{copy}/b"), HOST),
        commands.points_command(root),
        find_datasets_command(4711, 0xBEEF, copy, HOST),
        find_datasets_command(4711, 0, copy, HOST),
        commands.rights_command(root),
        commands.zfs_command("version", effect=surveys[0].effect, where=WHERE),
    ]


def receives(copy: str) -> list[tuple[str, ...]]:
    """The words of receives into a copy and below it."""
    flags, encrypted = SendFlags(), SendFlags(raw=True)
    return [
        commands.receive_arguments(copy, DatasetType.FILESYSTEM, first=True, properties=True, flags=flags),
        commands.receive_arguments(f"{copy}/b c", DatasetType.VOLUME, first=True, properties=True, flags=encrypted),
        commands.receive_arguments(copy, DatasetType.FILESYSTEM, first=False, properties=True, flags=flags,
                                   protect=("compression", "com.sun:auto-snapshot", "readonly"), burdens=("dedup", "copies")),
        commands.receive_arguments(copy, DatasetType.FILESYSTEM, first=False, properties=False, flags=None),
        commands.receive_arguments(f"{copy}/c", DatasetType.FILESYSTEM, first=True, properties=True, flags=flags,
                                   origin=f"{copy}/b@a"),
        commands.receive_arguments(f"{copy}/d", DatasetType.FILESYSTEM, first=True, properties=False, flags=flags,
                                   encryption=ReceiveEncryption.OFF),
        commands.receive_arguments(f"{copy}/e", DatasetType.VOLUME, first=True, properties=False, flags=flags,
                                   encryption=ReceiveEncryption.AS_ABOVE),
    ]  # fmt: skip


def pushed(copy: str) -> list[Command]:
    """The requests of a push, but for its receives."""
    root = Location(path=copy, host=HOST)
    return [
        *looks(copy, target=True),
        commands.space_command(root, copy.rpartition("/")[0] if "/" in copy else copy),
        commands.receiving_command(HOST),
        commands.end_receive_command(copy, 4711, WHERE),
        commands.abort_command(copy, WHERE),
        commands.placeholder_command(f"{copy}/b", WHERE),
        commands.placeholder_command(f"{copy}/b", WHERE, encryption=ReceiveEncryption.OFF),
        listing_command(root, WHERE),
        read_command(("send", "-w", f"{copy}@a"), WHERE),
        read_command(("send", "-w", "-I", f"{copy}/b c@-a", f"{copy}/b c@b"), WHERE),
    ]


def receive_commands(copy: str) -> list[Command]:
    """The receives of a push, with mbuffer there and without."""
    sides = (far_side(copy), far_side(copy, mbuffer=False))
    return [commands.receive_command(words, side, PIPE) for words in receives(copy) for side in sides]


def sends(source: str) -> list[tuple[str, ...]]:
    """The words of sends from a source and from below it."""
    flags = SendFlags()
    return [
        commands.full_send_arguments(f"{source}@a", flags, properties=True),
        commands.full_send_arguments(f"{source}/b c@-a", SendFlags(raw=True, backup=True), properties=True),
        commands.full_send_arguments(f"{source}@a", SendFlags(large=False, compressed=False, embedded=False), properties=False),
        commands.incremental_send_arguments(f"{source}@a", f"{source}@c", flags, between=True, properties=True),
        commands.incremental_send_arguments(f"{source}#m", f"{source}@c", flags, between=False, properties=False),
        commands.incremental_send_arguments(f"{source}/b@a", f"{source}@c", flags, between=False, properties=True),
        commands.resumed_send_arguments(LATER),
    ]  # fmt: skip


def sent_back(copy: str) -> Command:
    """The request of a restore that fetches a copy back."""
    return commands.send_command(sends(copy)[0], far_side(copy), PIPE)


def pulled(source: str) -> list[Command]:
    """The requests of a pull."""
    root, side = Location(path=source, host=HOST), far_side(source)
    marks = tuple(
        (source, f"@{name}", made(TARGET_ID, 7))
        for name in ("a", "-b")
        for made in (cursor_bookmark_name, hold_bookmark_name)
    )
    streams = [
        commands.send_command(words, there, PIPE)
        for words in sends(source)
        for there in (side, far_side(source, mbuffer=False))
    ]
    return [
        *looks(source, target=False),
        *streams,
        commands.send_sizes_command(streams, WHERE),
        commands.compression_command(root),
        kit_command(root),
        properties_command(root),
        *commands.bookmark_commands(marks, side),
        *commands.bookmark_commands(marks, far_side(source, programs=False)),
        *commands.destroy_bookmark_commands((f"{source}#{cursor_bookmark_name(TARGET_ID, 9)}",), side),
        *commands.hold_commands(hold_tag(TARGET_ID), (f"{source}@a", f"{source}/b@-c"), side),
        *commands.release_commands(hold_tag(TARGET_ID), (f"{source}@a",), side),
    ]
