"""Unwinds a kernel by ORC, including assembly functions, entry code, and code that an exception interrupted."""

from __future__ import annotations

from sframe_unwind.address import ADDRESS_MASK, lookup_address
from sframe_unwind.arch import PlaceKind
from sframe_unwind.cfi.rules import NoRule
from sframe_unwind.errors import StepError
from sframe_unwind.kernel.linux import EXCEPTION, Kernel
from sframe_unwind.memory import ReadRegister, ReadWord
from sframe_unwind.orc import OrcEntry, OrcKind, OrcTable
from sframe_unwind.unwind.signal_frame import reader
from sframe_unwind.unwind.step import Caller, step, value_of
from sframe_unwind.unwind.walk import Registers, UnwindResult
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule

NAME = "orc"
"""Name of this unwinder in stacks."""


class OrcUnwinder:
    """Unwinds one walk of a stack as the kernel itself does (``unwind_next_frame`` of ``unwind_orc.c``)."""

    def __init__(self, kernel: Kernel, orc: OrcTable, read_word: ReadWord) -> None:
        self._kernel = kernel
        self._orc = orc
        self._read_word = read_word
        self._left: set[tuple[int, int]] = set()
        """Pc and SP at each exception and stack switch of the walk.  A stack that comes back to one would never end."""

    def unwind(
        self, registers: Registers, interrupted: bool, read_register: ReadRegister | None = None
    ) -> UnwindResult | None:
        """Return the caller of a frame; ``None``: ORC has no entry for it.

        :param read_register: reads the frame's other registers, if they are known.
        :raises StepError: a value is not known, or the stack contradicts the table.
        :raises MemoryReadError: the stack cannot be read.
        """
        entry = self._orc.find(lookup_address(registers.pc, interrupted))
        if entry is None or entry.kind is OrcKind.UNDEFINED:
            return None
        if entry.kind is OrcKind.END:
            is_entry = self._kernel.is_entry_code(registers.pc)
            end = PlaceKind.USER_ENTRY if is_entry else PlaceKind.TASK_START
            return UnwindResult(None, False, None, NAME, end=end.value)
        said = entry.said
        if isinstance(said, UnwindRule):
            caller = step(said, self._kernel.arch, *registers[1:], self._read_word, read_register)
            switches = said.cfa is not None and said.cfa.in_memory
            if switches:
                self._note(registers)
            return UnwindResult(caller, False, None, NAME, switches_stack=switches)
        self._note(registers)
        if isinstance(said, NoRule) and said.rule is not None:  # the old SP is at the top of the new stack
            return UnwindResult(
                self._switched(said.rule, said.added, registers), False, None, NAME, switches_stack=True
            )
        return self._exception(entry, registers, read_register)

    def _note(self, registers: Registers) -> None:
        if registers[:2] in self._left:
            raise StepError(f"{registers.pc:#x} is reached with SP {registers.sp:#x} for the second time")
        self._left.add(registers[:2])

    def _switched(self, rule: UnwindRule, added: int, registers: Registers) -> Caller:
        """Apply a rule whose CFA is a word in memory plus a constant."""
        arch, (_, sp, fp) = self._kernel.arch, registers

        def value(one: RegisterRule, cfa: int) -> int:
            return value_of(rule=one, arch=arch, cfa=cfa, sp=sp, fp=fp, read_word=self._read_word, read_register=None)

        assert rule.cfa is not None and rule.ra is not None  # noqa: PT018  # as of each call
        cfa = value(rule.cfa, 0) + added & ADDRESS_MASK
        return Caller(cfa, value(rule.ra, cfa), cfa, fp if rule.fp is None else value(rule.fp, cfa))

    def _exception(self, entry: OrcEntry, registers: Registers, read_register: ReadRegister | None) -> UnwindResult:
        arch, saved = self._kernel.arch, self._kernel.saved_registers
        at = place = value_of(
            rule=entry.place,
            arch=arch,
            cfa=0,
            sp=registers.sp,
            fp=registers.fp,
            read_word=self._read_word,
            read_register=read_register,
        )
        is_partial = entry.kind is OrcKind.PARTIAL_REGISTERS
        if is_partial:  # the processor pushes the end of the structure
            place -= saved.registers[arch.pc]
        places = {number: place + offset & ADDRESS_MASK for number, offset in saved.registers.items()}
        if is_partial:
            places = {number: places[number] for number in (arch.pc, arch.sp)}
        if self._kernel.is_user_mode(place, self._read_word):
            return UnwindResult(None, False, None, NAME, end=PlaceKind.USER_ENTRY.value)
        read = reader(arch, places, self._read_word)
        fp = registers.fp
        if not is_partial:
            fp = read(arch.fp)
        elif entry.bp is not None:
            fp = value_of(
                rule=entry.bp,
                arch=arch,
                cfa=at,
                sp=registers.sp,
                fp=fp,
                read_word=self._read_word,
                read_register=read_register,
            )
        caller = Caller(place + saved.size & ADDRESS_MASK, read(arch.pc), read(arch.sp), fp)
        return UnwindResult(caller, True, read, EXCEPTION)
