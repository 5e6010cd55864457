"""Compares our named tuples with those of :mod:`typing`, and counts what is compiled to define them."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
import typing
from pathlib import Path
from typing import Any, Callable

import pytest

from sframe_unwind.named_tuple import NamedTuple
from tests.hanging import HANG

CHECKOUT = Path(__file__).resolve().parents[1]


class Ours(NamedTuple):
    """A frame."""

    pc: int
    name: str | None = None
    """The function."""
    kinds: tuple[str, ...] = ("plain",)

    @property
    def is_named(self) -> bool:
        return self.name is not None

    def again(self) -> Any:
        return self._replace(pc=self.pc + 1)

    @classmethod
    def unnamed(cls, pc: int) -> Any:
        return cls(pc)


class Theirs(typing.NamedTuple):
    """A frame."""

    pc: int
    name: str | None = None
    """The function."""
    kinds: tuple[str, ...] = ("plain",)

    @property
    def is_named(self) -> bool:
        return self.name is not None

    def again(self) -> Any:
        return self._replace(pc=self.pc + 1)

    @classmethod
    def unnamed(cls, pc: int) -> Any:
        return cls(pc)


class OursOfOne(NamedTuple):
    only: int


class TheirsOfOne(typing.NamedTuple):
    only: int


class OursDerived(Ours):
    """A derived class."""


class TheirsDerived(Theirs):
    """A derived class."""


PAIRS = {"class": (Ours, Theirs), "derived": (OursDerived, TheirsDerived)}
USES: dict[str, Callable[[Any], Any]] = {
    "positions": lambda made: made(1, "main", ()),
    "keywords": lambda made: made(name="main", pc=1),
    "defaults": lambda made: (made(1).name, made(1).kinds),
    "made of values": lambda made: made._make([1, None, ()]),
    "replaced": lambda made: made(1)._replace(name="main", kinds=("a", "b")),
    "dictionary": lambda made: made(1)._asdict(),
    "text": lambda made: repr(made(1, "it's")).partition("(")[1:],
    "unpacked": lambda made: [*made(1, "main")],
    "index": lambda made: made(1, "main")[1],
    "equal": lambda made: (made(1) == made(1), made(1) == (1, None, ("plain",)), made(1) == made(2)),
    "ordered": lambda made: sorted([made(2), made(1)]),
    "hash": lambda made: hash(made(1)),
    "property": lambda made: (made(1).is_named, made(1, "main").is_named),
    "method": lambda made: made(1).again(),
    "class method": lambda made: made.unnamed(3),
    "of its class": lambda made: (type(made(1)) is made, type(made(1)._replace(pc=2)) is made, type(made(1)) is tuple),
    "pickled": lambda made: (pickle.loads(pickle.dumps(made(1, "main"))), type(pickle.loads(pickle.dumps(made(1))))),
    "copied": lambda made: (copy.copy(made(1)), copy.deepcopy(made(1))),
    "fields": lambda made: (
        made._fields,
        made._field_defaults,
        getattr(made, "__match_args__", made._fields),
    ),  # since 3.10
    "docstring": lambda made: made.__doc__,
    "names": lambda made: (made.__module__, made.__new__.__name__),
    "types": typing.get_type_hints,
    "without a dictionary": lambda made: hasattr(made(1), "__dict__"),
    "without a call": lambda made: tuple.__new__(made, (1, "main", ())),
    "too few": lambda made: made(),
    "too many": lambda made: made(1, 2, 3, 4),
    "an unknown name": lambda made: made(1, color=2),
    "a value twice": lambda made: made(1, pc=2),
    "too few values": lambda made: made._make([1]),
    "an unknown change": lambda made: made(1)._replace(color=2),
    "an assignment": lambda made: setattr(made(1), "pc", 2),
    "another attribute": lambda made: setattr(made(1), "color", 2),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("pair", PAIRS)
def test_a_use_has_the_result_of_typing(pair: str, use: str) -> None:
    ours, theirs = PAIRS[pair]
    assert _result(USES[use], ours) == _result(USES[use], theirs)


def test_one_field() -> None:
    assert [*OursOfOne(1)] == [*TheirsOfOne(1)]
    assert repr(OursOfOne(1)) == "OursOfOne(only=1)"


def test_a_class_is_called_for_the_first_time_in_each_way() -> None:
    def made() -> Any:
        class Pair(NamedTuple):
            first: int
            second: int = 2

        return Pair

    assert made()(1) == made()(first=1) == made()(second=2, first=1) == made()._make((1, 2)) == (1, 2)
    with pytest.raises(TypeError, match=r"__new__\(\) missing 1 required positional argument: 'first'"):
        made()()


def _result(use: Callable[[Any], Any], made: Any) -> Any:
    """Return what a use gives, or its error, without the class's own name."""
    try:
        result = use(made)
    except (TypeError, ValueError, AttributeError) as error:
        return _plain(str(error))  # Python 3.13 has another type for one of them
    return _plain(repr(result))


def _plain(text: str) -> str:
    return re.sub(r"\b(?:Ours|Theirs)", "", text)


def test_the_packages_use_no_others() -> None:
    users = [
        path
        for package in ("sframe_unwind", "gdb_plugin", "lldb_plugin")
        for path in (CHECKOUT / package).rglob("*.py")
        if path.name != "named_tuple.py"  # there, for type checkers
        if re.search(r"^ *from typing import .*\bNamedTuple\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert users == []


COMPILED = """
from __future__ import annotations
import sys
from sframe_unwind.named_tuple import NamedTuple
compiled = []
sys.addaudithook(lambda event, arguments: event == "compile" and compiled.append(arguments[0]))
class Pair(NamedTuple):
    first: int
    second: "int | None" = None
print(len(compiled))
Pair(1), Pair(2)
print(len(compiled))
"""


def test_defining_a_class_compiles_nothing() -> None:
    """The constructor is compiled once, by the first call."""
    done = subprocess.run(
        [sys.executable, "-c", COMPILED], cwd=CHECKOUT, check=True, capture_output=True, text=True, timeout=HANG
    )
    assert done.stdout.split() == ["0", "1"]
