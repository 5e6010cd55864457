"""Decodes machine code to :class:`Instruction`, by VEX, the intermediate language of Valgrind.

This is the only module that imports pyvex.  Each instruction is lifted alone and without optimization, so its
meaning depends only on its bytes, and is computed once for all places where they occur.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from sframe_unwind.code.decode.agreement import agrees, with_sources
from sframe_unwind.code.decode.disassembly import Disassembler
from sframe_unwind.code.decode.instruction import (
    HIGH,
    PAGE_RELATIVE,
    PC_RELATIVE,
    Instruction,
    Kind,
)
from sframe_unwind.code.decode.machines import Machine
from sframe_unwind.code.decode.machines.base import STOP, Disassembled
from sframe_unwind.code.decode.shapes import Shapes
from sframe_unwind.code.decode.vex_expressions import IGNORED
from sframe_unwind.code.decode.vex_statements import PC, Translation
from sframe_unwind.errors import MissingExtraError

_PACKAGES = ("pyvex", "capstone")
BASES = (0x5AFE_0000_0000, 0x2BED_0000_0000)
"""Two addresses at which an instruction is lifted, multiples of a page.  A constant near the first one is relative to
the instruction if it is near the second one there; a constant of the program itself is near one of them at most."""
_MAX_CACHED = 32_000
"""Maximum number of instructions that are kept, which take 20 MB.  A library of 100 MB has ten times as many different
ones, but most of them are made anew quickly, from their shapes."""
_UNDECODED = ("Ijk_NoDecode", "Ijk_EmFail")
"""VEX's kinds of jumps for instructions that it cannot decode, or that it assumes the processor to lack."""


def check_installed() -> None:
    """Check that the packages that decode code, the extra ``code``, are installed and can be loaded.

    :raises MissingExtraError: a package is missing, or cannot be loaded.
    """
    for name in _PACKAGES:
        if find_spec(name) is None:
            raise MissingExtraError(name)
        reason = _why_not_loaded(name)
        if reason:
            raise MissingExtraError(name, reason=reason)


@cache
def _why_not_loaded(name: str) -> str:
    """Return why a package cannot be loaded; empty: it can.  The result is cached.

    A debugger's own Python can find the package in one environment, and its library, of another version, in another.
    """
    try:
        with _named_user():
            import_module(name)
    except Exception as error:  # noqa: BLE001  # cffi raises no other
        return str(error) or type(error).__name__
    return ""


@contextmanager
def _named_user() -> Iterator[None]:
    """Give the user a name if it has none, as in many containers: pyvex makes the name of a file from it."""
    if _has_name():
        yield
        return
    os.environ["LOGNAME"] = str(os.getuid())
    try:
        yield
    finally:
        del os.environ["LOGNAME"]


def _has_name() -> bool:
    try:
        return bool(getpass.getuser())
    except (KeyError, OSError):
        return False


