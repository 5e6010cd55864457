"""Decides whether SFrame or DWARF CFI unwinds a frame: the policy of mode ``auto``, of ``backtrace`` and of ``perf``.

Debuggers have unwound by CFI for decades, so SFrame is used only for a reason.  The first of these rules that fits
decides:

1. If only one of them describes the address, that one is used.
2. If both give the same caller, CFI is used: the debugger's own frame has more registers, and places to assign to.
3. If the code of a PLT stub proves one rule, that one is used.
4. If the file was rewritten after linking, its SFrame is stale, and CFI is used.
5. If CFI marks the outermost frame, it is used: such CFI is written by hand.
6. If the machine code proves one rule and refutes the other, the proved one is used.
7. Otherwise, CFI is used.
"""

from __future__ import annotations

from enum import Enum
from typing import Callable

from sframe_unwind.cfi.agreement import agrees
from sframe_unwind.cfi.section import CfiMatch, FindCfi
from sframe_unwind.errors import SFrameError, UnsupportedExpressionError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.sframe.table import Match
from sframe_unwind.unwind.address_cache import AddressCache
from sframe_unwind.unwind.modules import Found, Modules
from sframe_unwind.unwind.stub_rows import proven_rule
from sframe_unwind.unwind_rule import UnwindRule


class Source(Enum):
    """The unwind data that is used for an address."""

    SFRAME = "SFrame"
    CFI = "CFI"
    NONE = "neither"


class Reason(Enum):
    """Why that unwind data is used, in words that follow the name of the data and a colon."""

    NO_DATA = "neither SFrame nor CFI describes the address"
    NO_CFI = "no CFI describes the address"
    NO_SFRAME = "no SFrame describes the address"
    CFI_UNUSABLE = "the CFI for the address cannot be used"
    NOT_FOLLOWED = "the debugger cannot follow the CFI"
    AGREE = "both give the same caller"
    STUB_CODE = "the code of the PLT stub proves it"
    REWRITTEN = "the file was rewritten after linking"
    OUTERMOST = "the CFI marks the outermost frame"
    SIGNAL = "they differ in whether a signal interrupted the caller"
    CODE = "the code proves it and refutes the other"
    COMPUTED = "the CFI computes the frame, and cannot be compared"
    DIFFER = "they differ, and the code does not decide"


class Verdict(Enum):
    """What the machine code shows about a rule."""

    PROVED = "proved"
    REFUTED = "refuted"
    UNKNOWN = "unknown"


JudgeRule = Callable[[Found, int, UnwindRule], Verdict]
"""``(SFrame's row for the address, lookup address, rule)``: returns what the function's code shows about the rule."""


class Decision(NamedTuple):
    """The unwind data for one address."""

    source: Source
    reason: Reason
    rule: UnwindRule | None
    """Its rule; ``None``: there is none, or an :class:`UnwindRule` cannot express it."""

    @property
    def passes_over_sframe(self) -> bool:
        """Whether SFrame has a rule for the address that is not used, and gives another caller."""
        return self.source is Source.CFI and self.reason not in (Reason.NO_SFRAME, Reason.AGREE)

    def __str__(self) -> str:
        return f"{self.source.value}: {self.reason.value}"


