"""The settings of a plugin: which frames are unwound from SFrame."""

from __future__ import annotations

from typing import Any

from sframe_unwind.debugger.modes import ALWAYS, AUTO, CODE, FALLBACK, OFF, TABLES
from sframe_unwind.named_tuple import NamedTuple

__all__ = [
    "ALWAYS",
    "AUTO",
    "CODE",
    "FALLBACK",
    "OFF",
    "SFRAME_ALONE",
    "TABLES",
    "Settings",
    "changed",
]


class Settings(NamedTuple):
    """The user's settings."""

    mode: str = AUTO
    """The frames that SFrame unwinds.  ``auto``: those that DWARF CFI does not describe, or describes wrongly by the
    machine code; ``always``: all that it covers; ``fallback``: those without DWARF CFI; ``off``: none."""
    strict: bool = False
    """In the modes ``auto`` and ``always``: SFrame unwinds every frame that it covers, also if the debugger's unwinder
    gives the same caller."""

    generate: str = OFF
    """What is generated for code without SFrame; one of :data:`sframe_unwind.debugger.modes.GENERATED`."""

    @property
    def concerns_all(self) -> bool:
        """Whether the plugin is of use for programs without SFrame, too."""
        return self.strict or self.generate != OFF

    @property
    def decides(self) -> bool:
        """Whether the better description of a frame is used, and not SFrame's wherever there is one."""
        return self.mode == AUTO and not self.strict

    @property
    def takes_all(self) -> bool:
        """Whether SFrame counts wherever it describes a frame."""
        return self.mode == ALWAYS

    @property
    def leaves_cfi(self) -> bool:
        """Whether frames that CFI describes are left to the debugger."""
        return self.mode == FALLBACK

    def __str__(self) -> str:
        generate = {OFF: "", TABLES: ", generate"}.get(self.generate, f", generate {self.generate}")
        return f"{self.mode}{', strict' if self.strict else ''}{generate}"


SFRAME_ALONE = Settings(ALWAYS, strict=True)
"""Every frame that SFrame covers is unwound by it, as in the stacks of the commands."""


def changed(settings: Settings, name: str, value: Any) -> Settings:
    """Return the settings with another value of one of them.

    :param name: the field.
    :param value: of the type of the field.
    :raises MissingExtraError: the value needs the package that decodes machine code, which is not installed.
    """
    if (name, value) == ("generate", CODE):
        from sframe_unwind.code.decode.lifting import check_installed

        check_installed()
    return settings._replace(**{name: value})
