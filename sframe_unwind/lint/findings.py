"""What is found in a section, before any consumer has judged it."""

from __future__ import annotations

from typing import NamedTuple

from sframe_unwind.lint.catalogue import Rule


class Finding(NamedTuple):
    """A place where a section breaks a rule."""

    rule: Rule
    message: str
    """What is there, with numbers."""
    offset: int | None = None
    """Where, in bytes from the start of the section; ``None``: it is not within the section."""
    function: int | None = None
    """Address of the function that it concerns."""
    where: str = ""
    """The same for people: address and name."""
