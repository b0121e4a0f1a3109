"""The end of a restore: which properties return and how, what is mounted, what has to wait, and that it ends."""

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from orchestrator.domain.dataset_restore import DatasetRestoreRequest
from orchestrator.domain.place import Location
from orchestrator.domain.plan import NothingToDo, Plan, Step
from orchestrator.engines.zfs.commands.commands import overridden_properties
from orchestrator.engines.zfs.model import Dataset, DatasetType, SendFlags
from orchestrator.engines.zfs.plan.hold_names import ReplicationTargetId, cursor_bookmark_name
from orchestrator.engines.zfs.restore import plan as returning
from orchestrator.engines.zfs.restore import properties as settling
from orchestrator.engines.zfs.restore.model import DatasetRestoreSurvey, PropertyValue
from orchestrator.engines.zfs.restore.plan import cursors_to_restore, make_restore_job
from orchestrator.engines.zfs.restore.survey import parse_properties, properties_command
from orchestrator.engines.zfs.survey.parse import UnreadableListing
from tests.engines.zfs.model_run import requested
from tests.engines.zfs.sides import COPY, SOURCE, A, dataset, job, side
from tests.engines.zfs.sides import world as seen_world

BACK = SendFlags(backup=True)
FILESYSTEM, VOLUME = overridden_properties(DatasetType.FILESYSTEM), overridden_properties(DatasetType.VOLUME)


def received(**values: str) -> dict[str, PropertyValue]:
    """Properties of a copy, each with what came with the stream."""
    return {
        name: PropertyValue(value="as the copy has it", received=value, source="local")
        for name, value in values.items()
    }


def arrived(kind: tuple[str, ...] = FILESYSTEM, /, **values: str) -> dict[str, PropertyValue]:
    """Properties of what has just come back: what came, and over some of it what a receive gives."""
    found = {name: PropertyValue(value=value, received=value, source="received") for name, value in values.items()}
    given = {"readonly": "on", "canmount": "noauto", **dict.fromkeys(("quota", "refquota"), "0")}
    for name in kind:
        source = "default" if name in ("mountpoint", "sharenfs", "sharesmb") else "local"
        found[name] = PropertyValue(value=given.get(name, "/x"), received=values.get(name), source=source)
    return found


def seen(
    *datasets: Dataset, copied: Mapping[str, dict[str, PropertyValue]], home: Mapping[str, dict[str, PropertyValue]],
    homeward: bool = True, mounts: Mapping[str, str] | None = None,
) -> DatasetRestoreSurvey:  # fmt: skip
    there = datasets or (dataset("", A, flags=BACK),)
    world = seen_world(side(COPY, *(replace(one, flags=None) for one in there)), side(SOURCE, *there))
    made = make_restore_job(job(), DatasetRestoreRequest(to=SOURCE))
    return DatasetRestoreSurvey(
        job=made, world=replace(world, returning=COPY.path), homeward=homeward, copied=copied, home=home,
        mounts=mounts or {},
    )  # fmt: skip


def lines(found: object) -> list[str]:
    assert isinstance(found, Plan), found
    return told(found.steps)


def told(steps: tuple[Step, ...]) -> list[str]:
    return [str(step.work) for step in steps]


def test_what_the_copy_kept_aside_returns_first_and_canmount_later() -> None:
    came = {"mountpoint": "/srv/photos", "quota": "1000", "compression": "lz4"}
    found = settling.plan(seen(copied={"": received(**came)}, home={"": arrived(**came)}))
    assert lines(found) == [
        f"zfs inherit -S {name} tank/photos"
        for name in ("mountpoint", "readonly", "quota", "refquota", "reservation", "refreservation")
    ]
    assert isinstance(found, Plan)
    assert found.again


def test_one_command_for_all_datasets() -> None:
    there = (
        dataset("", A, flags=BACK),
        dataset("x", A, flags=BACK),
        dataset("v", A, flags=BACK, kind=DatasetType.VOLUME),
    )
    home = {"": arrived(), "x": arrived(), "v": arrived(VOLUME)}
    found = lines(settling.plan(seen(*there, copied={}, home=home)))
    assert "zfs inherit -S readonly tank/photos tank/photos/v tank/photos/x" in found
    assert "zfs inherit -S quota tank/photos tank/photos/x" in found


