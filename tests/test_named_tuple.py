"""The named tuples of the package are those of :mod:`typing`, made in less time."""

from __future__ import annotations

import pickle
import typing

from sframe_unwind.named_tuple import NamedTuple


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
