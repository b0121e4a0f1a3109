"""Samples of lsblk's output."""

import json
from typing import Any


def node(name: str, kind: str = "disk", **more: Any) -> dict[str, Any]:
    told = {
        "kname": name, "path": f"/dev/{name}", "size": 1 << 30, "type": kind, "ro": False, "rm": False, "hotplug": False,
        "tran": None, "serial": None, "model": None, "wwn": None, "fstype": None, "uuid": None, "label": None,
        "pttype": None, "mountpoints": [None], "hctl": None,
    }  # fmt: skip
    return {**told, **more}


def tree(*nodes: dict[str, Any]) -> bytes:
    return json.dumps({"blockdevices": nodes}).encode()