def test_what_no_stream_brought_is_set() -> None:
    """As of a copy that its pool encrypts; but nothing that only a new dataset, or the stream itself, can have."""
    came = received(quota="1000", compression="lz4", casesensitivity="mixed", canmount="off", **{"user:x": "a b"})
    found = lines(settling.plan(seen(copied={"": came}, home={"": arrived(compression="lz4")})))
    assert found[-1] == "zfs set quota=1000 'user:x=a b' tank/photos"
    assert "zfs inherit -S quota tank/photos" not in found


def test_a_mountpoint_that_was_set_in_a_pool_for_another_folder_is_not_set_again() -> None:
    """As after `zpool import -R /mnt`: zfs tells what was set with that folder before it."""
    copied = {"": received(mountpoint="/srv/photos")}
    there = PropertyValue(value="/mnt/srv/photos", received=None, source="local", outside="/srv/photos")
    home = arrived() | {"mountpoint": there}
    assert not [line for line in lines(settling.plan(seen(copied=copied, home={"": home}))) if "mountpoint" in line]
    bare = home | {"mountpoint": replace(there, value="/mnt/photos", outside="/photos")}
    assert "zfs set mountpoint=/srv/photos tank/photos" in lines(settling.plan(seen(copied=copied, home={"": bare})))


@pytest.mark.parametrize(("waits", "taken_back"), [(True, False), (False, True)])
def test_a_mountpoint_that_a_person_gave_to_what_waits_stays(waits: bool, taken_back: bool) -> None:
    """Keep it, as the message says it, where its own was taken; before a wait a local one is of a receive."""
    copied = {"": received(mountpoint="/srv/photos")}
    home = arrived() | {"mountpoint": PropertyValue(value="/srv/other", received="/srv/photos", source="local")}
    found = lines(settling.plan(seen(dataset("", A, flags=BACK, waits=waits), copied=copied, home={"": home})))
    assert ("zfs inherit -S mountpoint tank/photos" in found) is taken_back
    assert not [line for line in found if "set mountpoint" in line]


def test_it_comes_to_an_end() -> None:
    """A property that was set is not inherited away again."""
    came = received(quota="1000", readonly="on")
    home = {name: PropertyValue(value="", received=None, source="default") for name in FILESYSTEM}
    home |= {"quota": PropertyValue(value="1000", received=None, source="local")}
    home |= {"readonly": PropertyValue(value="on", received=None, source="local")}
    home |= {"canmount": PropertyValue(value="noauto", received=None, source="local")}
    home |= {"mountpoint": PropertyValue(value="/tank/photos", received=None, source="default")}
    found = settling.plan(seen(copied={"": came}, home={"": home}))
    assert lines(found) == [
        "zfs inherit -S canmount tank/photos",
        *(line for line in lines(found) if "zfs mount" in line),
        "zfs inherit poolferry:placeholder tank/photos",
        "zfs inherit poolferry:flags tank/photos",
    ]
    assert isinstance(found, Plan)
    assert not found.again
    done = dataset("", A)
    assert isinstance(settling.plan(seen(done, copied={"": came}, home={"": home})), NothingToDo)


def test_elsewhere_mountpoints_and_shares_stay_aside() -> None:
    came = {"mountpoint": "/srv/photos", "sharenfs": "on"}
    found = settling.plan(seen(copied={"": received(**came)}, home={"": arrived(**came)}, homeward=False))
    assert not any("mountpoint" in line or "share" in line for line in lines(found))
    assert isinstance(found, Plan)
    (warning,) = found.warnings
    assert warning == (
        "mountpoints and shares stay aside, as this is not where the data came from; to have them back: "
        "zfs inherit -S mountpoint tank/photos; zfs inherit -S sharenfs tank/photos"
    )


def settled(**more: str) -> dict[str, PropertyValue]:
    """Properties of what only has to be mounted."""
    found = {name: PropertyValue(value="0", received=None, source="default") for name in FILESYSTEM}
    found["canmount"] = PropertyValue(value="noauto", received=more.get("canmount"), source="local")
    found["mountpoint"] = PropertyValue(value=more.get("mountpoint", "/tank/photos"), received=None, source="default")
    return found


