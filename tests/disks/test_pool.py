"""A pool that lost its disk is led only to the very disk that it lost."""

import pytest

from orchestrator.disks import commands, pool
from orchestrator.disks.errors import PoolHangs
from orchestrator.disks.format import key_format, make_pool
from orchestrator.disks.marker import read_properties_pipeline
from orchestrator.domain.errors import OrchestratorError, Stalled
from orchestrator.process.pipeline import PipelineResult, StopReason
from orchestrator.process.scripted import ScriptedExecutor, scripted_result
from tests.planners.rotation_world import RED_UUID, device, disk

GUID, VDEV = "15440512953407512343", "7712345678901234567"
# As OpenZFS 2.3 prints them.
LABEL = f"""------------------------------------
LABEL 0
------------------------------------
    version: 5000
    name: 'poolferry-red'
    state: 0
    txg: 42
    pool_guid: {GUID}
    hostname: 'master'
    top_guid: {VDEV}
    guid: {VDEV}
    vdev_tree:
        type: 'disk'
        id: 0
        guid: 99
    labels = 0 1 2 3
"""
STATUS = f"""  pool: poolferry-red
 state: SUSPENDED
config:

\tNAME                   STATE     READ WRITE CKSUM
\tpoolferry-red          UNAVAIL      0     0     0  insufficient replicas
\t  {VDEV}  FAULTED      3     0     0  too many errors

errors: List of errors unavailable: pool I/O is currently suspended
"""
RED = disk(identity=GUID, content="zfs")
BACK = device("sdc", kind="zfs_member", uuid=GUID, sub=VDEV)


def script(**more: PipelineResult) -> ScriptedExecutor:
    told = {
        "sectors": scripted_result(b"2097152\n"), "table": scripted_result(b"0 2097152 linear 8:16 0\n"), "label": scripted_result(LABEL.encode()),
        "status": scripted_result(STATUS.encode()), "health": scripted_result(f"{GUID}\tONLINE\n".encode()), **more,
    }  # fmt: skip
    requested = {
        "sectors": commands.sectors_pipeline(BACK.path), "table": commands.node_table("red"),
        "label": commands.label_pipeline(BACK.path), "status": commands.vdev_pipeline("red"),
        "health": commands.pool_health("red"),
    }  # fmt: skip
    actions = [*commands.lead_node(BACK.path, 2097152, "red"), commands.clear_pool("red")]
    return ScriptedExecutor(
        {
            **{str(requested[name]): told[name] for name in requested},
            **{str(each): scripted_result() for each in actions},
        }
    )


def did(used: ScriptedExecutor) -> list[str]:
    return [str(each) for each in used.requested if each.effect]


def test_it_is_led_to_the_disk_and_cleared() -> None:
    used = script()
    pool.come_back(RED, BACK, used)
    assert did(used) == [
        "dmsetup reload poolferry-red --table '0 2097152 linear /dev/sdc 0'",
        "dmsetup suspend --noflush --nolockfs poolferry-red",
        "dmsetup resume poolferry-red",
        "zpool clear poolferry-red",
    ]


@pytest.mark.parametrize(
    "more",
    [
        {"sectors": scripted_result(b"2097160\n")},
        {"table": scripted_result(b"0 2097152 error\n")},
        {"label": scripted_result(exits=(2,))},
        {"label": scripted_result(LABEL.replace(GUID, "1").encode())},
        {"label": scripted_result(LABEL.replace(VDEV, "1").encode())},
        {"label": scripted_result(LABEL.replace("state: 0", "state: 1").encode())},
        {"status": scripted_result(STATUS.replace(VDEV, "sdb").encode())},
    ],
    ids=["size", "no table", "no label", "another pool", "another part", "exported elsewhere", "unknown part"],
)
def test_it_is_not_led_to_what_is_not_proved_to_be_the_disk(more: dict[str, PipelineResult]) -> None:
    used = script(**more)
    with pytest.raises(OrchestratorError, match="could not be identified") as caught:
        pool.come_back(RED, BACK, used)
    assert caught.value.hint
    assert did(used) == []


def test_a_pool_that_does_not_come_back_is_told_so() -> None:
    with pytest.raises(OrchestratorError, match="did not come back: it says"):
        pool.come_back(RED, BACK, script(health=scripted_result(f"{GUID}\tSUSPENDED\n".encode())))


@pytest.mark.parametrize(
    ("key", "told"),
    [
        (b"\0" * 32, "raw"),
        (b"a1" * 32, "hex"),
        (b"A1" * 32 + b"\n", "hex"),
        (b"a1" * 31, "passphrase"),
        (b"open sesame\n", "passphrase"),
    ],
)
def test_how_a_key_is_to_be_read(key: bytes, told: str) -> None:
    assert key_format(key) == told
    assert f"keyformat={told}" in str(make_pool("red", "/keys/red", key))
    assert "encryption" not in str(make_pool("red"))


