"""The results of ``lint`` for a file."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from sframe_unwind.lint.catalogue import Level, Rule
from sframe_unwind.lint.findings import Finding


class Outcome(str, Enum):
    """The verdict of a consumer on a section."""

    ACCEPTED = "accepted"
    LOSES = "accepted with losses"
    REFUSED = "refused"
    NOT_LOADED = "not loaded"
    """It is an object file, which this consumer never sees."""


class Loss(NamedTuple):
    """A function that a consumer does not unwind, at least in part."""

    start: int
    """Address."""
    where: str
    """The same for people: address and name."""
    size: int
    """Bytes of its code that are lost."""
    rules: tuple[Rule, ...]
    """Why."""


class Refusal(NamedTuple):
    """Why a consumer refuses a section."""

    finding: Finding
    then: str
    """What happens then."""


class Judgement(NamedTuple):
    """The verdict of one consumer on one section, with its reasons."""

    profile: str
    outcome: Outcome
    refusals: tuple[Refusal, ...] = ()
    losses: tuple[Loss, ...] = ()

    @property
    def lost(self) -> int:
        """Bytes of code that are lost."""
        return sum(loss.size for loss in self.losses)


class Shown(NamedTuple):
    """A finding, with its effects on the consumers that were asked for."""

    finding: Finding
    level: Level
    effects: tuple[tuple[str, str], ...]
    """Name of a profile, and what happens there."""


class SectionReport(NamedTuple):
    """What is said of one section."""

    section: str
    judgements: tuple[Judgement, ...]
    findings: tuple[Shown, ...]


class FileReport(NamedTuple):
    """What is said of one file."""

    file: str
    sections: tuple[SectionReport, ...]

    @property
    def findings(self) -> list[Shown]:
        """The findings of all sections."""
        return [shown for section in self.sections for shown in section.findings]
