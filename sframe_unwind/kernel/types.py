"""Layouts of the kernel's structures, from its debug information, because offsets depend on the configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable, Optional

from sframe_unwind.errors import KernelError
from sframe_unwind.named_tuple import NamedTuple


class Member(NamedTuple):
    """A member of a structure or union."""

    name: str
    """Empty: an anonymous structure or union."""
    offset: int
    """Offset in bytes."""
    type: Type


class Type(NamedTuple):
    """A type of the kernel."""

    size: int
    """Size in bytes."""
    members: Callable[[], Sequence[Member]]
    """Returns the members; empty: not a structure."""
    element: Callable[[], Type | None]
    """Returns the type of the elements; ``None``: not an array."""


FindType = Callable[[str], Optional[Type]]
"""``(tag)``: returns the structure with a tag, or ``None``."""


class Place(NamedTuple):
    """The place of a member in a structure."""

    offset: int
    """Offset in bytes."""
    size: int
    """Size in bytes."""


class Types:
    """The structures of a kernel.

    :param find: looks up a structure in the debug information.
    """

    def __init__(self, find: FindType) -> None:
        self._find = find
        self._known: dict[str, Type] = {}
        self._places: dict[tuple[str, str], Place] = {}

    def structure(self, tag: str) -> Type:
        """Return a structure.

        :raises KernelError: the debug information has none with this tag.
        """
        if tag not in self._known:
            found = self._find(tag)
            if found is None:
                raise KernelError(f"the kernel's debug information has no struct {tag}")
            self._known[tag] = found
        return self._known[tag]

    def place(self, tag: str, path: str) -> Place:
        """Return the place of a member.

        :param path: names of members from the outside in, and indexes of arrays, joined by dots.
        :raises KernelError: there is no such structure or member.
        """
        if (tag, path) not in self._places:
            self._places[tag, path] = self._find_place(tag, path)
        return self._places[tag, path]

    def _find_place(self, tag: str, path: str) -> Place:
        current, offset = self.structure(tag), 0
        for part in path.split("."):
            element = current.element() if part.isdigit() else None
            if element is not None:
                offset, current = offset + int(part) * element.size, element
                continue
            found = _member(current, part)
            if found is None:
                raise KernelError(f"struct {tag} of the kernel has no member {path}")
            offset, current = offset + found.offset, found.type
        return Place(offset, current.size)

    def has(self, tag: str, path: str) -> bool:
        """Return whether a structure has a member, which can depend on the kernel's version and configuration."""
        try:
            self.place(tag, path)
        except KernelError:
            return False
        return True


def _member(structure: Type, name: str) -> Member | None:
    """Return a member, also one of an anonymous structure or union in the structure."""
    members = structure.members()
    for member in members:
        if member.name == name:
            return member
    for outer in members:
        found = None if outer.name else _member(outer.type, name)
        if found is not None:
            return found._replace(offset=outer.offset + found.offset)
    return None
