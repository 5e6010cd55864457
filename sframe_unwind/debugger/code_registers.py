"""Finds the caller's registers in frames that only SFrame describes, by proofs from the machine code.

SFrame has CFA, return address and frame pointer.  If the extra ``code`` is in the debugger's Python, the other
callee-saved registers come from the code: those that it saves in a slot, and those that it does not change.  Registers
for which it proves nothing stay unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from sframe_unwind.debugger.code_judge import ProcessCode, function_at
from sframe_unwind.debugger.processor_time import ProcessorTime
from sframe_unwind.errors import MissingExtraError
from sframe_unwind.report.notation import describe_register_rule
from sframe_unwind.unwind.code_match import CodeMatch
from sframe_unwind.unwind.modules import Found
from sframe_unwind.unwind_rule import UNDEFINED, RegisterRule

Others = Optional[tuple[tuple[int, RegisterRule], ...]]
"""Like :attr:`sframe_unwind.unwind_rule.UnwindRule.others`: registers that are not listed are unchanged, and those that
are :data:`UNDEFINED` are unknown.  ``None``: all are unknown."""

_MAX_SIZE = 1 << 14
"""Maximum size of a function in bytes; 99 of 100 are smaller.  A function of this size takes about 0.1 s."""
_SECONDS = 1.0
"""Processor time for the functions of one stop."""


class RegisterProver:
    """Finds the registers within a time limit."""

    def __init__(self) -> None:
        self._time = ProcessorTime(_SECONDS)
        self._is_missing = False

    @property
    def is_exhausted(self) -> bool:
        """Whether the time of this stop is used up: unknown registers may be known at the next stop."""
        return self._time.is_used_up

    def renew(self) -> None:
        """Begin a new stop."""
        self._time = ProcessorTime(_SECONDS)

    def others(self, process: ProcessCode, found: Found, pc: int) -> Others:
        """Return the places of the caller's callee-saved registers.

        :param found: the row for the lookup address ``pc``.
        """
        from sframe_unwind.code.decode.lifting import check_installed

        if self._is_missing or self.is_exhausted:
            return None
        try:
            check_installed()  # imports it the first time, which would use up half of the time
        except MissingExtraError:
            self._is_missing = True
            return None
        with self._time.used():
            return proved_registers(process, found, pc)


def proved_registers(process: ProcessCode, found: Found, pc: int) -> Others:
    """Return the places of the caller's callee-saved registers that the code proves.

    The function must have a name, or be one that known code enters: for a part of a function, the code does not show
    what happened before.

    :raises MissingExtraError: the package that decodes the code is not installed.
    """
    arch = process.modules.arch
    function = function_at(process, found, pc, arch.preserved, _MAX_SIZE)
    if isinstance(function, str) or not (function.name or isinstance(found.match, CodeMatch)):
        return None
    places = function.caller_registers(pc, found.rule)
    if not places:
        return None
    known = {number: places.get(number, UNDEFINED) for number in arch.preserved}
    return tuple((number, place) for number, place in known.items() if place is not None)


def register_lines(process: ProcessCode, pc: int) -> Sequence[str]:
    """Return the lines of ``sframe explain`` about the registers that SFrame does not describe."""
    found = process.modules.results[pc]
    if not isinstance(found, Found) or found.rule.others is not None or process.modules.has_cfi(pc):
        return []
    try:
        others = proved_registers(process, found, pc)
    except MissingExtraError:
        return []
    if others is None:
        return []
    arch, rules = process.modules.arch, dict(others)
    unchanged = [arch.register_name(number) for number in arch.preserved if number not in rules]
    unknown = [arch.register_name(number) for number, rule in others if rule == UNDEFINED]
    sentences = [
        f"{arch.register_name(number)} {describe_register_rule(rule, arch)}"
        for number, rule in others
        if rule != UNDEFINED
    ]
    sentences += [f"{', '.join(unchanged)} unchanged"] if unchanged else []
    sentences += [f"{', '.join(unknown)} not known"] if unknown else []
    return ["regs:  the caller's others, by the machine code", *(f"       {sentence}" for sentence in sentences)]
