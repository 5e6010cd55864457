"""The settings of a plugin: which frames are unwound from SFrame."""

from __future__ import annotations

from typing import NamedTuple

ALWAYS, FALLBACK, OFF = "always", "fallback", "off"
MODES = (ALWAYS, FALLBACK, OFF)


class Settings(NamedTuple):
    """What the user has set."""

    mode: str = ALWAYS
    """Which frames are SFrame's.  ``always``: all that it covers; ``fallback``: those where the module has no DWARF
    CFI; ``off``: none."""
    strict: bool = False
    """In mode ``always``: also show SFrame's own frame where the debugger's unwinder gives the same caller."""

    generate: bool = False
    """A module without SFrame gets what can be made of its DWARF CFI."""

    def __str__(self) -> str:
        return f"{self.mode}{', strict' if self.strict else ''}{', generate' if self.generate else ''}"
