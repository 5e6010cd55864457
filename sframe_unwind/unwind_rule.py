"""Unwind rules: how to compute the caller's registers from one frame.

The decoders of SFrame, DWARF CFI and libunwind's run-time unwind info all produce these rules.
"""

from __future__ import annotations

from sframe_unwind.named_tuple import NamedTuple

CFA = -1
"""Value of :attr:`RegisterRule.base` that stands for the canonical frame address instead of a register."""


class RegisterRule(NamedTuple):
    """How to compute one value: ``base + offset``, or the word in memory at that address."""

    base: int
    """DWARF register number, or :data:`CFA`."""
    offset: int
    """Signed, in bytes."""
    in_memory: bool
    """The value is the word in memory at ``base + offset``; otherwise it is ``base + offset`` itself."""


UNDEFINED = RegisterRule(-2, 0, False)
"""The caller's value of the register cannot be recovered.  A step that needs the value fails."""
COMPUTED = RegisterRule(-3, 0, False)
"""DWARF computes the register with an expression that no register rule can hold.  A step that needs the value fails."""


class UnwindRule(NamedTuple):
    """How to compute CFA, return address and frame pointer.

    If the return address is undefined, the frame is the outermost one and the rule has no CFA (:data:`OUTERMOST`).
    """

    cfa: RegisterRule | None
    """``None``: the return address is undefined."""
    ra: RegisterRule | None
    """``None``: the return address is still in its register.  This is possible in an interrupted frame only."""
    fp: RegisterRule | None
    """``None``: the frame pointer register is unchanged."""
    ra_signed: bool = False
    """The return address carries a pointer authentication code (AArch64)."""
    others: tuple[tuple[int, RegisterRule], ...] | None = None
    """DWARF numbers and rules of the other registers that change; ``None``: the unwind data does not track them."""

    def register_rule(self, register: int, fp: int) -> RegisterRule | None:
        """Return the rule of a register other than the return address; ``None``: unchanged, or not tracked.

        :param register: DWARF number of the register.
        :param fp: DWARF number of the frame pointer.
        """
        if register == fp:
            return self.fp
        return next((rule for number, rule in self.others or () if number == register), None)

    @property
    def ra_undefined(self) -> bool:
        """Whether the return address is undefined, which marks the outermost frame."""
        return self.cfa is None


OUTERMOST = UnwindRule(None, None, None)
"""The rule of a row without data words."""


def saved_at_cfa(offset: int) -> RegisterRule:
    """Return the rule of a value that is saved in memory at CFA plus ``offset`` bytes."""
    return RegisterRule(CFA, offset, True)
