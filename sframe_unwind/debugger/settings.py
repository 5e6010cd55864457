"""The settings of a plugin: which frames are unwound from SFrame."""

from __future__ import annotations

from typing import NamedTuple

AUTO, ALWAYS, FALLBACK, OFF = MODES = ("auto", "always", "fallback", "off")


class Settings(NamedTuple):
    """The user's settings."""

    mode: str = AUTO
    """The frames that SFrame unwinds.  ``auto``: those that DWARF CFI does not describe, or describes wrongly by the
    machine code; ``always``: all that it covers; ``fallback``: those without DWARF CFI; ``off``: none."""
    strict: bool = False
    """In the modes ``auto`` and ``always``: SFrame unwinds every frame that it covers, also if the debugger's unwinder
    gives the same caller."""

    generate: bool = False
    """Generate SFrame from DWARF CFI for modules without SFrame."""

    @property
    def decides(self) -> bool:
        """Whether the better description of a frame is used, and not SFrame's wherever there is one."""
        return self.mode == AUTO and not self.strict

    def __str__(self) -> str:
        return f"{self.mode}{', strict' if self.strict else ''}{', generate' if self.generate else ''}"
