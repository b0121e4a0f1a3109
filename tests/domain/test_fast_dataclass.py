"""The quick dataclass does what the library's does."""

import copy
import dataclasses
import pickle
import subprocess
import sys
from typing import Any

import pytest

from orchestrator.domain import fast_dataclass as quick


@quick.dataclass(frozen=True, slots=True, kw_only=True)
class Quick:
    """A value."""

    name: str
    size: int = 3
    parts: tuple[str, ...] = quick.field(default_factory=tuple)

    def __str__(self) -> str:
        return f"<{self.name}>"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """The same by the library."""

    name: str
    size: int = 3
    parts: tuple[str, ...] = dataclasses.field(default_factory=tuple)


def test_it_looks_and_compares_as_the_librarys() -> None:
    one, other = Quick(name="a"), Quick(name="a", size=3, parts=())
    assert repr(one) == repr(Slow(name="a")).replace("Slow", "Quick")
    assert (one == other, hash(one) == hash(other), one == Quick(name="b")) == (True, True, False)
    another: object = Slow(name="a")
    assert one != another
    assert str(one) == "<a>"
    assert [each.name for each in quick.fields(one)] == [each.name for each in dataclasses.fields(Slow)]
    assert not hasattr(one, "__dict__")


def test_it_is_frozen() -> None:
    one: Any = Quick(name="a")
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.name = "b"
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.new = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        del one.name
    assert one.name == "a"


@pytest.mark.parametrize("wrong", [{}, {"name": "a", "colour": "red"}])
def test_missing_and_unknown_fields_are_refused(wrong: dict[str, Any]) -> None:
    for cls in (Quick, Slow):
        with pytest.raises(TypeError):
            cls(**wrong)
    with pytest.raises(TypeError):
        Quick("a")  # type: ignore[call-arg]


def test_it_is_replaced_copied_and_pickled() -> None:
    one = Quick(name="a", parts=("x",))
    assert quick.replace(one, name="b") == Quick(name="b", parts=("x",))
    with pytest.raises(TypeError):
        quick.replace(one, colour="red")  # type: ignore[call-arg]
    assert copy.deepcopy(one) == one
    assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301 - made here
    assert dataclasses.asdict(one) == {"name": "a", "size": 3, "parts": ("x",)}


@quick.dataclass(frozen=True, slots=True, kw_only=True)
class Larger(Quick):
    """With the fields of another, one of them anew."""

    size: int = 5
    kind: str = quick.field(metadata={"key": "kind"})


def test_it_inherits() -> None:
    one = Larger(name="a", kind="k")
    assert (one.name, one.size, one.kind, str(one)) == ("a", 5, "k", "<a>")
    assert [each.name for each in quick.fields(Larger)] == ["name", "size", "parts", "kind"]
    assert [each.default for each in quick.fields(Quick)][1] == 3


def test_the_library_knows_it() -> None:
    one = Larger(name="a", kind="k")
    assert dataclasses.is_dataclass(one)
    assert [(each.name, each.type) for each in dataclasses.fields(one)] == [
        (each.name, each.type) for each in quick.fields(one)
    ]
    assert dataclasses.fields(one)[3].metadata == {"key": "kind"}
    assert dataclasses.replace(one, name="b") == quick.replace(one, name="b")
    assert dataclasses.asdict(Quick(name="a")) == {"name": "a", "size": 3, "parts": ()}


@quick.dataclass(frozen=True, slots=True, kw_only=True)
class Often(Larger):
    """Made so often that it gets an `__init__` of its own."""

    rest: list[str] = quick.field(default_factory=list)


@quick.dataclass(frozen=True, slots=True, kw_only=True)
class Empty:
    """Without a field."""


def test_one_without_fields_is_made_often_too() -> None:
    assert len({Empty() for _ in range(1000)}) == 1
    with pytest.raises(TypeError):
        Empty(name="a")  # type: ignore[call-arg]


def test_made_often_it_is_made_in_its_own_way_and_is_the_same() -> None:
    first, shared = Often(name="a", kind="k"), vars(Often)["__init__"]
    several = [Often(name="a", kind="k") for _ in range(1000)]
    assert vars(Often)["__init__"] is not shared
    assert vars(Larger)["__init__"] is shared
    assert {repr(one) for one in several} == {repr(first)}
    assert all(one == first for one in several)
    several[-1].rest.append("x")
    assert several[-2].rest == []
    changed = quick.replace(several[-2], name="b", size=7)
    assert (changed.name, changed.size, changed.parts, changed.kind) == ("b", 7, (), "k")
    assert pickle.loads(pickle.dumps(changed)) == dataclasses.replace(changed) == changed  # noqa: S301 - made here
    frozen: Any = several[-2]
    with pytest.raises(dataclasses.FrozenInstanceError):
        frozen.name = "b"
    with pytest.raises(TypeError, match=r"Often.*kind"):
        Often(name="a")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Often.*colour"):
        Often(name="a", kind="k", colour="red")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Often("a")  # type: ignore[call-arg]


def test_it_brings_nothing_heavy() -> None:
    told = subprocess.run(
        [sys.executable, "-c", "import sys, orchestrator.domain.fast_dataclass; print('dataclasses' in sys.modules)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert told.stdout == "False\n"


def test_anything_else_is_left_to_the_library() -> None:
    with pytest.raises(TypeError):
        quick.dataclass(frozen=False, slots=True, kw_only=True)


def test_a_class_may_keep_a_method_of_its_own() -> None:
    @quick.dataclass(frozen=True, slots=True, kw_only=True)
    class Loud:
        name: str

        def __repr__(self) -> str:
            return self.name.upper()

    assert repr(Loud(name="a")) == "A"
