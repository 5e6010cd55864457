"""The named tuples of the package are those of :mod:`typing`, made in less time."""

from __future__ import annotations

import ast
import pickle
import typing
from pathlib import Path

import pytest

from sframe_unwind.named_tuple import NamedTuple

CHECKOUT = Path(__file__).resolve().parents[1]


class Ours(NamedTuple):
    """A point."""

    x: int
    y: int = 2
    name: str = ""

    @property
    def total(self) -> int:
        """The sum."""
        return self.x + self.y


class Theirs(typing.NamedTuple):
    """A point."""

    x: int
    y: int = 2
    name: str = ""

    @property
    def total(self) -> int:
        """The sum."""
        return self.x + self.y


def test_they_have_all_that_those_of_typing_have() -> None:
    assert set(vars(Ours)) ^ set(vars(Theirs)) <= {"__orig_bases__"}
    for name in ("__doc__", "__module__", "_fields", "_field_defaults", "__match_args__", "__bases__"):
        assert getattr(Ours, name, None) == getattr(Theirs, name, None), name
    assert typing.get_type_hints(Ours) == typing.get_type_hints(Theirs)
    assert (Ours.__name__, Ours.__qualname__) == ("Ours", "Ours")
    ours, theirs = Ours(1), Theirs(1)
    assert (tuple(ours), tuple(theirs)) == ((1, 2, ""), (1, 2, ""))
    assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
    assert (ours.total, ours._replace(x=5).total) == (3, 7)
    assert pickle.loads(pickle.dumps(ours)) == ours


def test_their_types_are_not_compiled() -> None:
    assert Ours.__annotations__ == {"x": "int", "y": "int", "name": "str"}


@pytest.mark.parametrize("package", ["sframe_unwind", "gdb_plugin", "lldb_plugin"])
def test_no_other_module_has_those_of_typing(package: str) -> None:
    having = {
        path.relative_to(CHECKOUT).as_posix()
        for path in (CHECKOUT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "typing"
        if any(alias.name == "NamedTuple" for alias in node.names)
    }
    assert having <= {"sframe_unwind/named_tuple.py"}
