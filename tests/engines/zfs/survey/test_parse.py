"""Listings as the programs print them, and what is no listing at all."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.place import Location
from orchestrator.engines.zfs.model import (
    Bookmark,
    ChangedEntry,
    DatasetType,
    ReceiveProcess,
    SendFlags,
    SideSurvey,
    Snapshot,
)
from orchestrator.engines.zfs.plan.hold_names import ReplicationTargetId, cursor_bookmark_name, hold_bookmark_name
from orchestrator.engines.zfs.survey.parse import (
    DelegatedRights,
    UnreadableListing,
    find_holds,
    make_side,
    parse_changes,
    parse_newest,
    parse_number,
    parse_plain,
    parse_points,
    parse_receiving,
    parse_rights,
    parse_sizes,
    parse_survey,
    parse_version,
)
from tests.engines.zfs.sides import POOL, A, B, dataset
from tests.engines.zfs.survey_text import HEAD, rows

ROOT = Location(path="vault/r/p")
PLAIN = "encryption=off createtxg=12 origin=- encryptionroot=- keystatus=-"


def seen(text: str, root: Location = ROOT) -> SideSurvey:
    return make_side(parse_survey(text.encode().split(b"\n")), root)


def test_a_side_as_it_is() -> None:
    text = (
        HEAD + "=datasets\n"
        + rows("vault/r/p", available="872278528", poolferry__flags="Lce|local", written="0", mounted="yes")
        + rows("vault/r/p/a b", "receive_resume_token=1-a-b-c inconsistent=1 written=24576", guid="6")
        + rows("vault/r/p/v", type="volume", origin="vault/r/p@x", encryption="aes-256-gcm", encryptionroot="vault/r/p/v",
               keystatus="available", poolferry__flags="Lce|inherited from vault/r/p", guid="7")
        + "=snapshots\nvault/r/p@two\t2\t13\nvault/r/p@one @:#x\t1\t12\nvault/r/p#kept\t1\t12\nvault/r/p/v@z\t9\t9\n"
        + "vault/r/p/new@since\t1\t1\n=end\n"
    )  # fmt: skip
    side = seen(text)
    assert (side.pool_guid, side.version, side.programs, side.sudo, side.mbuffer) == (
        10706450245829482859, (2, 3, 9), True, False, True,
    )  # fmt: skip
    assert (side.available, side.above, side.inherits_encryption) == (872278528, frozenset({"vault", "vault/r"}), False)
    assert set(side.datasets) == {"", "a b", "v"}
    root, cut, volume = (side.datasets[name] for name in ("", "a b", "v"))
    assert root.snapshots == (
        Snapshot(name="one @:#x", guid=1, createtxg=12), Snapshot(name="two", guid=2, createtxg=13),
    )  # fmt: skip
    assert root.bookmarks == (Bookmark(name="kept", guid=1, createtxg=12),)
    assert (root.flags, root.written, root.mounted, root.partial, root.token) == (SendFlags(), 0, True, False, None)
    assert (cut.token, cut.partial, cut.written, cut.snapshots, cut.flags) == ("1-a-b-c", True, 24576, (), None)
    assert (volume.kind, volume.origin, volume.encrypted, volume.key_loaded) == (
        DatasetType.VOLUME,
        "vault/r/p@x",
        True,
        True,
    )
    assert volume.encryption_root == "vault/r/p/v"
    assert volume.flags is None  # inherited: it is not this dataset's own


@pytest.mark.parametrize(
    ("told", "is_one"),
    [
        ("on|local", True),
        ("on|inherited from vault", False),
        ("on|received", False),
        ("off|local", False),
        ("-", False),
    ],
)
@pytest.mark.parametrize("snapshots", ["", "vault/r/p@a\t1\t2\n"])
def test_a_placeholder_is_marked_on_itself_and_empty(told: str, snapshots: str, *, is_one: bool) -> None:
    text = f"{HEAD}=datasets\n{rows('vault/r/p', poolferry__placeholder=told)}=snapshots\n{snapshots}=end\n"
    found = seen(text).datasets[""]
    assert (found.placeholder, found.bare) == (is_one and not snapshots, is_one and bool(snapshots))


def test_a_root_that_is_not_there() -> None:
    look = parse_survey(
        f"{HEAD}=datasets\n=absent\n=above\nvault\t99\toff\nvault/r\t55\taes-256-gcm\n=end".encode().split(b"\n")
    )
    assert (look.there, look.whole) == (False, True)
    side = make_side(look, ROOT)
    assert (side.datasets, side.above, side.available, side.inherits_encryption) == (
        {},
        frozenset({"vault", "vault/r"}),
        55,
        True,
    )


def test_what_lies_above_is_told_beside_a_root_that_is_there() -> None:
    text = f"{HEAD}=above\nvault\t99\taes-256-gcm\n=datasets\n{rows('vault/r/p', available='7')}=snapshots\n=end\n"
    side = seen(text)
    assert (side.available, side.inherits_encryption, side.above) == (7, True, frozenset({"vault", "vault/r"}))


def test_a_pool_that_is_not_there() -> None:
    look = parse_survey(b"=here 1000 sudo no 2.1.11\n=pool 0 ABSENT".split(b"\n"))
    assert (look.health, look.pool_guid, look.root, look.sudo, look.mbuffer) == ("ABSENT", 0, False, True, False)
    side = make_side(look, ROOT)
    assert (side.datasets, side.above, side.available) == ({}, frozenset(), None)
    assert side.programs  # through sudo


def test_times_are_kept_by_guid_when_they_are_told() -> None:
    text = (
        f"{HEAD}=datasets\n{rows('vault/r/p')}=snapshots\nvault/r/p@a\t1\t2\t1700000000\nvault/r/p#b\t7\t2\t1600000000"
    )
    assert parse_survey(text.encode().split(b"\n")).created == {1: datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)}


@pytest.mark.parametrize(
    "text",
    [
        "", "nonsense", HEAD.splitlines()[0], f"{HEAD}=datasets\nvault\tguid",
        f"{HEAD}=datasets\n=snapshots\nvault@a\t1", f"{HEAD}=datasets\n=snapshots\nvault@a\tx\t1",
        f"{HEAD}=datasets\n=above\nvault\n", f"{HEAD}=datasets\nvault\tguid\t5\t-",
    ],
)  # fmt: skip
def test_what_is_no_listing_is_never_taken_for_an_empty_one(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # Unreadable is one
        seen(text)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 2**64 - 1), st.integers(0, 99)), max_size=30))
def test_snapshots_come_by_createtxg_whatever_the_listing(found: list[tuple[int, int, int]]) -> None:
    lines = "".join(f"vault/r/p@s{number}\t{guid}\t{txg}\n" for number, guid, txg in found)
    side = seen(f"{HEAD}=datasets\n{rows('vault/r/p')}=snapshots\n{lines}=end\n")
    told = [snapshot.createtxg for snapshot in side.datasets[""].snapshots]
    assert told == sorted(txg for _, _, txg in found)
    newest = parse_newest(lines.encode().splitlines())
    assert [snapshot.createtxg for snapshot in newest.get("vault/r/p", ())] == told


@pytest.mark.parametrize(
    ("text", "version"),
    [("2.3.9-0+deb13u1", (2, 3, 9)), ("zfs-2.1.11-1+deb12u1", (2, 1, 11)), ("2.4", (2, 4)), ("unknown", ())],
)
def test_versions(text: str, version: tuple[int, ...]) -> None:
    assert parse_version(text) == version


@pytest.mark.parametrize(("text", "number"), [("5", 5), ("-1", -1), ("-", None), ("", None), ("none", None)])
def test_numbers(text: str, number: int | None) -> None:
    assert parse_number(text) == number


def test_held_snapshots_are_those_whose_bookmark_says_so() -> None:
    ours, other = ReplicationTargetId(pool=POOL, place="0badcafe"), ReplicationTargetId(pool=POOL, place="00000001")
    marks = tuple(
        Bookmark(name=name, guid=guid, createtxg=1)
        for name, guid in (
            (hold_bookmark_name(ours, A.guid), A.guid), (hold_bookmark_name(other, B.guid), B.guid), (cursor_bookmark_name(ours, B.guid), B.guid),
            (hold_bookmark_name(ours, 99), 99), ("held", A.guid), (hold_bookmark_name(ReplicationTargetId(pool=POOL), B.guid), B.guid),
        )
    )  # fmt: skip
    datasets = {
        "": dataset("", A, B, bookmarks=marks),
        "x": dataset("x", B, bookmarks=marks[3:5]),
        "y": dataset("y", A),
    }
    assert find_holds(datasets, ours) == {"": ("a",)}
    assert find_holds(datasets, other) == find_holds(datasets, ReplicationTargetId(pool=POOL)) == {"": ("b",)}


def test_who_receives() -> None:
    lines = (
        "=process 10\n/sbin/zfs\nreceive\n-s\n-x\npoolferry:receive\nvault/r/p/a b\n=process 11\nzfs\nrecv\nvault/r/p\n=process 12\nzfs\nsend\n"
        "vault/r/p\n=process 13\nsudo\nzfs\nreceive\nvault/r/p\n=process 14\nzfs\nreceive\nvault/r/pp\n=process 15\n"
        "=process 16\ngrep\nreceive\n=process 17\nzfs\nreceive\n-s\n-u\n-s\n-u\nvault/r/p/c\n=process 18\nzfs\nreceive\n-s\n-u\nvault/r/p/d"
    ).splitlines()
    assert parse_receiving(lines, "vault/r/p") == {
        "a b": ReceiveProcess(pid=10, ours=True),
        "": ReceiveProcess(pid=11, ours=False),
        "c": ReceiveProcess(pid=17, ours=True),
        "d": ReceiveProcess(pid=18, ours=False),
    }
    assert parse_receiving([], "vault/r/p") == {}


def test_which_copies_need_no_properties() -> None:
    assert parse_plain(["0", "2", "9", "x", "=end"], ("a", "b", "c")) == ("a", "c")
    assert parse_plain(["=end"], ("a",)) == ()
    for cut in ([], ["0"], ["0", ""]):
        with pytest.raises(ValueError, match="too early"):
            parse_plain(cut, ("a",))


def test_sizes_that_cannot_be_are_unknown() -> None:
    lines = ["full\tt@a\t9", "size\t624", "size\t-", "size\t1152921504606846976", "size\t-5", "size", "size\t0"]
    assert parse_sizes(lines) == [624, None, None, None, None, 0]


def test_points() -> None:
    told = [("a b", datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC))]
    assert list(parse_points(["v/x@a b\t1700000000"])) == told
    with pytest.raises(UnreadableListing):
        list(parse_points(["v/x@a"]))


def test_rights_that_were_delegated_to_us() -> None:
    lines = (
        "=user ferry\n=groups ferry backup\n=resumable active\n=at vault\n---- Permissions on vault ----\n"
        "Local+Descendent permissions:\n\tuser ferry create,receive\n\tuser other destroy\n\tgroup backup hold\n"
        "\tgroup wheel rollback\n\teveryone mount\n"
    ).splitlines()
    rights = frozenset({"create", "receive", "hold", "mount"})
    assert parse_rights(lines) == DelegatedRights(
        user="ferry", read_only=False, resumable="active", dataset="vault", rights=rights,
        origins=frozenset((right, "vault") for right in rights),
    )  # fmt: skip
    assert parse_rights(lines).granted_on("hold") == ("vault",)
    assert parse_rights(["=readonly on"]).read_only


def test_changes_are_read_below_their_folder_and_only_when_whole() -> None:
    said = (
        "=dataset v/c d\n=at /mnt/c\\040d\nM\t/\t/mnt/c\\0040d/\n+\t/\t/mnt/c\\0040d/kid\nR\tF\t/mnt/c\\0040d/a\t/mnt/c\\0040d/b\n"
        "M\tF\t/mnt/c\\0040d/n\\0303\\0244\t(+1)\n=end\n=dataset v/cut\n=at /\nM\tF\t/x\n=dataset v/same\n=at /\n=end\n"
    )
    assert parse_changes(said.encode().split(b"\n")) == {
        "v/c d": (
            ChangedEntry(how="M", folder=True, path=""),
            ChangedEntry(how="+", folder=True, path="kid"),
            ChangedEntry(how="R", folder=False, path="a"),
            ChangedEntry(how="M", folder=False, path="n\u00e4"),
        ),
        "v/same": (),
    }
    with pytest.raises(ValueError, match="not below"):
        parse_changes([b"=dataset v", b"=at /mnt/a", b"M\tF\t/mnt/ab"])


def test_text_of_a_login_is_named_as_what_it_is() -> None:
    said = f"WELCOME to backup\n\n{HEAD}=datasets\n=absent\n=end\n".encode()
    with pytest.raises(
        UnreadableListing, match="a login there prints text of its own before every answer, 'WELCOME to"
    ):
        parse_survey(said.split(b"\n"))
    with pytest.raises(UnreadableListing, match="not as zfs prints it: 'sh: no such'"):
        parse_survey([b"sh: no such", b"thing"])
    with pytest.raises(UnreadableListing, match="not as zfs prints it: 'talk'"):
        parse_survey(f"{HEAD}talk\n".encode().split(b"\n"))


def block(name: str, guid: int, mark: str = "-", source: str = "-", *, at: str = "flags") -> str:
    """One dataset with a property of ours that its owner wrote, the last one or the one before."""
    return rows(name, guid=str(guid), **{f"poolferry__{at}": f"{mark}|{source}"})


# Pieces of what an owner of vault/r/p/eve may write into the value of a property.
FORGED = (
    "x", "\t", "\n", "\tlocal", "\t-", " ", "=absent", "=absent \t", "=snapshots", "=snapshots \t", "=end", "=end \t", "=marks", "=pool 0 FAULTED",
    "=here 0 no no 2", "=above", "vault/r/p/ann\tpoolferry:flags\tLceb\tlocal", "vault/r/p/fay\tguid\t9\t-", "vault/r/p/ann@b\t9\t99",
    "vault/r/p/ann#b\t9\t99\tlocal", "other\tguid\t9\t-", block("vault/r/p/fay", 9).rstrip("\n"), block("vault/r/p/new", 9).rstrip("\n"),
)  # fmt: skip


@pytest.mark.parametrize("at", ["flags", "placeholder", "waits"])
@pytest.mark.parametrize("last", [False, True])
def test_a_value_makes_no_dataset_that_is_not_there(last: bool, at: str) -> None:
    """The whole lines of one, behind the first line of a value."""
    for mark, source in (("-", "-"), ("on", "local"), ("-", "-\nvault/r/p/y\ttype\tfilesystem\t-")):
        value = f"x\tlocal\n{block('vault/r/p/ghost', 9, mark, source, at='waits').rstrip()}".removesuffix("\tlocal")
        text = block("vault/r/p", 5) + block("vault/r/p/eve", 7, value, "local", at=at)
        with pytest.raises(UnreadableListing, match=r"a value of several lines|not as zfs prints it"):
            seen(f"{HEAD}=datasets\n{text}{'' if last else block('vault/r/p/fay', 8)}=snapshots\n=end\n")


@pytest.mark.parametrize("at", ["flags", "placeholder", "waits"])
@pytest.mark.parametrize("last", [False, True])
@given(value=st.lists(st.sampled_from(FORGED), max_size=8).map("".join))
def test_a_value_of_several_lines_is_no_listing_or_says_nothing_of_others(last: bool, at: str, value: str) -> None:
    text = (
        HEAD + "=datasets\n" + block("vault/r/p", 5) + block("vault/r/p/ann", 6) + block("vault/r/p/eve", 7, value, "local", at=at)
        + ("" if last else block("vault/r/p/fay", 8)) + "=snapshots\nvault/r/p/ann@a\t1\t12\n=end\n"
    )  # fmt: skip
    try:
        side = seen(text)
    except ValueError:
        return
    assert side.pool_guid == 10706450245829482859
    assert {"", "ann", "eve", "fay"}.issuperset(side.datasets)
    assert [(name, side.datasets[name].guid, side.datasets[name].flags) for name in ("", "ann")] == [
        ("", 5, None),
        ("ann", 6, None),
    ]
    assert [one.name for each in side.datasets.values() for one in each.snapshots] == ["a"]
    assert not any(each.bookmarks for each in side.datasets.values())
    assert last or (side.datasets["fay"].guid, side.datasets["fay"].flags) == (8, None)


def test_a_property_that_is_told_twice_or_apart_from_the_others_is_no_answer_of_zfs() -> None:
    first, *others = rows("vault/r/p").splitlines(keepends=True)
    for text, why in (
        (first + first + "".join(others), "is told twice"),
        ("".join(others) + rows("vault/r/p/x") + first, "do not stand together"),
    ):
        with pytest.raises(UnreadableListing, match=f"{why}: a property has a value of several lines"):
            seen(f"{HEAD}=datasets\n{text}=snapshots\n=end\n")
