"""The SFrame of a file as Linux would load it, by the profile ``linux-user`` of ``lint``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Callable

from sframe_unwind.errors import FormatError, SFrameError
from sframe_unwind.lint import PROFILES, lint
from sframe_unwind.lint.verdict import Outcome
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Match
from sframe_unwind.unwind.modules import Found, LookupResult, Module, Modules, NoData

PROFILE = "linux-user"


class LinuxModule(Module):
    """A module without the functions that Linux refuses.

    :param path: the file on disk; empty: its section was made for it, and is not checked.
    :param bias: load bias of the file.
    """

    def __init__(
        self,
        name: str,
        ranges: Sequence[tuple[int, int]],
        load: Callable[[], Section | None],
        path: str,
        bias: int,
    ) -> None:
        super().__init__(name, ranges, load)
        self._path = path
        self._bias = bias

    @cached_property
    def _verdict(self) -> tuple[str, dict[int, tuple[int, str]]]:
        """Why the section is refused (empty: it is not), and the lost bytes and the reason of each function."""
        if not self._path:
            return "", {}
        try:
            sections = lint(self._path, (PROFILES[PROFILE],)).sections
        except SFrameError as error:
            return str(error), {}
        if len(sections) != 1:
            return f"{len(sections)} SFrame sections, expected 1", {}
        (judgement,) = sections[0].judgements
        lost = {loss.start: (loss.size, loss.rules[0].id) for loss in judgement.losses if loss.rules}
        if judgement.outcome in (Outcome.REFUSED, Outcome.NOT_LOADED):
            rules = sorted({refusal.finding.rule.id for refusal in judgement.refusals})
            return ", ".join(rules) or judgement.outcome.value, lost
        return "", lost

    def look_up(self, pc: int, modules: Modules) -> LookupResult:
        """Look up an address; see :meth:`sframe_unwind.unwind.modules.Module.look_up`.

        :raises FormatError: Linux refuses the section.
        """
        result = super().look_up(pc, modules)
        if not isinstance(result, Found) or not isinstance(result.match, Match):
            return result
        refusal, lost = self._verdict
        if refusal:
            raise FormatError(f"Linux refuses the section: {refusal}")
        function = result.match.function
        size, rule = lost.get(function.start - self._bias, (0, ""))
        if size and size >= function.fde.size:
            return NoData(f"Linux refuses the function: {rule}", self)
        return result
