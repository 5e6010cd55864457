"""Finds out from the machine code which stack is right if those of SFrame and DWARF CFI differ.

This needs the extra ``code``.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from sframe_unwind.debugger.code_judge import ProcessCode, function_at
from sframe_unwind.errors import MissingExtraError, SFrameError
from sframe_unwind.perf.code_file import CodeFile
from sframe_unwind.perf.spaces import Space
from sframe_unwind.unwind.modules import Found

_MOST_ADDRESSES = 200
"""Maximum number of addresses to judge: the function of each is interpreted, which takes up to a second."""


class Right(Enum):
    """The table whose rule the code does not refute."""

    DWARF = "dwarf"
    SFRAME = "sframe"
    NEITHER = "neither"
    UNKNOWN = "unknown"
    """The code refutes no rule: it does not decide, or too many addresses were judged before."""


class CodeWitness:
    """Judges the rules of frames, and remembers the result for each address of a file."""

    def __init__(self) -> None:
        self._known: dict[tuple[CodeFile, int], Right] = {}

    def right(self, space: Space, lookups: Sequence[int]) -> Right | None:
        """Return whether the stack of SFrame or that of the CFI is right.

        The cause of a difference can be the rule of an inner frame, which restores the frame pointer.

        :param lookups: the lookup address of each frame that both stacks share; their callers differ after the last
            one.
        :return: ``None``: the extra is not installed.
        """
        try:
            found = (self._right_at(space, lookup) for lookup in reversed(lookups))
            return next((right for right in found if right is not Right.UNKNOWN), Right.UNKNOWN)
        except MissingExtraError:
            return None

    def _right_at(self, space: Space, lookup: int) -> Right:
        file = space.find(lookup)
        if file is None:
            return Right.UNKNOWN
        if (file, lookup) not in self._known:
            if len(self._known) >= _MOST_ADDRESSES:
                return Right.UNKNOWN
            self._known[file, lookup] = self._judged(space, lookup)
        return self._known[file, lookup]

    @staticmethod
    def _judged(space: Space, lookup: int) -> Right:
        try:
            found, cfi = space.sframe.results[lookup], space.find_cfi(lookup)
        except SFrameError:
            return Right.UNKNOWN
        if not isinstance(found, Found) or cfi is None:
            return Right.UNKNOWN
        function = function_at(ProcessCode(space.sframe, space.read, space.symbol_at), found, lookup)
        if isinstance(function, str):
            return Right.UNKNOWN
        by_sframe, by_cfi = (
            {(value.what, value.rule) for value in function.verdict(lookup, rule).wrong}
            for rule in (found.rule, cfi.rule)
        )
        if by_sframe == by_cfi:  # they do not differ here, or the code does not decide
            return Right.UNKNOWN
        if by_sframe:
            return Right.NEITHER if by_cfi else Right.DWARF
        return Right.SFRAME