@pytest.mark.parametrize(("root", "below"), [(b"poolferry-red\n", False), (b"-\n", True)])
def test_keys_of_replicas_that_were_sent_raw_are_not_asked_for(root: bytes, below: bool) -> None:
    red = disk(identity=GUID, content="zfs", key_file="/keys/red")
    load = commands.load_keys("red", "/keys/red", below=below)
    script = ScriptedExecutor({
        str(commands.pool_is_read_only("red")): scripted_result(exits=(1,)), str(commands.node_table("red")): scripted_result(b"0 9 linear 8:16 0\n"),
        str(commands.import_pool(GUID, "red", read_only=False)): scripted_result(), str(commands.encryption_root("red")): scripted_result(root),
        str(load): scripted_result(),
    })  # fmt: skip
    pool.attach(red, device("sdb"), script)
    assert str(load) == str(script.requested[-1])


LOCKED = disk(identity=RED_UUID, inside=GUID, content="zfs", key_file="/keys/red")
DEEP = device("sdc", kind="crypto_LUKS", uuid=RED_UUID)


def deep(label: str, *, led: bool = True) -> ScriptedExecutor:
    """Return what happens to a pool in a container; every deed ends well. `led`: a device of ours leads to the disk."""
    table = commands.node_table("red+disk")
    told = {
        str(commands.sectors_pipeline(DEEP.path)): scripted_result(b"2097152\n"),
        str(table): scripted_result(b"0 2097152 linear 8:16 0\n") if led else scripted_result(exits=(1,)),
        str(commands.label_pipeline("/dev/mapper/poolferry-red+look")): scripted_result(label.encode()),
        str(commands.vdev_pipeline("red")): scripted_result(STATUS.encode()), str(commands.node_table("red")): scripted_result(b"0 9 crypt\n"),
        str(commands.pool_health("red")): scripted_result(f"{GUID}\tONLINE\n".encode()),
        str(commands.pool_is_read_only("red")): scripted_result(b"on\n"),
    }  # fmt: skip
    return ScriptedExecutor(
        [
            *told.items(),
            (lambda pipeline: pipeline.effect > 0, scripted_result()),
            (lambda _: True, scripted_result(exits=(1,))),
        ]
    )


def test_a_pool_in_a_container_lies_on_it_and_it_on_the_device_that_can_be_led() -> None:
    used = deep(LABEL, led=False)
    pool.attach(LOCKED, DEEP, used)
    made, opened, imported = did(used)
    assert made == "dmsetup create poolferry-red+disk --table '0 2097152 linear /dev/sdc 0'"
    assert opened.endswith("--key-file /keys/red /dev/mapper/poolferry-red+disk poolferry-red")
    assert "zpool import -d /dev/mapper/poolferry-red -N" in imported
    used = deep(LABEL)
    pool.attach(LOCKED, DEEP, used)
    assert did(used) == [opened, imported], "the device that a look left is taken"
    used = deep(LABEL)
    pool.detach(LOCKED, used)
    assert did(used) == [
        "zpool export poolferry-red", "cryptsetup close poolferry-red", "dmsetup remove --retry poolferry-red+disk",
    ]  # fmt: skip


@pytest.mark.parametrize("held", [True, False])
def test_only_a_pool_that_cannot_be_imported_is_asked_whether_it_is(held: bool) -> None:
    """One that lost its disk, and was led to it again by the look, is. Any other is let go."""
    requested, import_it = (
        str(commands.pool_is_read_only("red")),
        str(commands.import_pool(GUID, "red", read_only=False)),
    )
    said = {str(commands.node_table("red")): scripted_result(b"0 9 linear 8:16 0\n"), import_it: scripted_result()}
    used = ScriptedExecutor(said)
    pool.attach(RED, device("sdb"), used)
    assert [str(each) for each in used.requested] == [str(commands.node_table("red")), import_it]
    failed = {import_it: scripted_result(exits=(1,), words="a pool with that name already exists")}
    mode = scripted_result(b"off\n") if held else scripted_result(exits=(1,))
    used = ScriptedExecutor({**said, **failed, requested: mode, str(commands.remove_node("red")): scripted_result()})
    if held:
        pool.attach(RED, device("sdb"), used)
        assert did(used) == [import_it]
    else:
        with pytest.raises(OrchestratorError):
            pool.attach(RED, device("sdb"), used)
        assert did(used)[-1] == "dmsetup remove --retry poolferry-red"


