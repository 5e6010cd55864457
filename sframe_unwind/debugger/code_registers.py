"""The caller's registers in frames that SFrame alone describes, as the machine code proves them.

SFrame has CFA, return address and frame pointer.  Where the extra ``code`` is in the debugger's Python, the other
callee-saved registers come from the code: those that it saves in a slot, and those that it does not change.  What it
does not prove stays unknown.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Optional

from sframe_unwind.debugger.code_judge import ProcessCode, function_at
from sframe_unwind.errors import MissingExtraError
from sframe_unwind.report.notation import describe_register_rule
from sframe_unwind.unwind.modules import Found
from sframe_unwind.unwind_rule import UNDEFINED, RegisterRule

Others = Optional[tuple[tuple[int, RegisterRule], ...]]
"""As :attr:`sframe_unwind.unwind_rule.UnwindRule.others`: registers that are not listed are unchanged, and of those
that are :data:`UNDEFINED` nothing is known.  ``None``: nothing is known of any."""

_MAX_SIZE = 1 << 14
"""Bytes of a function; 99 of 100 are smaller.  A function of this size takes about 0.1 s."""
_SECONDS = 1.0
"""Processor time that the functions of one stop may take, so that a busy machine does not decide what is known."""


class RegisterProver:
    """Finds the registers, in bounded time."""

    def __init__(self) -> None:
        self._left = _SECONDS
        self._is_missing = False

    @property
    def is_exhausted(self) -> bool:
        """Whether the time of this stop is used up: what is not known now may be known at the next."""
        return self._left <= 0

    def renew(self) -> None:
        """Begin a new stop."""
        self._left = _SECONDS

    def others(self, process: ProcessCode, found: Found, pc: int) -> Others:
        """Return where the caller's callee-saved registers are.

        :param found: the row for the lookup address ``pc``.
        """
        from sframe_unwind.code.lifting import check_installed

        if self._is_missing or self.is_exhausted:
            return None
        try:
            check_installed()  # loads it the first time, which would use up half of the time
        except MissingExtraError:
            self._is_missing = True
            return None
        begun = time.thread_time()
        try:
            return proved_registers(process, found, pc)
        finally:
            self._left -= time.thread_time() - begun


def proved_registers(process: ProcessCode, found: Found, pc: int) -> Others:
    """Return where the caller's callee-saved registers are, as the code proves it.

    The function has to have a name: of a part of a function, the code does not show what was done before.

    :raises MissingExtraError: what decodes the code is not installed.
    """
    arch = process.modules.arch
    function = function_at(process, found, pc, arch.preserved, _MAX_SIZE)
    if isinstance(function, str) or not function.name:
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