def mounted(found: object) -> list[str]:
    """The datasets that are mounted, in order."""
    script = next((line for line in lines(found) if "zfs mount" in line), None)
    return script.split(" mount-datasets.sh ")[-1].split() if script else []


def test_parents_are_mounted_first_and_the_marks_go_last_the_roots_after_all() -> None:
    there = [dataset(name, A, flags=BACK) for name in ("", "x", "x/y")]
    home = {name: settled(mountpoint=f"/tank/photos/{name}") for name in ("", "x", "x/y")}
    found = settling.plan(seen(*there, copied={}, home=home))
    assert mounted(found) == ["tank/photos", "tank/photos/x", "tank/photos/x/y"]
    assert lines(found)[-1] == "zfs inherit poolferry:flags tank/photos/x/y tank/photos/x tank/photos"


@pytest.mark.parametrize(
    ("canmount", "mountpoint"), [("off", "/x"), ("noauto", "/x"), ("on", "legacy"), ("on", "none")]
)
def test_what_was_not_mounted_by_itself_is_not(canmount: str, mountpoint: str) -> None:
    copied = {"": received(canmount=canmount)}
    found = settling.plan(seen(copied=copied, home={"": settled(canmount=canmount, mountpoint=mountpoint)}))
    assert mounted(found) == []
    assert lines(found)[-1] == "zfs inherit poolferry:flags tank/photos"


def test_what_another_has_the_place_of_waits_with_all_below_it() -> None:
    there = [dataset(name, A, flags=BACK) for name in ("", "x", "z")]
    home = {"": settled(), "x": settled(mountpoint="/tank/photos/x"), "z": settled(mountpoint="none")}
    mounts = {"/tank/photos": "tank/photos_aside"}
    found = settling.plan(seen(*there, copied={}, home=home, mounts=mounts))
    assert mounted(found) == []
    marks = [f"zfs inherit poolferry:{mark} tank/photos/z" for mark in ("placeholder", "flags")]
    waiting = [
        "zfs set poolferry:waits=on tank/photos tank/photos/x",
        "zfs inherit poolferry:flags tank/photos/x tank/photos",
    ]
    assert lines(found) == ["zfs inherit -S canmount tank/photos/z", *waiting, *marks]
    assert isinstance(found, Plan)
    assert found.warnings == (
        (
            "tank/photos is not mounted, as tank/photos_aside has /tank/photos: unmount that "
            "(zfs set canmount=noauto tank/photos_aside; zfs unmount tank/photos_aside), and run the same command again"
        ),
    )
    marked = [replace(one, flags=None, waits=True) for one in there[:2]]
    assert settling.waiting_datasets(seen(*marked, copied={}, home=home, mounts=mounts)) == (
        "tank/photos",
        "tank/photos/x",
    )
    waits = settling.plan(seen(*marked, copied={}, home=home, mounts=mounts))
    assert isinstance(waits, NothingToDo)
    assert waits.warnings == found.warnings


def test_nothing_is_mounted_over_files_that_lie_there() -> None:
    """A mountpoint comes from where the copy lay: a host that was taken over could name /etc/profile.d."""
    there = [dataset(name, A, flags=BACK) for name in ("", "x", "z")]
    home = {"": settled(), "x": settled(mountpoint="/etc/profile.d"), "z": settled(mountpoint="/srv/z")}
    looked = replace(seen(*there, copied={}, home=home), occupied=frozenset({"/etc/profile.d"}))
    found = settling.plan(looked)
    assert mounted(found) == ["tank/photos", "tank/photos/z"]
    assert isinstance(found, Plan)
    (warning,) = found.warnings
    assert warning.startswith("tank/photos/x is not mounted, as files lie in /etc/profile.d, which it would hide")
    assert [line for line in lines(found) if "poolferry" in line and "tank/photos/x" in line.split()] == [
        "zfs set poolferry:waits=on tank/photos/x", "zfs inherit poolferry:flags tank/photos/x",
    ]  # fmt: skip


def test_what_is_mounted_by_itself_already_is_fine() -> None:
    there = dataset("", A, flags=BACK, mounted=True)
    found = settling.plan(seen(there, copied={}, home={"": settled()}, mounts={"/tank/photos": "tank/photos"}))
    assert mounted(found) == []
    assert isinstance(found, Plan)