class Lifter:
    """Decodes the instructions of one machine.

    :raises MissingExtraError: see :func:`check_installed`.
    """

    def __init__(self, machine: Machine) -> None:
        check_installed()
        import pyvex
        from pyvex import arches

        self._pyvex = pyvex
        self._arch: Any = copy(getattr(arches, machine.vex_name))
        if self._arch.name == "ARM64":  # pyvex's key for its lifters
            self._arch.name = "AARCH64"
        self.machine = machine
        self._known: dict[bytes, Instruction] = {}
        self._sizes: dict[bytes, tuple[int, ...]] = {}
        """The known sizes of instructions, by their first two bytes; no instruction is the beginning of another."""
        self._made: list[bytes] = []
        """The known instructions that VEX did not lift, in the order in which they were found."""
        self._shapes = Shapes()
        self._registers = _register_numbers(self._arch, machine)
        self._disassembler = Disassembler(machine)

    def instruction(self, code: bytes, at: int) -> Instruction:
        """Return the instruction at an offset of some bytes of code.

        An instruction that cannot be decoded has the kind ``STOP``, and the size 0 if its size is unknown, too.
        """
        known = self._known
        start = code[at : at + 2]
        sizes = self._sizes.get(start, ())
        for size in sizes:
            found = known.get(code[at : at + size])
            if found is not None:
                return found
        raw = code[at : at + self.machine.max_size]
        found = known.get(raw[:1])  # the second byte is the next instruction's
        if found is None:
            found = self._decoded(raw)
            if not found.size:
                return found
            if len(known) >= _MAX_CACHED:
                self._forget()
            known[raw[: found.size]] = found
        if found.size not in sizes:
            self._sizes[start] = (*sizes, found.size)
        return found

    def _forget(self) -> None:
        """Forget half of the instructions that are quickly made, the oldest first; if there are few, forget all."""
        half = len(self._made) // 2
        if half < _MAX_CACHED // 16:
            self._known.clear()
            self._made.clear()
        for raw in self._made[:half]:
            self._known.pop(raw, None)
        del self._made[:half]

    def _decoded(self, raw: bytes) -> Instruction:
        found = self.machine.special(raw)
        if found is not None:
            self._made.append(raw[: found.size])
            return found
        shape = self.machine.shape(raw)
        if shape is None:
            return self.lifted(raw)
        found = self._shapes.instruction(shape)
        if found is not None:
            self._made.append(raw[: found.size])
        else:
            found = self.lifted(raw)
            self._shapes.learn(shape, found)
        return found

    def lifted(self, raw: bytes) -> Instruction:
        """Lift the instruction at the start of some bytes, independent of those lifted before.

        Its effects are unknown if VEX and capstone do not agree on them.
        """
        decoded = self._disassembler.decode(raw)
        found = self._by_vex(raw)
        if found is None:
            found = self._undecoded(decoded)
        if found is STOP or agrees(found, decoded, self.machine):
            return found
        if decoded is None and len(self.machine.sizes(raw, 0)) != 1:
            return STOP  # its size is not known either
        if found.kind is not Kind.NEXT:
            return Instruction(size=found.size, kind=Kind.STOP, puts=(), stores=(), exits=(), target=None)
        return self.machine.anything(found.size)

    def _by_vex(self, raw: bytes) -> Instruction | None:
        found = self._lifted_at(BASES[0], raw)
        if found is None:
            return None
        if not _is_relative(found):
            return found
        other = self._lifted_at(BASES[1], raw)
        if other == found:
            return found
        # A value that is relative at only one of the two addresses is a constant of the program.
        return self.machine.anything(found.size) if other is None or _is_relative(other) else other

    def _lifted_at(self, base: int, raw: bytes) -> Instruction | None:
        """Return VEX's instruction for the start of some bytes at an address; ``None``: there is none."""
        try:
            block = self._pyvex.lift(raw + bytes(16), base, self._arch, max_bytes=len(raw), max_inst=1, opt_level=0)
        except self._pyvex.PyVEXError:
            return None
        if not 0 < block.size <= len(raw) or block.jumpkind in _UNDECODED:
            return None
        return Translation(block, base, self._registers, self.machine, raw).instruction()

    def _undecoded(self, found: Disassembled | None) -> Instruction:
        """Return the known effects of an instruction that VEX does not know.

        :param found: the instruction by capstone.
        """
        if found is None or found.may_jump:
            return STOP
        described = self.machine.describe(found)
        if described is None:
            return self.machine.anything(found.size)
        return described if described is STOP or not described.is_whole else with_sources(described, found)


def _register_numbers(arch: Any, machine: Machine) -> dict[int, int]:
    """Return the numbers of registers by their offsets in VEX's guest state."""
    numbers = {arch.get_register_offset(name): number for name, number in machine.vex_registers.items()}
    numbers[arch.ip_offset] = PC
    numbers[arch.get_register_offset("cc_ndep")] = IGNORED
    low, high = (8, 0) if machine.big_endian else (0, 8)
    for name, number in machine.vex_vectors.items():
        offset = arch.get_register_offset(name)
        # s390x: a floating-point register is the upper half of a vector register.
        numbers[offset + low] = number if not machine.big_endian else number + HIGH
        numbers[offset + high] = number + HIGH if not machine.big_endian else number
    return numbers


def _is_relative(found: tuple[Any, ...]) -> bool:
    """Return whether any part of an instruction is relative to the instruction's address."""
    if len(found) == 2 and found[0] in (PC_RELATIVE, PAGE_RELATIVE) and isinstance(found[1], int):
        return True
    return any(_is_relative(part) for part in found if isinstance(part, tuple))
