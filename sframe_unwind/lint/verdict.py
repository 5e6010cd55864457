"""The results of ``lint`` for a file."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Callable

from sframe_unwind.address import Range, find_range, merged
from sframe_unwind.lint.catalogue import Level, Rule
from sframe_unwind.lint.findings import Finding
from sframe_unwind.named_tuple import NamedTuple


class Outcome(str, Enum):
    """The verdict of a consumer on a section."""

    ACCEPTED = "accepted"
    LOSES = "accepted with losses"
    REFUSED = "refused"
    NOT_LOADED = "not loaded"
    """It is an object file, and this consumer never reads one."""


class Loss(NamedTuple):
    """A function that a consumer does not unwind, at least in part."""

    start: int
    """Start address."""
    where: str
    """The function in words: address and name."""
    size: int
    """Bytes of its code that are lost."""
    rules: tuple[Rule, ...]
    """The broken rules that cause the loss."""


class Refusal(NamedTuple):
    """Why a consumer refuses a section."""

    finding: Finding
    then: str
    """The effect in words."""


class Judgement(NamedTuple):
    """The verdict of one consumer on one section, with its reasons."""

    profile: str
    outcome: Outcome
    refusals: tuple[Refusal, ...] = ()
    losses: tuple[Loss, ...] = ()

    @property
    def lost(self) -> int:
        """Number of bytes of code that are lost."""
        return sum(loss.size for loss in self.losses)


class Shown(NamedTuple):
    """A finding, with its effects on the requested consumers."""

    finding: Finding
    level: Level
    effects: tuple[tuple[str, str], ...]
    """Name of each profile, and the effect on it."""


class SectionReport(NamedTuple):
    """The findings about one section."""

    section: str
    judgements: tuple[Judgement, ...]
    findings: tuple[Shown, ...]


class FileReport(NamedTuple):
    """The findings about one file."""

    file: str
    sections: tuple[SectionReport, ...]

    def within(self, ranges: Sequence[Range]) -> FileReport:
        """Return the report about some functions: their losses and findings, and what refuses the section as a whole.

        :param ranges: start and end address of each function.
        """
        covered = merged(ranges)

        def is_inside(address: int | None) -> bool:
            return address is not None and find_range(covered, address) is not None

        return self._replace(
            sections=tuple(
                section._replace(
                    judgements=tuple(_within(judgement, is_inside) for judgement in section.judgements),
                    findings=tuple(shown for shown in section.findings if is_inside(shown.finding.function)),
                )
                for section in self.sections
            )
        )

    @property
    def findings(self) -> list[Shown]:
        """The findings of all sections."""
        return [shown for section in self.sections for shown in section.findings]


def _within(judgement: Judgement, is_inside: Callable[[int | None], bool]) -> Judgement:
    losses = tuple(loss for loss in judgement.losses if is_inside(loss.start))
    is_whole = judgement.outcome is Outcome.LOSES and not losses
    return judgement._replace(losses=losses, outcome=Outcome.ACCEPTED if is_whole else judgement.outcome)
