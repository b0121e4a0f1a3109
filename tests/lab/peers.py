"""Other people's programs, put into a running machine so that a measurement can set them beside ours: `give_peers`.

They are no part of an image: whoever does not measure needs none of them. pip checks their hashes.
"""

import hashlib
import importlib.metadata
import io
import tarfile
from pathlib import Path

from tests.lab.common import Machine
from tests.lab.laboratory import Lab, compile_tree
from tests.lab.requirements import unpack

# Pure Python, one file for every version of it.
_PEERS = """\
bzfs==1.25.0 --hash=sha256:558a47b241247e49d041279ea21c739aa85d033c50fb5c47f359711af0de9c8d
zfs-autobackup==3.3 --hash=sha256:1a23a70514873a5d4d627f297d00266b3ef2c054d1a1c7461b72634e5b71d0de
colorama==0.4.6 --hash=sha256:4f1d9991f5acc0ca119f9d443620b77f9d6b33703e51011c16baf57afb285fc6
"""
_PLACE = "/opt/peers"
_PROGRAM = """\
#!/usr/bin/python3
import sys
sys.path.insert(0, "{place}")
from {module} import {name}
sys.exit({name}())
"""


def give_peers(lab: Lab, *machines: Machine) -> None:
    """Puts `bzfs` and `zfs-autobackup` on the PATH of machines; sanoid and syncoid are there already."""
    name = f"peers-{lab.flavour}-{hashlib.sha256(_PEERS.encode()).hexdigest()[:16]}"
    folder = lab.store.made(lab.store.folder / name, lambda aside: unpack(_PEERS, aside, python=lab.python))
    compile_tree(lab, folder)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(folder, ".")
    for machine in machines:
        machine.sh(f"mkdir -p {_PLACE} && tar -x -C {_PLACE}", given=packed.getvalue())
        for name, script in _programs(folder):
            machine.write(f"/usr/local/bin/{name}", script, mode=0o755)


def _programs(folder: Path) -> list[tuple[str, str]]:
    """Name and text of each console script."""
    points = [
        point
        for found in importlib.metadata.distributions(path=[str(folder)])
        for point in found.entry_points
        if point.group == "console_scripts"
    ]
    return [(p.name, _PROGRAM.format(place=_PLACE, module=p.module, name=p.attr)) for p in points]
