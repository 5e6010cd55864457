"""A rule says how one frame gives the registers of its caller; it is what every kind of unwind data becomes here."""

from __future__ import annotations

from typing import NamedTuple

CFA = -1
"""As a place's base: the canonical frame address itself, not a register."""


class RegisterRule(NamedTuple):
    """How to get a value: ``base + offset``, or what memory holds there."""

    base: int
    """DWARF register number, or :data:`CFA`."""
    offset: int
    """In bytes."""
    in_memory: bool
    """Whether the value is read from memory at ``base + offset``."""


UNDEFINED = RegisterRule(-2, 0, False)
"""The rule of a register whose value in the caller cannot be restored.  No step can carry it out."""
COMPUTED = RegisterRule(-3, 0, False)
"""The rule of a register whose value DWARF computes in more steps than a rule has.  No step can carry it out."""


class UnwindRule(NamedTuple):
    """How to get CFA, return address and frame pointer.

    A frame whose return address is undefined is the outermost one; it has no CFA either
    (:data:`OUTERMOST`).
    """

    cfa: RegisterRule | None
    ra: RegisterRule | None
    """``None``: still in the return address register, which only an innermost frame can have."""
    fp: RegisterRule | None
    """``None``: unchanged."""
    ra_signed: bool = False
    """The return address carries a pointer authentication code (AArch64)."""
    others: tuple[tuple[int, RegisterRule], ...] | None = None
    """DWARF numbers and places of all other registers that are not unchanged; ``None``: those are not tracked."""

    def place(self, register: int, fp: int) -> RegisterRule | None:
        """Return the rule of a register other than the return address; ``None``: unchanged, as far as is known.

        :param register: its DWARF number.
        :param fp: that of the frame pointer.
        """
        if register == fp:
            return self.fp
        return next((rule for number, rule in self.others or () if number == register), None)

    @property
    def ra_undefined(self) -> bool:
        """Whether the trace is complete with this frame."""
        return self.cfa is None


OUTERMOST = UnwindRule(None, None, None)
"""The rule of a row without data words."""


def saved_at_cfa(offset: int) -> RegisterRule:
    """Return the place of a value saved in memory at CFA plus ``offset`` bytes."""
    return RegisterRule(CFA, offset, True)
