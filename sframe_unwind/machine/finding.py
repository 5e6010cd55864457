"""The result of one probe of this machine."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """One fact."""

    about: str
    """The part of the machine, such as ``GDB``."""
    name: str
    """What was probed, such as ``calls functions``."""
    works: bool | None
    """``None``: it could not be found out."""
    found: str
    """The result in words: a version, a setting, or an error message."""
    remedy: str = ""
    """The remedy in one line; empty: there is none, or none is needed."""

    def sentence(self) -> str:
        """Return the finding in one line."""
        remedy = f"; {self.remedy}" if self.remedy and not self.works else ""
        return f"{self.about}: {self.name}: {self.found}{remedy}"