def test_what_is_locked_is_not_mounted_nor_what_lies_below() -> None:
    there = [
        dataset("", A, flags=BACK, encrypted=True, encryption_root="tank/photos"),
        dataset("x", A, flags=BACK, encrypted=True, encryption_root="tank/photos"),
        dataset("open", A, flags=BACK),
    ]
    home = {name: settled(mountpoint=f"/tank/photos/{name}") for name in ("", "x", "open")}
    found = settling.plan(seen(*there, copied={}, home=home))
    assert mounted(found) == []
    assert isinstance(found, Plan)
    (warning,) = found.warnings
    assert warning == (
        "2 datasets of tank/photos: whole, and not in use before the key is loaded: tank/photos and 1 more: "
        "zfs load-key tank/photos; then run the same command again; "
        "if a key is lost for ever: the same command with --lost-key tank/photos"
    )
    assert settling.waiting_datasets(seen(*there, copied={}, home=home)) == (
        "tank/photos", "tank/photos/open", "tank/photos/x",
    )  # fmt: skip


def test_a_place_that_only_held_others() -> None:
    there = (dataset("", placeholder=True), dataset("x", A, flags=BACK))
    home = {"": arrived(), "x": settled()}
    found = lines(settling.plan(seen(*there, copied={}, home=home)))
    assert found[0] == "zfs inherit -S readonly tank/photos"
    home[""] = settled()
    found = lines(settling.plan(seen(*there, copied={}, home=home)))
    assert [line for line in found if "poolferry" in line] == [
        "zfs inherit poolferry:placeholder tank/photos/x tank/photos", "zfs inherit poolferry:flags tank/photos/x",
    ]  # fmt: skip
    assert not any("canmount tank/photos " in f"{line} " for line in found)


def test_the_rest_is_foreseen() -> None:
    came = received(mountpoint="/srv/photos", canmount="on", quota="1000")
    there = seen(copied={"": came}, home={})
    first, last = settling.foresee_steps(replace(there, world=replace(there.world, target=side(SOURCE))))
    assert told(first)[0] == "zfs inherit -S mountpoint tank/photos"
    assert "zfs inherit -S quota tank/photos" in told(first)
    assert told(last)[0] == "zfs inherit -S canmount tank/photos"
    assert told(last)[-1] == "zfs inherit poolferry:flags tank/photos"


# The look.

LISTING = b"""=properties
tank/photos\ttype\tfilesystem\t-\t-
tank/photos\tquota\t0\t1000\tlocal
tank/photos/x y\tuser:a\tone\ttwo\tlocal
a second line of it
tank/photosx\tquota\t0\t-\tdefault
=mounts
tank/photos/x\\040y /tank/photos/x\\040y
proc /proc
=occupied
/srv/live files
=end
"""


def test_properties_and_mounts_are_read() -> None:
    told = parse_properties(LISTING.split(b"\n"), SOURCE)
    assert told.properties == {
        "": {
            "type": PropertyValue(value="filesystem", received=None, source="-"),
            "quota": PropertyValue(value="0", received="1000", source="local"),
        },
        "x y": {"user:a": PropertyValue(value="one", received="two", source="local")},
    }
    assert told.mounts == {"/tank/photos/x y": "tank/photos/x y", "/proc": "proc"}
    assert told.occupied == {"/srv/live files"}


@pytest.mark.parametrize(
    ("told", "outside"),
    [
        ("/run/poolferry/disks/red/srv/docs", "/srv/docs"), ("/run/poolferry/disks/red", "/"), ("none", "none"),
        ("/run/poolferry/disks/redder/x", "/run/poolferry/disks/redder/x"),
    ],
)  # fmt: skip
def test_a_mountpoint_is_told_as_it_is_outside_of_the_disks_own_folder(told: str, outside: str) -> None:
    """As zfs 2.3 told it of a copy on a disk whose pool was imported with -R."""
    listing = f"""=properties
tank/photos\tmountpoint\tnone\t{told}\tlocal
=altroot
/run/poolferry/disks/red
=mounts
=end"""
    found = parse_properties(listing.encode().split(b"\n"), SOURCE)
    mountpoint = found.properties[""]["mountpoint"]
    assert (mountpoint.received, mountpoint.outside, mountpoint.value) == (outside, "none", "none")
    bare = parse_properties(
        listing.replace("=altroot\n/run/poolferry/disks/red", "=altroot\n-").encode().split(b"\n"), SOURCE
    )
    assert bare.properties[""]["mountpoint"].received == told


