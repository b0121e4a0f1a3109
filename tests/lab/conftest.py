"""Real OpenZFS for tests: fixtures that hand out machines.

    def test_a_send_arrives(master):            # one machine, restored in half a second, zfs loaded, ended afterwards
        master.pool("tank", "1G")               # a pool on a sparse file, mounted at /tank; disk=True: on a disk
        master.sh("zfs create tank/photos")     # ends badly: LabError; check=False: look at .code, .text, .complaint
        master.write("/tank/photos/a", "text")
        master.job("photos", '...', targets='...')
        master.kitted("photos")                 # no run of it makes a recovery kit, which takes five seconds here
        ran = master.poolferry("run", "photos", "--json").json  # forked from what stands ready: warm.py
        under_way = master.popen(["poolferry", "run", "photos"])  # the program itself, as a person starts it

    def test_the_wire(pair):                    # two machines: ssh and mbuffer reach `master` and `backup` by name, as root
        master, backup = pair                   # or as the user `ferry`; nothing else is on the wire
        sending = master.popen("zfs send ... | ssh backup zfs receive ...")
        pair.cut()                              # and pair.mend()
        ended = sending.wait(60)

    red = master.plug_usb("red", "2G")          # red.device is its name under /dev/disk/by-id
    master.yank(red); master.plug_usb(red)      # or backup.plug_usb(red)
    master.power_cut(); master.boot_again()     # cold, with the same disks: some 20 seconds
    master.keep_tree()                          # before it sleeps: what it has over 9p would not wake
    master.falls_asleep("systemctl suspend"); master.wake(later=timedelta(hours=3))
    wait_until(lambda: ..., 30)                 # from tests.whole.house

Marks: `flavours("trixie", "bookworm")` runs a test on OpenZFS 2.3 and 2.1 (2.3 alone without it), and on 2.1 with the long
tests alone where it says `flavours("trixie", long=["bookworm"])`; `virtual` names what needs USB, a wire or power: with
POOLFERRY_LAB_NATIVE=1 the tests run on the host's own OpenZFS (native.py), and those are skipped. `lab` and a longer time
limit come by themselves. `python -m tests.lab` builds, runs one command, opens a prompt.
"""

import os
from collections.abc import Generator, Iterator

import pytest

from tests.lab.common import LabError, Machine
from tests.lab.laboratory import Lab, Pair, missing
from tests.lab.native import NativeMachine, no_native_zfs
from tests.lab.recipe import FLAVOURS, cache_folder
from tests.lab.store import Store

# Read here: each test has an environment of its own.
FOLDER = cache_folder()
NATIVE = os.environ.get("POOLFERRY_LAB_NATIVE") == "1"
IN_LAB = {"lab", "master", "pair"}
TEST_SECONDS = 600
BUILD_SECONDS = 3600
ACCOUNT = """ps --ppid 2 -p 2 --deselect -o pid,ppid,stat,etimes,wchan:24,args | grep -v systemd; zpool status -v; dmesg | tail -n 15
    for job in /etc/poolferry/jobs/*.toml; do poolferry show "$(basename "$job" .toml)" 2>&1 | tail -n 30; done"""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each flavour it is marked with."""
    if "flavour" in metafunc.fixturenames:
        marked = metafunc.definition.get_closest_marker("flavours")
        flavours = marked.args if marked and not NATIVE else ("trixie",)
        also = marked.kwargs.get("long", ()) if marked and not NATIVE else ()
        metafunc.parametrize(
            "flavour", (*flavours, *(pytest.param(one, marks=pytest.mark.long) for one in also)), scope="session"
        )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what needs machines, and gives the first one time to build them."""
    ours = [item for item in items if IN_LAB & set(getattr(item, "fixturenames", ()))]
    built = all(Store(folder=FOLDER).ready(flavour) for flavour in FLAVOURS) if ours and not missing() else True
    for item in ours:
        item.add_marker("lab")
        if NATIVE and ("pair" in getattr(item, "fixturenames", ()) or item.get_closest_marker("virtual")):
            item.add_marker(pytest.mark.skip(reason="needs USB, a wire or power to cut: only in virtual machines"))
        if not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(TEST_SECONDS if built else BUILD_SECONDS))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With a failure: how its machines stood."""
    report = yield
    lab = getattr(item, "funcargs", {}).get("lab")
    if report.failed and report.when == "call" and lab:
        for machine in lab.machines:
            try:
                account = machine.sh(ACCOUNT, check=False, seconds=60).text
            except LabError as error:  # a pool that waits for its disk holds zpool up
                account = str(error)
            report.sections.append((f"machine {machine.name}", account))
    return report


@pytest.fixture(scope="session")
def lab(flavour: str) -> Iterator[Lab]:
    """The lab of one flavour, built if need be. Not possible here: skipped with the reason; with CI=true, failed."""
    if why := missing():
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"no lab here: {why}")
    with Lab(flavour, store=Store(folder=FOLDER)) as opened:
        opened.prepare()
        yield opened


@pytest.fixture
def pair(lab: Lab) -> Iterator[Pair]:
    """Two machines, freshly restored."""
    both = lab.pair()
    yield both
    lab.give_back(*both)


if NATIVE:

    @pytest.fixture
    def master() -> Iterator[Machine]:
        """This machine itself, where it has OpenZFS and root."""
        if why := no_native_zfs():
            pytest.skip(why)
        machine = NativeMachine()
        yield machine
        machine.close()

else:

    @pytest.fixture
    def master(lab: Lab) -> Iterator[Machine]:
        """One machine, freshly restored."""
        machine = lab.machine("master")
        yield machine
        lab.give_back(machine)
