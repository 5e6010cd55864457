"""The unwind data that a method uses in one address space."""

from __future__ import annotations

from typing import Callable

from sframe_unwind.arch import Arch
from sframe_unwind.cfi.section import FindCfi
from sframe_unwind.errors import SFrameError
from sframe_unwind.perf.ending import Ending
from sframe_unwind.perf.plain_rules import PlainRules
from sframe_unwind.unwind.modules import Found, Modules
from sframe_unwind.unwind.precedence import JudgeRule, Precedence
from sframe_unwind.unwind_rule import UNDEFINED, UnwindRule


class UnwindData:
    """SFrame, and the methods that are used where it has no row.

    :param modules: modules with the SFrame of the method; none: everything is left to the CFI.
    :param find_cfi: finds the CFI; ``None``: the method uses none.
    :param may_be_trampoline: see :class:`sframe_unwind.process.target.UnwindableCode`; ``None``: the method ends stacks
        at signal frames.
    :param with_frame_pointers: frames without a row and without CFI are unwound by frame pointers.
    :param with_code: frames without a row and without CFI are unwound by the machine code.
    :param judge: judges the rules of SFrame and CFI by the machine code, if they differ.
    """

    def __init__(
        self,
        arch: Arch,
        modules: Modules,
        find_cfi: FindCfi | None,
        may_be_trampoline: Callable[[int], bool] | None,
        with_frame_pointers: bool = False,
        with_code: bool = False,
        judge: JudgeRule | None = None,
    ) -> None:
        self.modules = modules
        self.with_cfi = find_cfi is not None
        self.with_signal_frames = may_be_trampoline is not None
        self.with_frame_pointers = with_frame_pointers
        self.with_code = with_code
        self.prefers_cfi = None
        """Whether to pass over SFrame's rule for a lookup address; ``None``: the method does not use both."""
        if find_cfi is not None and modules.modules:
            self.prefers_cfi = Precedence(modules, find_cfi, judge, evaluates=False).prefers_cfi
        self._find_cfi = find_cfi
        self._may_be_trampoline = may_be_trampoline
        self.plain = PlainRules(arch, self._rule)
        self.ends: dict[tuple[int, bool], tuple[Ending, str] | None] = {}
        """How stacks end at a pc; see :func:`sframe_unwind.perf.sample_walk.unwind`."""

    def _rule(self, lookup: int) -> UnwindRule | None:
        """Return the rule for a lookup address; ``None``: there is none, or the frame is a signal frame."""
        found = self.modules.results[lookup]
        if isinstance(found, Found) and not (self.prefers_cfi is not None and self.prefers_cfi(lookup)):
            return None if found.signal else found.rule
        if self._find_cfi is None or self._may_be_trampoline is None:
            return None
        if any(map(self._may_be_trampoline, (lookup, lookup + 1))):  # the pc is the lookup address or the next one
            return None
        try:
            match = self._find_cfi(lookup)
        except SFrameError:
            return None
        if match is None or match.signal:
            return None
        rule = match.rule
        return rule._replace(fp=None) if rule.fp == UNDEFINED else rule
