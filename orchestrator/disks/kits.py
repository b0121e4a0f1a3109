"""Commands that read recovery kits in a folder, in a dataset, or on a device that is not mounted yet.

They change nothing there: mounts are read-only and visible to this process alone, a pool is imported read-only and exported
again. Their output is an archive of all files that may belong to a kit.
"""

from orchestrator.disks.commands import untouched_options
from orchestrator.domain.place import Host
from orchestrator.domain.plan import Effect, Pipeline
from orchestrator.process.scripts import MOUNT_NAMESPACE, let_go_of_disks, printing_function, script, script_command

DATASET = "poolferry-kit"
_ROOM = "disks"
_FUNCTIONS = "kit-files.sh"
# A login without a terminal, and an ordinary user, often have no sbin in their PATH.
_PATH = "PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin\n"


def host_pipeline(path: str, host: Host, keeps: str) -> Pipeline:
    """Return the pipeline that packs a folder on a host, or a dataset there with kits below it."""
    text = _PATH + let_go_of_disks() + script(_ROOM, _FUNCTIONS) + script(_ROOM, "pack-dataset.sh")
    inner = printing_function("print_pack_dataset", text)
    return _pipeline("pack-either.sh", path, host=host, keeps=keeps, before=inner)


def folder_pipeline(path: str, keeps: str) -> Pipeline:
    """Return the pipeline that packs a folder."""
    return _pipeline("pack-folder.sh", path, host=None, keeps=keeps)


def dataset_pipeline(dataset: str, keeps: str) -> Pipeline:
    """Return the pipeline that packs a dataset of kits, or those below a dataset. Its pool is already imported."""
    return _pipeline(
        "pack-dataset.sh", dataset, host=None, keeps=keeps, prefix=MOUNT_NAMESPACE, before=let_go_of_disks()
    )


def device_pipeline(device: str, keeps: str) -> Pipeline:
    """Return the pipeline that packs the kits on a device of this machine, or on a part of it."""
    options = (word for kind in untouched_options().items() for word in kind)
    before = let_go_of_disks()
    return _pipeline("pack-device.sh", device, *options, host=None, keeps=keeps, prefix=MOUNT_NAMESPACE, before=before)


def _pipeline(
    name: str, *values: str, host: Host | None, keeps: str, prefix: tuple[str, ...] = (), before: str = ""
) -> Pipeline:
    command = script_command(
        _ROOM,
        name,
        *values,
        effect=Effect.READS,
        host=host,
        before=_PATH + before,
        with_functions=_FUNCTIONS,
        prefix=prefix,
    )
    return Pipeline(stages=(command,), keeps=keeps)