def test_a_look_asks_nothing_that_it_knows() -> None:
    """It is part of the time between the plug and the first byte."""
    said = {
        str(commands.pool_is_read_only("red")): scripted_result(exits=(1,)), str(commands.node_table("red")): scripted_result(exits=(1,)),
        str(commands.sectors_pipeline("/dev/sdb")): scripted_result(b"9"), str(read_properties_pipeline("poolferry-red")): scripted_result(exits=(1,)),
    }  # fmt: skip
    used = ScriptedExecutor([*said.items(), (lambda pipeline: pipeline.effect > 0, scripted_result())])
    assert pool.peek(RED, device("sdb"), used) is None
    assert did(used) == [
        "dmsetup create poolferry-red --table '0 9 linear /dev/sdb 0'",
        str(commands.import_pool(GUID, "red", read_only=True)),
        "zpool export poolferry-red",
    ], "the device of ours stays for what follows"
    assert len(used.requested) == 6


def test_a_look_that_fails_leaves_nothing() -> None:
    said = {
        str(commands.pool_is_read_only("red")): scripted_result(exits=(1,)), str(commands.sectors_pipeline("/dev/sdb")): scripted_result(b"9"),
        str(commands.import_pool(GUID, "red", read_only=True)): scripted_result(exits=(1,), words="cannot import"),
        str(commands.node_table("red")): scripted_result(b"0 9 linear 8:16 0\n"),
    }  # fmt: skip
    used = ScriptedExecutor([*said.items(), (lambda pipeline: pipeline.effect > 0, scripted_result())])
    with pytest.raises(OrchestratorError):
        pool.peek(RED, device("sdb"), used)
    assert did(used)[-1] == "dmsetup remove --retry poolferry-red"


@pytest.mark.parametrize("same", [True, False])
def test_a_pool_in_a_container_is_led_back_only_when_its_label_in_there_is_the_same(same: bool) -> None:
    used = deep(LABEL if same else LABEL.replace(VDEV, "1"))
    if same:
        pool.come_back(LOCKED, DEEP, used)
    else:
        with pytest.raises(OrchestratorError, match="could not be identified"):
            pool.come_back(LOCKED, DEEP, used)
    look = [line for line in did(used) if "+look" in line]
    assert [line.split()[:2] for line in look] == [
        ["cryptsetup", "close"],
        ["cryptsetup", "open"],
        ["cryptsetup", "close"],
    ]
    assert "--readonly" in look[1]
    assert any("reload poolferry-red+disk" in line for line in did(used)) is same


def leaving(*, here: int = 0, export: PipelineResult | None = None) -> ScriptedExecutor:
    """A pool that is written, with its disk or (`here` 1) without it."""
    told = {
        commands.pool_is_read_only("red"): scripted_result(b"off\n"), commands.node_table("red"): scripted_result(b"0 9 linear 8:16 0\n"),
        commands.number_is_here("8:16"): scripted_result(exits=(here,)), commands.sync_pool("red"): scripted_result(),
        commands.pool_health("red"): scripted_result(b"1\tONLINE\n"), commands.export_pool("red"): export or scripted_result(),
        commands.remove_node("red"): scripted_result(),
    }  # fmt: skip
    return ScriptedExecutor({str(pipeline): result for pipeline, result in told.items()})


def test_a_pool_is_written_out_and_its_disk_looked_for_before_it_is_exported() -> None:
    used = leaving()
    pool.detach(RED, used)
    said = [str(each) for each in used.requested]
    here, sync, export = (
        "test -e /sys/dev/block/8:16",
        "zpool sync poolferry-red",
        "zpool export poolferry-red",
    )
    assert [each for each in said if each in (here, sync, export)] == [here, sync, here, export]
    assert said[-1] == "dmsetup remove --retry poolferry-red"


def test_a_pool_whose_disk_is_gone_is_neither_written_out_nor_exported() -> None:
    used = leaving(here=1)
    with pytest.raises(OrchestratorError, match="disk red was pulled out"):
        pool.detach(RED, used)
    assert did(used) == []


def test_an_export_that_does_not_end_is_told_from_all_other_silence() -> None:
    stalled = PipelineResult(exits=(None,), last_output=("",), stopped=StopReason.STALLED)
    with pytest.raises(PoolHangs):
        pool.detach(RED, leaving(export=stalled))


def test_a_pool_that_does_not_answer_is_not_taken_for_one_that_is_not_there() -> None:
    silent = PipelineResult(exits=(None,), last_output=("",), stopped=StopReason.TIMED_OUT)
    used = ScriptedExecutor({str(commands.pool_is_read_only("red")): silent})
    with pytest.raises(Stalled, match="zpool did not end"):
        pool.is_still_imported(RED, used)
