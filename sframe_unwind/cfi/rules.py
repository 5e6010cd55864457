"""Unwind rules from DWARF CFI, for CFA, return address and frame pointer, and their differences from SFrame's rules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import is_
from typing import Union

from sframe_unwind.arch import Arch
from sframe_unwind.cfi import agreement
from sframe_unwind.cfi.constants import SET_LOC
from sframe_unwind.cfi.instructions import RowDecoder
from sframe_unwind.cfi.records import CfiFunction, Fde
from sframe_unwind.cfi.row import NO_SCALES, Row, Scales
from sframe_unwind.errors import FormatError, UnsupportedExpressionError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind_rule import COMPUTED, UnwindRule

_KEPT_TABLES = 1 << 14
"""Maximum number of functions with different instructions whose rows are kept: some 500 bytes each."""
_MOST_BITS = 1 << 5
"""Larger than each mask of bits for which the rules are kept: entries of PLTs have 16 bytes."""
_MAX_ADDRESSES = 1 << 19
"""Maximum number of addresses of a file with CFI that depends on the address: a PLT of 32,768 entries."""


class NoRule(NamedTuple):
    """CFA or return address need more steps than a rule has, or the expression for one is malformed."""

    why: str
    rule: UnwindRule | None = None
    """If the CFA is a word in memory plus a constant: the rule with that word as CFA."""
    added: int = 0
    """The constant, in bytes."""
    scaled: UnwindRule | None = None
    """If places depend on the length of scalable vectors: the rule without that part."""
    scales: Scales = NO_SCALES
    """That part."""
    known: UnwindRule | None = None
    """The values that are places; the others are ``COMPUTED``."""


Said = Union[UnwindRule, NoRule]
"""The rule of a row for CFA, return address and frame pointer, or the reason why there is none."""

Rows = tuple[list[int], list[Said]]
"""Start of each row, in bytes from the start of the function, and its rule."""


class CfiRules:
    """The rules of rows of DWARF CFI; equal rows share one: a program of 20,000 functions has some hundred."""

    def __init__(self, arch: Arch) -> None:
        self._arch = arch
        self._known: dict[Row, Said] = {}
        self._same_bits: dict[tuple[Row, int, int], Said] = {}
        """The rules of rows that depend on the lowest bits of the pc, by the mask of the bits and their value."""
        self._same: dict[Said, Said] = {}
        self._tables: dict[tuple[RowDecoder, bytes], Rows] = {}
        self._addresses_left = _MAX_ADDRESSES

    def of(self, fde: Fde, low: int, high: int) -> Rows:
        """Return what :meth:`rows` returns for the function of an FDE; FDEs with equal instructions share it.

        :raises UnsupportedError: an instruction is unknown.
        :raises FormatError: one is malformed, or there are too many addresses on which a rule depends.
        """
        key = fde.common.decoder, fde.code
        known = self._tables.get(key)
        if known is None:
            offsets, rows = fde.common.decoder.decode(fde.code, fde.code_address, fde.start)
            relative = self._known_relative(offsets, rows)
            if relative is None:
                function = fde.decode()
                relative = self._relative(function)
                if relative is None:
                    return self._by_address(function, low, high)
            known = relative
            # Locations after DW_CFA_set_loc are absolute.  An operand can be the same byte; then nothing is kept.
            if SET_LOC not in fde.code:
                if len(self._tables) == _KEPT_TABLES:
                    self._tables.clear()
                self._tables[key] = known
        return known

    def share(self, rules: Iterable[UnwindRule]) -> None:
        """Take the rules of another table for equal ones of the CFI, since the same object is compared at once."""
        for rule in rules:
            self._same.setdefault(rule, rule)

    def rows(self, function: CfiFunction, low: int, high: int) -> Rows:
        """Return the rules of a function's rows, without rows whose rule is equal to the previous one.

        If a rule depends on the address, as linkers write it for a PLT, the result has a row for each address at which
        the rule changes.

        :param low: the first address of interest; it is used only if a rule depends on the address.
        :param high: the address after the last one.
        :raises FormatError: there are too many such addresses in the file.
        """
        return self._relative(function) or self._by_address(function, low, high)

    def _relative(self, function: CfiFunction) -> Rows | None:
        """Return the rules of a function's rows; ``None``: one depends on the address."""
        for offset, row in zip(function.offsets, function.rows):
            if row not in self._known:
                self._say(function, row, function.start + offset)
            if row.pc_bits:
                return None
        return self._known_relative(function.offsets, function.rows)

    def _known_relative(self, offsets: Sequence[int], rows: Sequence[Row]) -> Rows | None:
        """Return the rules of rows; ``None``: one has not been computed yet, or depends on the address."""
        try:
            rules = list(map(self._known.__getitem__, rows))
        except KeyError:
            return None
        if any(map(is_, rules, rules[1:])):
            changes = [number for number, rule in enumerate(rules) if not number or rule is not rules[number - 1]]
            return [offsets[number] for number in changes], [rules[number] for number in changes]
        return list(offsets), rules

    def at(self, function: CfiFunction, pc: int) -> tuple[Said, int]:
        """Return the rule for an address of a function, and the end of the code for which it certainly holds.

        :raises FormatError: there are too many addresses in the file for which a rule was computed from the address.
        """
        number = bisect_right(function.offsets, pc - function.start)
        row = function.rows[number - 1]
        said = self._known.get(row) or self._same_bits.get((row, row.pc_bits, pc & row.pc_bits))
        said = said or self._say(function, row, pc)
        if row.pc_bits:
            self._addresses_left -= 1
            if self._addresses_left < 0:
                raise FormatError(f"CFI of more than {_MAX_ADDRESSES:,} bytes of code is computed from the address")
            return said, pc + 1
        following = function.start + function.offsets[number] if number < len(function.rows) else function.end
        return said, min(following, function.end)

    def _by_address(self, function: CfiFunction, low: int, high: int) -> Rows:
        offsets: list[int] = []
        rules: list[Said] = []
        pc, high = max(low, function.start), min(high, function.end)
        while pc < high:
            said, end = self.at(function, pc)
            if not rules or said is not rules[-1]:
                offsets.append(pc - function.start)
                rules.append(said)
            pc = end
        return offsets, rules

    def _say(self, function: CfiFunction, row: Row, pc: int) -> Said:
        """Return the rule of a row at an address; equal rules are the same object."""
        said: Said
        try:
            said = row.rule(self._arch, function.cie.return_column, pc)._replace(others=None)
            if said.fp == COMPUTED:
                scaled = self._scaled(function, row, pc, "the frame pointer is computed")
                said = scaled._replace(known=said) if scaled is not None else said
        except UnsupportedExpressionError as error:
            why = f"computed: {error}"
            found = self._rule_with_sum(function, row, pc)
            said = self._scaled(function, row, pc, why) or NoRule(why, *(found or ()))
            said = said._replace(known=self._known_part(function, row, pc))
        except FormatError as error:
            said = NoRule(f"malformed: {error}")
        said = self._same.setdefault(said, said)
        if not row.pc_bits:
            self._known[row] = said
        elif row.pc_bits < _MOST_BITS:
            self._same_bits[row, row.pc_bits, pc & row.pc_bits] = said
        return said

    def _scaled(self, function: CfiFunction, row: Row, pc: int, why: str) -> NoRule | None:
        """Return the rule of a row that depends on the length of scalable vectors; ``None``: it does not."""
        try:
            found = row.scaled_rule(self._arch, function.cie.return_column, pc)
        except FormatError:
            return None
        return found and NoRule(why, scaled=found[0]._replace(others=None), scales=found[1])

    def _known_part(self, function: CfiFunction, row: Row, pc: int) -> UnwindRule | None:
        try:
            return row.known_part(self._arch, function.cie.return_column, pc)
        except FormatError:
            return None

    def _rule_with_sum(self, function: CfiFunction, row: Row, pc: int) -> tuple[UnwindRule, int] | None:
        try:
            found = row.rule_with_sum(self._arch, function.cie.return_column, pc)
        except FormatError:  # or the return address is computed, too
            return None
        return found and (found[0]._replace(others=None), found[1])


def differences(sframe: UnwindRule, dwarf: Said, arch: Arch) -> tuple[str, ...]:
    """Return the values, of ``cfa``, ``ra`` and ``fp``, in which a rule differs from that of the CFI."""
    return ("cfa",) if isinstance(dwarf, NoRule) else agreement.differences(sframe, dwarf, arch)