@pytest.mark.parametrize("cut", [LISTING[:40], b"", LISTING.replace(b"=end\n", b"")])
def test_a_listing_that_is_cut_is_none(cut: bytes) -> None:
    with pytest.raises(UnreadableListing):
        parse_properties(cut.split(b"\n"), SOURCE)


def test_the_look_is_one_script_without_names_in_it() -> None:
    command = properties_command(Location(path="tank/a b"))
    assert command.argv[-1] == "tank/a b"
    assert "tank" not in command.argv[2]


# Keys.


def keyed(*names: str, loaded: bool = True, keyformat: str = "passphrase", **salts: str) -> DatasetRestoreSurvey:
    """Raw copies that came back, each an encryption root of its own."""
    there = [
        dataset(name, A, flags=BACK, encrypted=True, key_loaded=loaded, encryption_root=SOURCE.path + (f"/{name}" if name else ""))
        for name in names
    ]  # fmt: skip
    home = {name: settled(mountpoint="none") for name in names}
    for name in names:
        home[name]["keyformat"] = PropertyValue(value=keyformat, received=None, source="-")
        home[name]["pbkdf2salt"] = PropertyValue(value=salts.get(name or "root", "0"), received=None, source="-")
    return seen(*there, copied={}, home=home)


def heirs(found: object) -> list[str]:
    return [line for line in lines(found) if "change-key" in line]


def test_what_had_the_key_of_its_parent_has_it_again() -> None:
    """The salt tells: a passphrase of its own has a salt of its own."""
    found = settling.plan(keyed("", "x", "y", root="77", x="77", y="78"))
    assert heirs(found) == ["zfs change-key -i tank/photos/x"]
    assert lines(found)[-1] == "zfs inherit poolferry:flags tank/photos/y tank/photos/x tank/photos"


def test_keys_that_are_missing_are_waited_for() -> None:
    waits = keyed("", "x", root="77", x="77", loaded=False)
    found = settling.plan(waits)
    assert "zfs inherit poolferry:flags tank/photos/x" in lines(found), "it is whole: the runs of its job go on"
    assert isinstance(found, Plan)
    (warning,) = found.warnings
    assert warning == (
        "1 dataset of tank/photos: whole, and not in use before the key is loaded: tank/photos/x: "
        'for each in tank/photos tank/photos/x; do zfs load-key "$each"; done; then run the same command again; '
        "if a key is lost for ever: the same command with --lost-key tank/photos/x"
    )


def test_a_key_in_a_file_is_named_for_what_shared_it() -> None:
    """A raw stream left a prompt as the location of each."""
    case = keyed("", "x", "y", loaded=False, keyformat="raw")
    told = PropertyValue(value="file:///k e y", received=None, source="local")
    home = {name: {**values, "keylocation": replace(told, value="prompt")} for name, values in case.home.items()}
    home[""]["keylocation"] = told
    case = replace(case, home=home, copied={"": {"keylocation": told}}, keyless=frozenset({"file:///k e y"}))
    found = settling.plan(case)
    assert isinstance(found, Plan)
    (warning,) = found.warnings
    assert warning == (
        "2 datasets of tank/photos: whole, and not in use before the key is loaded: tank/photos/x and 1 more "
        "(file:///k e y is not there: bring that back first): "
        "for each in tank/photos tank/photos/x tank/photos/y; do zfs load-key -L 'file:///k e y' \"$each\"; done; "
        "then run the same command again; if a key is lost for ever: the same command with --lost-key tank/photos/x"
    )


def test_nothing_waits_for_a_key_that_is_lost() -> None:
    case = keyed("", "x", "own", "own/y", root="77", x="77", own="5", **{"own/y": "5"}, loaded=False)
    home = {
        name: {**told, "mountpoint": PropertyValue(value=f"/tank/photos/{name}", received=None, source="default")}
        for name, told in case.home.items()
    }
    case = replace(case, home=home, lost=frozenset({"own"}))
    assert settling.waiting_datasets(case) == ("tank/photos", "tank/photos/x")
    datasets = {
        name: replace(one, key_loaded=not name.startswith("own")) for name, one in case.world.target.datasets.items()
    }
    case = replace(case, world=replace(case.world, target=replace(case.world.target, datasets=datasets)))
    found = settling.plan(case)
    assert settling.waiting_datasets(case) == ()
    assert mounted(found) == ["tank/photos", "tank/photos/x"]
    assert not any("canmount" in line and "own" in line for line in lines(found)), "else each boot would complain"
    assert isinstance(found, Plan)
    assert [warning.partition(":")[0] for warning in found.warnings] == ["tank/photos/own", "tank/photos/own/y"]
    assert "nothing is destroyed" in found.warnings[0]


