"""A copy that has all that a stream could bring it besides data; and the programs where there is no such library."""

import subprocess
from collections.abc import Mapping

import pytest

from orchestrator.domain.plan import Command
from orchestrator.engines.zfs.commands.library import library_function, plain_copies_commands
from orchestrator.engines.zfs.library import kit_answers, plain_copies
from orchestrator.engines.zfs.library.bindings import Unreadable, Value
from orchestrator.engines.zfs.survey.plain_copies import PlainCandidate

NEVER = frozenset({"mountpoint", "quota"})
Own = Mapping[str, Value]


class Library:
    """Answers for the datasets t and v and the snapshots of t."""

    def __init__(
        self, own: Own, received: Own, in_force: frozenset[str] = frozenset(), snapshot: Own | None = None
    ) -> None:
        self._own: dict[str, Own] = {"t": own, "t@a": {}, "t@b": snapshot or {}}
        self._received = received, in_force

    def own_properties(self, name: str) -> Own:
        if name not in self._own:
            raise Unreadable(name)
        return self._own[name]

    def received_properties(self, name: str) -> tuple[Own, frozenset[str]]:
        if name != "v":
            raise Unreadable(name)
        return self._received


FREE: dict[str, Value] = {"compression": 15, "user:note": "a\nb"}


@pytest.mark.parametrize(
    ("library", "plain"),
    [
        (Library({}, {}), True),
        (Library(FREE, FREE, frozenset(FREE)), True),
        (Library(FREE, {}), False),  # something new
        (Library({}, FREE), False),  # something gone at the source
        (Library(FREE, FREE | {"compression": 2}), False),
        (Library(FREE, FREE | {"compression": "15"}), False),
        (Library({"quota": 9}, {}), True),  # what no copy takes is no difference
        (Library({"quota": 9}, {"quota": 9}), True),  # nor is one that it has, but not in force
        (Library({"quota": 9}, {"quota": 9}, frozenset({"quota"})), False),
        (Library({"quota": 9}, {"quota": 8}), False),
        (Library({}, {"quota": 9}), False),
        (Library({"mountpoint": "/a"}, {"mountpoint": "/a"}), True),  # received, and put out of force
        (Library({"mountpoint": "/a"}, {"mountpoint": "/a"}, frozenset({"mountpoint"})), False),
        (Library({}, {}, snapshot={"user:note": "x"}), False),
    ],
)
def test_a_copy_is_plain_only_where_a_stream_would_change_nothing_but_data(library: Library, *, plain: bool) -> None:
    assert plain_copies._is_plain(library, NEVER, "t", "v", "t@a", "t@b") is plain  # type: ignore[arg-type]


@pytest.mark.parametrize("names", [("gone", "v"), ("t", "gone"), ("t", "v", "t@gone")])
def test_of_what_cannot_be_read_nothing_is_known(names: tuple[str, ...]) -> None:
    source, copy, *snapshots = names
    assert not plain_copies._is_plain(Library({}, {}), NEVER, source, copy, *snapshots)  # type: ignore[arg-type]


def test_pairs_come_apart_as_they_were_put_together() -> None:
    given = [
        PlainCandidate(f"{number}", f"t/{number} a", f"v/{number}", (f"t/{number} a@b",) * number, frozenset())
        for number in range(1, 4)
    ]
    ((sources, command),) = plain_copies_commands(given, ())
    assert sources == ("t/1 a", "t/2 a", "t/3 a")
    assert list(plain_copies._pairs(command.argv[5:])) == [[one.source, one.copy, *one.snapshots] for one in given]
    many = [one._replace(name=f"{n}", source=f"t/{n}{'x' * 200}") for n in range(900) for one in given[:1]]
    batches = list(plain_copies_commands(many, ()))
    assert len(batches) > 1
    assert [source for sources, _ in batches for source in sources] == [one.source for one in many]


def ended(command: Command) -> subprocess.CompletedProcess[str]:
    environment = dict(command.environment)
    return subprocess.run(
        command.argv, input="nosuchpool\n", capture_output=True, text=True, env=environment, check=False
    )


def test_without_the_library_or_a_pool_nothing_is_said() -> None:
    pair = PlainCandidate("", "nosuchpool", "nosuchpool/v", (), frozenset())
    ((_, command),) = plain_copies_commands([pair], ())
    done = ended(command)
    assert (done.returncode, done.stdout, done.stderr) in ((1, "", ""), (0, "=end\n", ""))
    for name in ("nosuchpool", "nosuchpool@a"):
        asked = subprocess.run(
            ["sh", "-c", f"{library_function()}echo {name} | ask_library"],
            input="nosuchpool\n",
            capture_output=True,
            text=True,
            check=False,
        )
        assert (asked.returncode, asked.stdout, asked.stderr) == (1, "", "")


def test_a_kit_is_told_what_was_received_granted_and_held() -> None:
    class KitLibrary(Library):
        def grants(self, name: str) -> tuple[str, ...]:
            return ("p", "t") if name == "t" else ("p",)

        def holds(self, _: str) -> dict[str, int]:
            return {"keep": 7, "a\nt@b\tkeep": 7, "x\ty": 7, "a b": 8}

        def received_properties(self, name: str) -> tuple[Own, frozenset[str]]:
            return {"user:note": "a\nheld\tt@b\tno\t1", "atime": 1} if name == "t" else {}, frozenset()

    answers = list(kit_answers._answers(KitLibrary({}, {}), ["p", "t", "t@a"]))  # type: ignore[arg-type]
    assert answers == [
        "received\tatime", "received\tuser:note", "granted\tp", "granted\tt", "held\tt@a\tkeep\t7", "held\tt@a\ta b\t8",
    ]  # fmt: skip
