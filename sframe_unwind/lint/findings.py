"""The findings in a section, before they are judged for a consumer."""

from __future__ import annotations

from sframe_unwind.lint.catalogue import Rule
from sframe_unwind.named_tuple import NamedTuple


class Finding(NamedTuple):
    """A place where a section breaks a rule."""

    rule: Rule
    message: str
    """The problem, with numbers."""
    offset: int | None = None
    """Its place, in bytes from the start of the section; ``None``: it is not within the section."""
    function: int | None = None
    """Address of the function that it concerns."""
    where: str = ""
    """The function in words: address and name."""
