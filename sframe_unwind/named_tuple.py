"""``NamedTuple`` as in :mod:`typing`, made in less time.

:mod:`typing` compiles the type of each field, which a type checker has checked before.  That is three fifths of the
time that making such a class takes, and a command makes a hundred of them when it starts.
"""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:

    class _Maker(type):
        """The metaclass of :class:`NamedTuple`; the classes that it makes are tuples, and not its instances."""

        def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, object]) -> type:  # noqa: ARG004
            fields = namespace.pop("__annotations__", {})
            defaults = [namespace.pop(field) for field in fields if field in namespace]
            made = namedtuple(name, fields, defaults=defaults, module=namespace.pop("__module__"))
            made.__annotations__ = made.__new__.__annotations__ = fields
            for attribute, value in namespace.items():
                setattr(made, attribute, value)
            return made

    NamedTuple = type.__new__(_Maker, "NamedTuple", (), {})
