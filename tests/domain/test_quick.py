"""The quick dataclass does what the library's does. Pure."""

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from orchestrator.domain import quick


@quick.dataclass(frozen=True, slots=True, kw_only=True)
class Quick:
    """A value."""

    name: str
    size: int = 3
    parts: tuple[str, ...] = dataclasses.field(default_factory=tuple)

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
    assert [field.name for field in dataclasses.fields(one)] == [field.name for field in dataclasses.fields(Slow)]
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
    assert dataclasses.replace(one, name="b") == Quick(name="b", parts=("x",))
    assert copy.deepcopy(one) == one
    assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301 - made here
    assert dataclasses.asdict(one) == {"name": "a", "size": 3, "parts": ("x",)}


def test_anything_else_is_left_to_the_library() -> None:
    with pytest.raises(TypeError):
        quick.dataclass(frozen=False, slots=True, kw_only=True)