class Precedence:
    """The decisions for one list of modules.

    :param find_cfi: returns the CFI that the consumer has for a lookup address; ``None``: that of the modules.
    :param judge: judges rules by the machine code; ``None``: the code is not asked, apart from the stubs of a PLT.
    :param can_follow: returns whether the consumer can unwind by a rule of the CFI; ``None``: by each.
    :param evaluates: the consumer also follows CFI that an :class:`UnwindRule` cannot express, as debuggers do.
    """

    def __init__(
        self,
        modules: Modules,
        find_cfi: FindCfi | None = None,
        judge: JudgeRule | None = None,
        can_follow: Callable[[UnwindRule], bool] | None = None,
        evaluates: bool = True,
    ) -> None:
        self._modules = modules
        self._find_cfi = modules.cfi_match if find_cfi is None else find_cfi
        self._judge = judge
        self._can_follow = can_follow
        self._evaluates = evaluates
        self.decisions = AddressCache(self._decide)
        """Maps a lookup address to its :class:`Decision`; computed on first access.  Clear it when the modules, or the
        consumer's CFI, have changed."""

    def prefers_cfi(self, pc: int) -> bool:
        """Return whether to pass over SFrame's rule for a lookup address; see :class:`sframe_unwind.unwind.walk.Walk`.

        ``False`` if both give the same caller.
        """
        return self.decisions[pc].passes_over_sframe

    def _decide(self, pc: int) -> Decision:
        found = self._modules.results[pc]
        sframe = found if isinstance(found, Found) else None
        try:
            cfi = self._find_cfi(pc)
        except UnsupportedExpressionError:
            return self._computed(sframe)
        except SFrameError:
            return _alone(sframe, Reason.CFI_UNUSABLE)
        if cfi is None:
            return _alone(sframe, Reason.NO_CFI)
        if sframe is None:
            return Decision(Source.CFI, Reason.NO_SFRAME, cfi.rule)
        return self._of_two(pc, sframe, cfi)

    def _computed(self, sframe: Found | None) -> Decision:
        """Decide where the CFI cannot be expressed as a rule."""
        if not self._evaluates:
            return _alone(sframe, Reason.CFI_UNUSABLE)
        return Decision(Source.CFI, Reason.NO_SFRAME if sframe is None else Reason.COMPUTED, None)

    def _of_two(self, pc: int, sframe: Found, cfi: CfiMatch) -> Decision:
        arch, can_follow = self._modules.arch, self._can_follow
        same = agrees(sframe.rule, cfi.rule, arch)
        is_rewritten = bool(sframe.module.rewritten)
        if can_follow is not None and not can_follow(cfi.rule) and (same or not is_rewritten):
            return Decision(Source.SFRAME, Reason.NOT_FOLLOWED, sframe.rule)
        if same:
            return Decision(Source.CFI, Reason.AGREE if sframe.signal == cfi.signal else Reason.SIGNAL, cfi.rule)
        if self._is_proved_by_stub(pc, sframe):
            return Decision(Source.SFRAME, Reason.STUB_CODE, sframe.rule)
        if is_rewritten:
            return Decision(Source.CFI, Reason.REWRITTEN, cfi.rule)
        if cfi.rule.ra_undefined:
            return Decision(Source.CFI, Reason.OUTERMOST, cfi.rule)
        return self._by_code(pc, sframe, cfi)

    def _is_proved_by_stub(self, pc: int, sframe: Found) -> bool:
        read, arch = self._modules.read, self._modules.arch
        if read is None or not isinstance(sframe.match, Match):
            return False
        proven = proven_rule(sframe.match, pc, arch, read)
        return proven is not None and agrees(sframe.rule, proven, arch)

    def _by_code(self, pc: int, sframe: Found, cfi: CfiMatch) -> Decision:
        """Decide by the machine code, which must prove one rule and refute the other; otherwise CFI is used."""
        if self._judge is None or sframe.rule.ra_undefined:
            return Decision(Source.CFI, Reason.DIFFER, cfi.rule)
        verdicts = self._judge(sframe, pc, sframe.rule), self._judge(sframe, pc, cfi.rule)
        if verdicts == (Verdict.PROVED, Verdict.REFUTED):
            return Decision(Source.SFRAME, Reason.CODE, sframe.rule)
        by_code = verdicts == (Verdict.REFUTED, Verdict.PROVED)
        return Decision(Source.CFI, Reason.CODE if by_code else Reason.DIFFER, cfi.rule)


def _alone(sframe: Found | None, without: Reason) -> Decision:
    """Return the decision where there is no CFI.

    :param without: why there is none.
    """
    if sframe is None:
        return Decision(Source.NONE, Reason.NO_DATA if without is Reason.NO_CFI else without, None)
    return Decision(Source.SFRAME, without, sframe.rule)
