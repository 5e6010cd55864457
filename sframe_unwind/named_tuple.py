"""Named tuples whose classes take little time to define; to type checkers, :class:`typing.NamedTuple`.

:class:`typing.NamedTuple` compiles each annotation and the constructor when a class is defined, in 100 microseconds.
The first SFrame in a debugger defines a hundred classes.  Here, annotations stay strings, and the constructor is
compiled when it is first called, so a class takes 9 microseconds.  Its objects take as long as those of the other.
"""

from __future__ import annotations

from collections import _tuplegetter  # type: ignore[attr-defined]  # what typing.NamedTuple gives its classes, too
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any


class _Record(tuple):  # type: ignore[type-arg]  # the fields have different types
    """The methods that :func:`collections.namedtuple` gives each class."""

    __slots__ = ()
    _fields = ()  # without a type, which typing.get_type_hints would take for a field

    @classmethod
    def _make(cls, values: Iterable[Any]) -> _Record:
        made = tuple.__new__(cls, values)
        if len(made) != len(cls._fields):
            raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
        return made

    def _replace(self, /, **changes: Any) -> _Record:
        replaced = self._make(map(changes.pop, self._fields, self))
        if changes:
            raise ValueError(f"Got unexpected field names: {list(changes)!r}")
        return replaced

    __replace__ = _replace

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map('{}={!r}'.format, self._fields, self))})"

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)


class _Definition(type):
    """Makes a class of named tuples from the body of its definition."""

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:
        if not bases:
            return super().__new__(cls, name, bases, body)
        fields = tuple(body.get("__annotations__", ()))

        def first_call(called: type, /, *values: Any, **named: Any) -> Any:
            constructor = _constructor(made)
            made.__new__ = staticmethod(constructor)
            return constructor(called, *values, **named)

        members: dict[str, Any] = {
            **body,
            "__slots__": (),
            "__match_args__": fields,
            "__new__": first_call,
            "_fields": fields,
            "_field_defaults": {field: body[field] for field in fields if field in body},
        }
        members.update((field, _tuplegetter(number, None)) for number, field in enumerate(fields))
        made: Any = type(name, (_Record,), members)
        return made


def _constructor(made: Any) -> Any:
    """Return the function that :func:`collections.namedtuple` would make."""
    names = "".join(f"{field}, " for field in made._fields)
    constructor: Any = eval(f"lambda _class, {names}: _new(_class, ({names}))", {"_new": tuple.__new__})
    constructor.__name__, constructor.__qualname__ = "__new__", f"{made.__qualname__}.__new__"
    constructor.__defaults__ = tuple(made._field_defaults.values())
    return constructor


if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:

    class NamedTuple(metaclass=_Definition):
        """The base of the classes, whose fields are the annotated names of their bodies."""