def test_a_key_that_a_restart_took_away_is_asked_for_after_the_restore_has_ended() -> None:
    case = keyed("", "x", "own", loaded=False)
    home = {
        name: {**told, "mountpoint": PropertyValue(value=f"/tank/photos/{name}", received=None, source="default")}
        for name, told in case.home.items()
    }
    root = f"{SOURCE.path}/own key"
    datasets = {
        name: replace(one, flags=None, encryption_root=root, key_loaded=name == "x")
        for name, one in case.world.target.datasets.items()
    }
    target = replace(case.world.target, datasets=datasets, above=frozenset({"tank"}))
    case = replace(case, home=home, already=True, world=replace(case.world, target=target))
    found = returning.plan(case, requested()).decision
    assert isinstance(found, NothingToDo)
    (warning,) = found.warnings
    assert warning == (
        "tank/photos is back, and its key is not loaded now, as after a restart: "
        "zfs load-key 'tank/photos/own key' && zfs mount tank/photos && zfs mount tank/photos/own"
    )


def test_what_lies_below_a_locked_one_waits_with_it() -> None:
    """Else `zfs mount -a` would mount it first, and its parent over it."""
    case = keyed("", "x", "own", root="77", x="77", own="5", loaded=False)
    home = {
        name: {**told, "mountpoint": PropertyValue(value=f"/tank/photos/{name}", received=None, source="default")}
        for name, told in case.home.items()
    }
    found = lines(settling.plan(replace(case, home=home)))
    assert found == [
        "zfs set poolferry:waits=on tank/photos tank/photos/own tank/photos/x",
        "zfs inherit poolferry:flags tank/photos/x tank/photos/own tank/photos",
    ]


def test_of_keys_in_files_the_place_tells() -> None:
    """Only what the key was loaded for has one."""
    case = keyed("", "x", "y", keyformat="raw")
    places = {"": "file:///k", "x": "prompt", "y": "file:///other"}
    told = {
        name: {"keylocation": PropertyValue(value=place, received=None, source="local")}
        for name, place in places.items()
    }
    case = replace(case, copied=told)
    first = lines(settling.plan(case))
    assert first == ["zfs set keylocation=file:///k tank/photos", "zfs set keylocation=file:///other tank/photos/y"]
    for name, one in told.items():
        case = replace(case, home={**case.home, name: {**case.home[name], **one}})
    assert heirs(settling.plan(case)) == ["zfs change-key -i tank/photos/x"]


# Chains.


def test_what_the_source_remembered_for_its_targets_is_made_again_by_guid() -> None:
    """As the kit tells: also for disks that are away. What no snapshot is there for, and what is not ours, is not."""
    ours, gone = (cursor_bookmark_name(ReplicationTargetId(pool=5, place="0000abcd"), guid) for guid in (A.guid, 99))
    marks = [["tank/photos#own", "1", "1"], [f"tank/photos#{ours}", "1", "1"], [f"tank/photos#{gone}", "99", "9"]]
    kit = json.dumps({"bookmarks": [*marks, [f"tank/photos2#{ours}", "1", "1"]]})
    dataset_request = DatasetRestoreRequest(to=SOURCE, kit=kit)
    assert cursors_to_restore(job(), dataset_request) == (("", ours, 1), ("", gone, 99))
    assert cursors_to_restore(job(), replace(dataset_request, to=COPY)) == ()
    case = replace(seen(copied={}, home={"": settled()}), cursors=cursors_to_restore(job(), dataset_request))
    found = settling.plan(case)
    assert isinstance(found, Plan)
    made = [step.work for step in found.steps if step.action.startswith("remember")]
    assert len(made) == 1
    assert str(made[0]).endswith(f"tank tank/photos @a {ours}")
