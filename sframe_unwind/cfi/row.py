"""A row of a table of call frame information: the places of the CFA and the caller's registers (DWARF 5, 6.4.1)."""

from __future__ import annotations

from typing import Union

from sframe_unwind.arch import Arch
from sframe_unwind.cfi.expression import evaluate
from sframe_unwind.cfi.stack_pointer import with_stack_pointer
from sframe_unwind.errors import FormatError, UnsupportedExpressionError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind_rule import COMPUTED, OUTERMOST, UNDEFINED, RegisterRule, UnwindRule


class Expression(NamedTuple):
    """A rule with a DWARF expression."""

    code: bytes
    read: bool
    """The value is in memory at the address that the expression gives; ``False``: it is the expression's value."""


Source = Union[RegisterRule, Expression]
"""The place of a value; :data:`sframe_unwind.unwind_rule.UNDEFINED`: it cannot be restored."""


class Scales(NamedTuple):
    """How many times the vector length, in granules of 8 bytes, is added to the places of a rule."""

    cfa: int
    ra: int
    fp: int


NO_SCALES = Scales(0, 0, 0)


class NoCfa(NamedTuple):
    """The CFA after instructions that have no meaning: there is none."""

    why: str


class Row:
    """The rules from one address to the next row.

    The decoder makes one object for equal rows, so rows of one decoder are compared by identity.

    :param cfa: ``None``: no instruction has defined it.
    :param registers: DWARF number and source of each changed register, in the order of the numbers.
    :param ra_signed: the return address carries a pointer authentication code (AArch64).
    """

    __slots__ = ("_rule", "cfa", "pc_bits", "ra_signed", "registers")

    def __init__(self, cfa: Source | NoCfa | None, registers: tuple[tuple[int, Source], ...], ra_signed: bool) -> None:
        self.cfa = cfa
        self.registers = registers
        self.ra_signed = ra_signed
        self.pc_bits = 0
        """Mask of the bits of the pc on which the rule depends; known after :meth:`rule` was called."""
        self._rule: UnwindRule | None = None

    @property
    def depends_on_pc(self) -> bool:
        """Whether the rule differs from address to address; known after :meth:`rule` was called."""
        return bool(self.pc_bits)

    def rule(self, arch: Arch, return_column: int, pc: int) -> UnwindRule:
        """Return the rule of the row at an address.

        :param return_column: DWARF number of the return address column.
        :raises UnsupportedExpressionError: CFA, return address or stack pointer is not a place.
        :raises FormatError: an expression is malformed, or there is no CFA.
        """
        if self._rule is not None:
            return self._rule
        rule = self._make_rule(arch, return_column, pc)
        if not self.depends_on_pc:
            self._rule = rule
        return rule

    def source(self, register: int) -> Source | None:
        """Return the source of a register of the caller, by its DWARF number; ``None``: it is unchanged."""
        return next((source for number, source in self.registers if number == register), None)

    def place(self, source: Source, arch: Arch, pc: int, on_cfa: bool = True) -> RegisterRule:
        """Return the place of a source at an address.

        :param on_cfa: it is the source of a register, whose expressions start with the CFA on the stack.
        :raises UnsupportedExpressionError: its value is not a place.
        :raises FormatError: it is malformed.
        """
        if isinstance(source, RegisterRule):
            return source
        place, count = self._scaled_place(source, arch, pc, on_cfa)
        if count:
            raise UnsupportedExpressionError("a multiple of the length of scalable vectors (VG)")
        return place

    def _scaled_place(self, source: Source, arch: Arch, pc: int, on_cfa: bool) -> tuple[RegisterRule, int]:
        """Return a place and how many times the vector length is added to it, in granules of 8 bytes."""
        if isinstance(source, RegisterRule):
            return source, 0
        place, added, count = self._evaluate(source, arch, pc, on_cfa)
        if added:
            raise UnsupportedExpressionError("a sum with a word from memory")
        if not source.read:
            return place, count
        if place.in_memory:
            raise UnsupportedExpressionError("more than one read from memory")
        return place._replace(in_memory=True), count

    def _evaluate(self, source: Expression, arch: Arch, pc: int, on_cfa: bool) -> tuple[RegisterRule, int, int]:
        place, pc_bits, added, count = evaluate(source.code, pc, arch, on_cfa)
        self.pc_bits |= pc_bits
        return place, added, count

    def scaled_rule(self, arch: Arch, return_column: int, pc: int) -> tuple[UnwindRule, Scales] | None:
        """Return the rule of a row whose places depend on the length of scalable vectors (AArch64), and the multiples.

        :return: the rule without these multiples; ``None``: no place depends on the length.
        :raises UnsupportedExpressionError: a place is neither a plain one nor one plus such a multiple.
        :raises FormatError: an expression is malformed.
        """
        if arch.vector_granules is None or self.cfa is None or isinstance(self.cfa, NoCfa):
            return None
        cfa, count = self._scaled_place(self.cfa, arch, pc, on_cfa=False)
        counts, registers = {}, dict(self.registers)
        for number in (return_column, arch.fp):
            if number in registers and registers[number] != UNDEFINED:
                registers[number], counts[number] = self._scaled_place(registers[number], arch, pc, on_cfa=True)
        scales = Scales(count, counts.get(return_column, 0), counts.get(arch.fp, 0))
        if self.depends_on_pc or not any(scales):
            return None
        return Row(cfa, tuple(registers.items()), self.ra_signed).rule(arch, return_column, pc), scales

    def rule_with_sum(self, arch: Arch, return_column: int, pc: int) -> tuple[UnwindRule, int] | None:
        """Return the rule if the CFA is a word in memory plus a constant, and that constant in bytes.

        :return: the CFA of the rule is the word; ``None``: the row's CFA is not such a sum.
        :raises UnsupportedExpressionError: the return address is not a place.
        :raises FormatError: an expression is malformed.
        """
        if not isinstance(self.cfa, Expression):
            return None
        try:
            place, added, _ = self._evaluate(self.cfa, arch, pc, on_cfa=False)
        except UnsupportedExpressionError:
            return None
        if not added or self.depends_on_pc:
            return None
        return Row(place, self.registers, self.ra_signed).rule(arch, return_column, pc), added

    def known_part(self, arch: Arch, return_column: int, pc: int) -> UnwindRule | None:
        """Return what is known of the rule of a row that has none: a value that is not a place is ``COMPUTED``.

        :return: ``None``: there is no CFA.
        :raises FormatError: an expression is malformed.
        """
        if self.cfa is None or isinstance(self.cfa, NoCfa):
            return None
        ra, fp = self.source(return_column), self.source(arch.fp)
        return UnwindRule(
            self._register(self.cfa, arch, pc, on_cfa=False),
            ra and self._register(ra, arch, pc),
            fp and self._register(fp, arch, pc),
            self.ra_signed,
        )

    def _make_rule(self, arch: Arch, return_column: int, pc: int) -> UnwindRule:
        ra = self.source(return_column)
        if ra == UNDEFINED:
            return OUTERMOST
        if self.cfa is None:
            raise FormatError("no instruction defines the CFA")
        if isinstance(self.cfa, NoCfa):
            raise FormatError(self.cfa.why)
        cfa = self.place(self.cfa, arch, pc, on_cfa=False)
        if ra is None and return_column not in (arch.ra, arch.pc):
            ra = RegisterRule(return_column, 0, False)
        fp, sp, others = None, None, []
        for number, source in self.registers:
            if number == arch.fp:
                fp = self._register(source, arch, pc)
            elif number == arch.sp:
                sp = self._register(source, arch, pc)
            elif number != return_column:
                others.append((number, self._register(source, arch, pc)))
        rule = UnwindRule(cfa, ra and self.place(ra, arch, pc), fp, self.ra_signed, tuple(others))
        return rule if sp is None else with_stack_pointer(rule, sp, arch)

    def _register(self, source: Source, arch: Arch, pc: int, on_cfa: bool = True) -> RegisterRule:
        try:
            return self.place(source, arch, pc, on_cfa)
        except UnsupportedExpressionError:
            return COMPUTED
