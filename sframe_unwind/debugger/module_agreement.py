"""Compares the SFrame data of a module with its CFI: do both give the same caller at every address of the module?

If so, a debugger that unwinds by CFI has the frames that SFrame gives, for any stack.  The answer depends only on the
file, so it is found once for each module; this takes some 20 microseconds for each function.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from enum import IntEnum
from functools import lru_cache

from sframe_unwind.arch import BY_NAME, Arch
from sframe_unwind.cfi.agreement import agrees
from sframe_unwind.cfi.rules import CfiRules, NoRule, Said
from sframe_unwind.errors import SFrameError
from sframe_unwind.memory import ChunkCache, ReadMemory
from sframe_unwind.unwind.modules import Module
from sframe_unwind.unwind.pieces import pieces_of
from sframe_unwind.unwind.stub_rows import Piece
from sframe_unwind.unwind_rule import CFA, UnwindRule

_BATCH = 8
"""Number of functions between two checks of the time."""
_KEPT = 4096
"""Number of pairs of rules whose difference is kept."""


class Difference(IntEnum):
    """How the SFrame data of a module differs from its CFI, the largest difference last."""

    NONE = 0
    RULES = 1
    """At some address both have a rule, and the rules differ."""
    NO_CFI = 2
    """SFrame covers an address that CFI does not cover, or the module has no CFI at all."""


class ModuleAgreement:
    """The comparison of all SFrame rows of a module with its CFI, done in parts.

    A rule that is based on registers other than CFA, SP and FP counts as a difference, and so does unreadable CFI: it
    is not certain that the debugger follows such a rule.

    :param arch: architecture of the process.
    :param read: reads the memory of the process.
    """

    def __init__(self, module: Module, arch: Arch, read: ReadMemory) -> None:
        self.difference: Difference | None = None
        """The largest difference; ``None``: the comparison has not ended."""
        self._module = module
        self._arch = arch
        self._memory = ChunkCache(read)
        """Memory of the stubs of a PLT, which are adjacent and do not change."""
        self._rules = CfiRules(arch)
        self._work = self._differences()
        self._largest = Difference.NONE

    @property
    def error(self) -> SFrameError | None:
        """Why the SFrame section cannot be used, once it has been opened; it then gives no frames."""
        return self._module.error

    def advance(self, until: float) -> Difference | None:
        """Compare until the end or until a time of :func:`time.perf_counter`; return :attr:`difference`."""
        while self.difference is None:
            for number, found in enumerate(self._work, 1):
                self._largest = max(self._largest, found)
                if found is Difference.NO_CFI:
                    break
                if not number % _BATCH and time.perf_counter() > until:
                    return None
            self.difference = self._largest
            # The comparison is not needed any more.
            self._work = iter(())
            self._memory.forget()
        return self.difference

    def _differences(self) -> Iterator[Difference]:
        """Yield the largest difference in each function, and for each rule of each stub of a PLT."""
        try:
            if self._module.cfi is None:
                yield Difference.NO_CFI
                return
            section = self._module.section
            if section is None or section.arch not in (None, self._arch):
                return  # unused SFrame gives no frames
            for pieces in pieces_of(section, self._arch, self._memory.read):
                yield max(map(self._compare, pieces), default=Difference.NONE)
        except SFrameError:
            yield Difference.NO_CFI  # decided for each stack

    def _compare(self, piece: Piece) -> Difference:
        """Return the largest difference between a rule of SFrame and the CFI's rules where it holds."""
        pc, end, rule = piece
        cfi = self._module.cfi
        largest = Difference.NONE
        while pc < end:
            described = None if cfi is None else cfi.function_at(pc)
            if described is None:
                return Difference.NO_CFI
            while pc < min(end, described.end):
                said, pc = self._rules.at(described, pc)
                largest = max(largest, _difference(rule, said, self._arch.name))
        return largest


@lru_cache(_KEPT)
def _difference(rule: UnwindRule, said: Said, arch: str) -> Difference:
    """Return the difference between two rules; those of most files are the same few.

    :param arch: name of the architecture.
    """
    if isinstance(said, NoRule):
        return Difference.RULES
    its = BY_NAME[arch]
    is_plain = {part.base for part in said[:3] if part is not None} <= {CFA, its.sp, its.fp}
    return Difference.NONE if is_plain and agrees(rule, said, its) else Difference.RULES
