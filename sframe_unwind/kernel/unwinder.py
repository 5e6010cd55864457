"""Unwinds the frames of a kernel's entry code, which rows cannot describe."""

from __future__ import annotations

from sframe_unwind.address import ADDRESS_MASK, lookup_address
from sframe_unwind.arch import PlaceKind
from sframe_unwind.errors import StepError
from sframe_unwind.kernel.entry_code import EntryPlace
from sframe_unwind.kernel.leaf import caller_of_leaf, returns_untouched
from sframe_unwind.kernel.linux import EXCEPTION, Kernel
from sframe_unwind.kernel.orc_unwinder import OrcUnwinder
from sframe_unwind.memory import ReadRegister, ReadWord
from sframe_unwind.unwind.signal_frame import reader
from sframe_unwind.unwind.step import Caller
from sframe_unwind.unwind.walk import Registers, UnwindResult

NAME = "kernel"
"""Name of this unwinder in stacks."""


class KernelUnwinder:
    """Unwinds entry code in one walk of a stack, or all code of a kernel with ORC."""

    def __init__(self, kernel: Kernel, read_word: ReadWord) -> None:
        self._kernel = kernel
        self._read_word = read_word
        self._orc = OrcUnwinder(kernel, kernel.orc, read_word) if kernel.orc is not None else None
        self._left: set[int] = set()
        """SP at each exception and stack switch of the walk.  A stack that comes back to one would never end."""

    def unwind(
        self, registers: Registers, interrupted: bool, read_register: ReadRegister | None = None
    ) -> UnwindResult | None:
        """Return the caller of a frame; ``None``: the frame is not one of entry code.

        :param read_register: reads the frame's other registers, if they are known.
        :raises StepError: the registers in memory contradict the stack.
        :raises MemoryReadError: the stack cannot be read.
        """
        if self._orc is not None:
            return self._orc.unwind(registers, interrupted, read_register)
        place = self._kernel.places.get(lookup_address(registers.pc, interrupted))
        if place is None:
            return None
        if place.is_outermost:
            return UnwindResult(None, False, None, NAME, end=place.kind.value)
        if place.kind is PlaceKind.LEAF:
            return self._leaf(place, registers, read_register)
        if registers.sp in self._left:
            raise StepError(f"{place.function} is reached with SP {registers.sp:#x} for the second time")
        self._left.add(registers.sp)
        if place.kind is PlaceKind.EXCEPTION:
            return self._exception(place, registers)
        return self._stack_switch(registers)

    def unwind_leaf(
        self, registers: Registers, interrupted: bool, read_register: ReadRegister | None
    ) -> UnwindResult | None:
        """Return the caller of an interrupted function without unwind data, by its code.

        The parameters are those of :meth:`unwind`.
        """
        arch, kernel = self._kernel.arch, self._kernel
        goes_on = kernel.facts.goes_on
        if goes_on is None or not interrupted or read_register is None:
            return None
        if not returns_untouched(registers.pc, goes_on, arch.instruction_unit, kernel.read):
            return None
        caller = caller_of_leaf(arch, registers, read_register)
        return UnwindResult(caller, False, None, NAME, switches_stack=True)  # SP stays

    def _leaf(self, place: EntryPlace, registers: Registers, read_register: ReadRegister | None) -> UnwindResult:
        if read_register is None:
            raise StepError(f"{place.function}: the register with the return address is not known")
        caller = caller_of_leaf(self._kernel.arch, registers, read_register)
        return UnwindResult(caller, False, None, NAME, switches_stack=True)  # SP stays

    def _exception(self, place: EntryPlace, registers: Registers) -> UnwindResult:
        arch, saved = self._kernel.arch, self._kernel.saved_registers
        if self._kernel.is_user_mode(registers.sp + saved.start, self._read_word):
            return UnwindResult(None, False, None, NAME, end=PlaceKind.USER_ENTRY.value)
        read_register = reader(
            arch, {number: registers.sp + offset for number, offset in saved.registers.items()}, self._read_word
        )
        if saved.frame_record is not None and registers.fp != registers.sp + saved.frame_record:
            raise StepError(
                f"{place.function}: the frame pointer is {registers.fp:#x},"
                f" expected the record in pt_regs at {registers.sp + saved.frame_record:#x}"
            )
        pc, sp, fp = (read_register(number) for number in (arch.pc, arch.sp, arch.fp))
        return UnwindResult(Caller(registers.sp + saved.size, pc, sp, fp), True, read_register, EXCEPTION)

    def _stack_switch(self, registers: Registers) -> UnwindResult:
        record, arch = self._kernel.arch.frame_record, self._kernel.arch
        chain, place = self._kernel.facts.back_chain, self._kernel.types.place
        if chain is not None:
            sp = self._read_word(registers.sp + place(chain.structure, chain.pointer).offset)
            pc, fp = (
                self._read_word(sp + place(chain.structure, chain.registers[number]).offset & ADDRESS_MASK)
                for number in (arch.pc, arch.fp)
            )
            return UnwindResult(Caller(sp - arch.sp_from_cfa, pc, sp, fp), False, None, NAME, switches_stack=True)
        pc, fp = (self._read_word(registers.fp + offset) for offset in (record.pc, record.fp))
        sp = registers.fp + record.sp
        return UnwindResult(Caller(sp - arch.sp_from_cfa, pc, sp, fp), False, None, NAME, switches_stack=True)
