"""The settings of a plugin: which frames are unwound from SFrame."""

from __future__ import annotations

from typing import NamedTuple

ALWAYS, FALLBACK, OFF = "always", "fallback", "off"
MODES = (ALWAYS, FALLBACK, OFF)


class Settings(NamedTuple):
    """The user's settings."""

    mode: str = ALWAYS
    """The frames that SFrame unwinds.  ``always``: all that it covers; ``fallback``: those in modules without DWARF
    CFI; ``off``: none."""
    strict: bool = False
    """In mode ``always``: also show SFrame's own frame if the debugger's unwinder gives the same caller."""

    generate: bool = False
    """Generate SFrame from DWARF CFI for modules without SFrame."""

    def __str__(self) -> str:
        return f"{self.mode}{', strict' if self.strict else ''}{', generate' if self.generate else ''}"
