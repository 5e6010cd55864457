"""Writes the rows of a function as directives of GNU as."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from sframe_unwind import unwind_rule
from sframe_unwind.arch import Arch
from sframe_unwind.cfi import encode
from sframe_unwind.code.rows.function import Basis, FoundRule, Rows
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind_rule import UNDEFINED, RegisterRule

START, END = ".cfi_startproc", ".cfi_endproc"


class Placed(NamedTuple):
    """Directives for one address."""

    address: int
    directives: tuple[str, ...]


class _Row(NamedTuple):
    """The rules that CFI has at an address."""

    cfa: RegisterRule
    added: int
    """The CFA is a word in memory plus this constant in bytes."""
    registers: tuple[tuple[int, RegisterRule], ...]
    """DWARF numbers and rules of the registers that differ from the CIE's, ascending."""
    is_signed: bool


class Writer:
    """Writes the directives for the functions of one machine.

    :param name_of: returns the assembler's name of a register by its DWARF number.
    """

    def __init__(self, arch: Arch, name_of: Callable[[int], str]) -> None:
        self._arch = arch
        self._name_of = name_of
        self._initial = self._row(FoundRule(arch.call_rule, Basis.PROVED))

    def placed(self, rows: Rows, after_exits: Collection[int]) -> list[Placed]:
        """Return the directives for one piece of code, by ascending address.

        :param after_exits: the addresses to which the instruction before them does not lead.
        """
        states = [self._row(found) for found in rows.rules]
        first = [START, *([".cfi_b_key_frame"] if rows.b_key else []), *self._change(self._initial, states[0])]
        found = [Placed(rows.start, tuple(first))]
        starts = [rows.start + offset for offset in rows.offsets]
        costs = [0, *(len(self._change(*pair)) for pair in zip(states, states[1:]))]
        remembered = _remembered(
            states, [number for number in range(len(states)) if costs[number] > 1 and starts[number] in after_exits]
        )
        restored = set(remembered.values())
        for number in range(1, len(states)):
            texts = [".cfi_remember_state"] if number in remembered else []
            if number in restored:
                texts.append(".cfi_restore_state")
            else:
                texts += self._change(states[number - 1], states[number])
            found.append(Placed(starts[number], tuple(texts)))
        return [*found, Placed(rows.end, (END,))]

    def _row(self, found: FoundRule) -> _Row:
        rule, arch = found.rule, self._arch
        assert rule.cfa is not None
        registers = dict(rule.others or ())
        if rule.fp is not None:
            registers[arch.fp] = rule.fp
        if rule.ra is not None and rule.ra != arch.call_rule.ra:
            registers[arch.return_column] = rule.ra
        if arch.sp_from_cfa and rule.cfa != arch.call_rule.cfa:
            # Debuggers take the CFA for the caller's stack pointer if there is no rule for it.
            registers[arch.sp] = RegisterRule(unwind_rule.CFA, arch.sp_from_cfa, False)
        return _Row(rule.cfa, found.added, tuple(sorted(registers.items())), rule.ra_signed)

    def _change(self, before: _Row, after: _Row) -> list[str]:
        """Return the directives that make the rules of one row those of another."""
        texts = [self._cfa(before, after)] if (before.cfa, before.added) != (after.cfa, after.added) else []
        old, new = dict(before.registers), dict(after.registers)
        changed = (number for number in sorted({*old, *new}) if old.get(number) != new.get(number))
        texts += [self._register(number, new.get(number)) for number in changed]
        if before.is_signed != after.is_signed:
            texts.append(".cfi_negate_ra_state")
        return texts

    def _cfa(self, before: _Row, after: _Row) -> str:
        base, offset, in_memory = after.cfa
        if in_memory:
            return _escape(encode.cfa(after.cfa, after.added))
        if not before.cfa.in_memory and base == before.cfa.base:
            return f".cfi_def_cfa_offset {offset}"
        if not before.cfa.in_memory and offset == before.cfa.offset:
            return f".cfi_def_cfa_register {self._name_of(base)}"
        return f".cfi_def_cfa {self._name_of(base)}, {offset}"

    def _register(self, number: int, place: RegisterRule | None) -> str:
        name = self._name_of(number)
        if place is None:
            return f".cfi_restore {name}"
        if place == UNDEFINED:
            return f".cfi_undefined {name}"
        base, offset, in_memory = place
        if base == unwind_rule.CFA and not offset % encode.DATA_FACTOR:
            return f".cfi_{'' if in_memory else 'val_'}offset {name}, {offset}"
        if not (in_memory or offset) and base != unwind_rule.CFA:
            return f".cfi_register {name}, {self._name_of(base)}"
        return _escape(encode.register(number, place))


def _escape(data: bytes) -> str:
    return ".cfi_escape " + ", ".join(f"{byte:#04x}" for byte in data)


def _remembered(states: Sequence[_Row], candidates: Iterable[int]) -> dict[int, int]:
    """Return the rows before which the state is remembered, and those at which it comes back.

    After an exit in the middle of a function, the state before its epilogue applies again.

    :param candidates: the rows at which a state may come back, ascending.
    """
    found: dict[int, int] = {}
    last = 0
    for number in candidates:
        same = next((one for one in range(number - 2, last - 1, -1) if states[one] == states[number]), None)
        if same is not None:
            found[same + 1] = last = number
    return found
