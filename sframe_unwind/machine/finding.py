"""The result of one probe of this machine."""

from __future__ import annotations

from typing import Any

from sframe_unwind.named_tuple import NamedTuple


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

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of the finding in ``doctor --json``."""
        return self._replace(remedy="" if self.works else self.remedy)._asdict()

    def sentence(self) -> str:
        """Return the finding in one line."""
        remedy = f"; {self.remedy}" if self.remedy and not self.works else ""
        return f"{self.about}: {self.name}: {self.found}{remedy}"
