"""`python -m tests.lab`: builds the lab, runs a command in it, removes it."""

import argparse
import code
import shutil
import sys
import time
from collections.abc import Callable, Mapping

from tests.lab.common import LabError
from tests.lab.laboratory import Lab, missing
from tests.lab.recipe import FLAVOURS
from tests.lab.store import Store


def build(requested: argparse.Namespace) -> int:
    """Builds images and saved states that are missing; `--fresh` builds all anew."""
    store = Store()
    for flavour in requested.flavour or FLAVOURS:
        begun = time.monotonic()
        if requested.fresh:
            shutil.rmtree(store.image_folder(flavour), ignore_errors=True)
        with Lab(flavour, store=store) as lab:
            lab.prepare()
        print(f"{flavour}: ready after {time.monotonic() - begun:.1f} s, at {store.image_folder(flavour)}", flush=True)
    return 0


def execute(requested: argparse.Namespace) -> int:
    """Restores a machine, or with `--pair` both, runs one command on it, ends it; the exit status is the command's."""
    with Lab(_one(requested)) as lab:
        lab.prepare()
        begun = time.monotonic()
        machine = getattr(lab.pair(), requested.machine) if requested.pair else lab.machine(requested.machine)
        print(f"restored in {time.monotonic() - begun:.2f} s", file=sys.stderr)
        ended = machine.sh(requested.command, check=False, seconds=3600)
    sys.stdout.buffer.write(ended.out)
    sys.stderr.buffer.write(ended.errors)
    return int(ended.code)


def shell(requested: argparse.Namespace) -> int:
    """Restores both machines and gives a Python prompt with `master`, `backup` and `pair`."""
    with Lab(_one(requested)) as lab:
        lab.prepare()
        pair = lab.pair()
        names = {"lab": lab, "pair": pair, "master": pair.master, "backup": pair.backup}
        code.interact(banner='print(master.sh("zpool list").text)', local=names)
    return 0


def clean(requested: argparse.Namespace) -> int:
    """Removes all images and saved states."""
    Store().clean()
    return 0


def _one(requested: argparse.Namespace) -> str:
    return requested.flavour[0] if requested.flavour else "trixie"


COMMANDS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "build": build, "exec": execute, "shell": shell, "clean": clean,
}  # fmt: skip


def main() -> int:
    """The command line; its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab", description="Real OpenZFS in virtual machines.")
    parser.add_argument("--flavour", action="append", choices=list(FLAVOURS), help="build: all; else trixie")
    commands = parser.add_subparsers(dest="action", required=True)
    for name, action in COMMANDS.items():
        one = commands.add_parser(name, help=str(action.__doc__).splitlines()[0])
        if name == "build":
            one.add_argument("--fresh", action="store_true")
        elif name == "exec":
            one.add_argument("--machine", default="master", choices=("master", "backup"))
            one.add_argument("--pair", action="store_true")
            one.add_argument("command")
    requested = parser.parse_args()
    if why := missing():
        print(f"no lab here: {why}", file=sys.stderr)
        return 2
    try:
        return COMMANDS[requested.action](requested)
    except LabError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
