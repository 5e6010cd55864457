"""Reads contexts that do not run: the registers of fibers and coroutines, and those that ``setjmp`` saved.

The saved state is the one in which the context resumes.  Its pc is a return address if a call saved the context, and
otherwise the next instruction to execute; :func:`lookup_address` needs to know which.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Callable

from sframe_unwind.address import ADDRESS_MASK, WORD_SIZE, lookup_address
from sframe_unwind.arch import Arch
from sframe_unwind.errors import ContextError, MemoryReadError, StepError
from sframe_unwind.memory import ReadMemory, ReadWord, WordReader
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind.after_call import follows_call
from sframe_unwind.unwind.walk import Registers

_ASSIGNMENT = re.compile(r"\s*(\w+)\s*=(?!=)\s*(\S.*?)\s*", re.DOTALL)
_COMMA = re.compile(r",(?=\s*\w+\s*=(?!=))")
"""The comma before the next register.  Expressions can also contain commas."""


class SavedContext(NamedTuple):
    """The registers of a context that does not run."""

    arch: Arch
    registers: Mapping[int, int]
    """The registers by DWARF number; pc, SP and frame pointer are among them."""
    interrupted: bool
    """The pc is the next instruction to execute; ``False``: it is a return address."""

    @property
    def innermost(self) -> Registers:
        """The registers that every step computes."""
        arch = self.arch
        return Registers(*(self.registers[number] for number in (arch.pc, arch.sp, arch.fp)))

    def read_register(self, number: int) -> int:
        """Return a register by its DWARF number.

        :raises StepError: it is not saved.
        """
        if number not in self.registers:
            raise StepError(f"{self.arch.register_name(number)} is not in the saved context")
        return self.registers[number]


def assignments(arch: Arch, text: str) -> dict[int, str]:
    """Return the expressions of ``pc=EXPR,sp=EXPR,fp=EXPR`` by DWARF number of the register.

    :param text: pc, SP and frame pointer, and other registers: ``lr``, or a name that debuggers use.
    :raises ContextError: it has another form, or a register is not known, missing, or given twice.
    """
    numbers = {name: number for number, name in arch.register_names.items()}
    needed = {"pc": arch.pc, "sp": arch.sp, "fp": arch.fp}
    numbers.update(needed)
    if arch.ra is not None:
        numbers["lr"] = arch.ra
    found: dict[int, str] = {}
    for part in _COMMA.split(text):
        match = _ASSIGNMENT.fullmatch(part)
        if match is None:
            raise ContextError(f"{part.strip()!r} is not of the form REGISTER=VALUE")
        name, expression = match.groups()
        if name not in numbers:
            raise ContextError(f"{arch.name} has no register {name!r}")
        if numbers[name] in found:
            raise ContextError(f"register {name} is given twice")
        found[numbers[name]] = expression
    missing = [name for name, number in needed.items() if number not in found]
    if missing:
        raise ContextError(f"no value for {' and '.join(missing)}, expected pc=VALUE,sp=VALUE,fp=VALUE")
    return found


def from_registers(arch: Arch, registers: Mapping[int, int], read: ReadMemory) -> SavedContext:
    """Return the context with given registers.

    The pc is taken as a return address if a call instruction ends there, and SP is aligned as calls need it.  At the
    entry of a function on AMD64, SP is not: the entry of a function can follow a call that does not return.

    :param registers: the registers by DWARF number; at least pc, SP and frame pointer.
    :param read: reads the memory of the process.
    """
    sp = registers[arch.sp]
    is_call = follows_call(arch, registers[arch.pc], read) and sp % arch.stack_alignment == 0
    return SavedContext(arch, registers, not is_call)


def from_ucontext(arch: Arch, address: int, read: ReadMemory) -> SavedContext:
    """Read a ``ucontext_t`` that ``getcontext``, ``swapcontext``, ``makecontext`` or the kernel filled in.

    :raises ContextError: it cannot be read, or nothing is saved in it.
    """
    saved = _read(arch, "ucontext_t", address, arch.ucontext, read)
    try:
        pc, exact = arch.ucontext_pc(saved, read)
    except MemoryReadError as error:
        raise ContextError(f"ucontext_t at {address:#x}: its pc is in no code: {error}") from error
    if not pc or not saved[arch.sp]:
        raise ContextError(f"ucontext_t at {address:#x}: its {'SP' if pc else 'pc'} is 0, nothing is saved there")
    if exact:
        return SavedContext(arch, {**saved, arch.pc: pc}, True)
    # The C library leaves the registers that a call may change at their previous values in memory.
    kept = {arch.sp, arch.fp, arch.ra, *arch.preserved}
    registers = {number: value for number, value in saved.items() if number in kept}
    return from_registers(arch, {**registers, arch.pc: pc}, read)


def from_jump_buffer(
    arch: Arch, address: int, read: ReadMemory, guards: Iterable[int], is_code: Callable[[int], bool]
) -> SavedContext:
    """Read a ``jmp_buf`` or ``sigjmp_buf`` of glibc or musl.

    :param guards: the values that the pointer guard of the C library may have; see :func:`pointer_guards`.
    :param is_code: returns whether an address is in code; the right guard leads to code.
    :raises ContextError: it cannot be read, or no guard leads to code.
    """
    buffer = arch.jump_buffer
    saved = _read(arch, "jmp_buf", address, buffer.registers, read)
    if is_code(lookup_address(saved[arch.pc], interrupted=False)):
        return from_registers(arch, saved, read)  # musl
    tried = 0
    for guard in guards:
        tried += 1
        registers = {
            number: _rotated(value, buffer.rotation) ^ guard if number in buffer.mangled else value
            for number, value in saved.items()
        }
        if is_code(lookup_address(registers[arch.pc], interrupted=False)):
            return from_registers(arch, registers, read)
    reason = (
        "its pc is in no code, with the pointer guard of the C library or without"
        if tried
        else ("its pc is in no code, and the pointer guard of the C library is not found")
    )
    raise ContextError(f"jmp_buf at {address:#x}: {reason}")


def pointer_guards(
    arch: Arch,
    read_word: ReadWord,
    read_named: Callable[[str], int | None],
    find_symbol: Callable[[str], Iterable[int]],
    at_random: int | None,
) -> Iterator[int]:
    """Yield the values that glibc's pointer guard may have, the most certain first.

    :param read_named: returns a register of the thread by the debuggers' name; ``None``: it is not known.
    :param find_symbol: returns the addresses of a variable.
    :param at_random: the entry ``AT_RANDOM`` of the auxiliary vector; ``None``: it is not known.
    """
    place = arch.pointer_guard
    addresses: list[int] = []
    parts = [read_named(name) for name in place.thread_pointer]
    if parts and None not in parts:
        pointer = 0
        for part in parts:
            pointer = pointer << 8 * WORD_SIZE // len(parts) | (part or 0)
        addresses.append(pointer + place.offset)
    addresses += (address for name in place.symbols for address in find_symbol(name))
    for address in addresses:
        try:
            yield read_word(address & ADDRESS_MASK)
        except MemoryReadError:
            continue
    if at_random is not None:
        try:
            yield read_word(at_random + place.random & ADDRESS_MASK) & place.random_mask
        except MemoryReadError:
            return


def _read(arch: Arch, kind: str, address: int, offsets: Mapping[int, int], read: ReadMemory) -> dict[int, int]:
    """Return the registers in a structure.

    :param kind: the name of its type, for the error message.
    """
    read_word = WordReader(read, arch.byteorder)
    try:
        return {number: read_word(address + offset & ADDRESS_MASK) for number, offset in offsets.items()}
    except MemoryReadError as error:
        raise ContextError(f"{kind} at {address:#x}: {error}") from error


def _rotated(value: int, count: int) -> int:
    """Return a word rotated to the right."""
    return (value >> count | value << 8 * WORD_SIZE - count) & ADDRESS_MASK
