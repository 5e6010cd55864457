"""Finds the mask that strips a signed return address.  A made-up frame has the mask registers: no emulator has them."""

from __future__ import annotations

from collections.abc import Iterator

import gdb

from gdb_plugin.process import registers
from sframe_unwind.arch import BY_NAME
from sframe_unwind.unwind.step import step
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule, saved_at_cfa

ABI = BY_NAME["aarch64"]
SIGNED = (0x5A00_0012_3456_7890, 0x3A00_7F12_3456_7890)
MASK_39 = 0xFF7F_FF80_0000_0000
RULE = UnwindRule(RegisterRule(ABI.sp, 16, False), saved_at_cfa(-8), None, ra_signed=True)


class Register:
    """A register descriptor."""

    def __init__(self, name: str) -> None:
        self.name = name


class Registers:
    """The registers of an architecture."""

    def __init__(self, names: list[str]) -> None:
        self._registers = {name: Register(name) for name in names}

    def __iter__(self) -> Iterator[Register]:
        return iter(self._registers.values())

    def find(self, name: str) -> Register | None:
        """Return a register by its name, as GDB does."""
        return self._registers.get(name)


class Architecture:
    """An architecture with or without mask registers."""

    def __init__(self, *more: str) -> None:
        self._registers = Registers([*(f"x{n}" for n in range(31)), "sp", "pc", *more])

    def registers(self, group: str = "") -> Registers:
        """Return the registers, as GDB does, but all of them in each group."""
        return self._registers


class Frame:
    """A frame whose mask register holds a value, or cannot be read."""

    def __init__(self, architecture: Architecture, mask: int | None) -> None:
        self._architecture = architecture
        self._mask = mask

    def architecture(self) -> Architecture:
        """Return the architecture, as GDB does."""
        return self._architecture

    def read_register(self, register: Register) -> gdb.Value:
        """Return the value of a register, as GDB does."""
        if self._mask is None:
            raise gdb.error(f"{register.name} is not available")
        return gdb.Value(self._mask)


def collect() -> dict[str, list[int]]:
    """Return two stripped return addresses for each form in which the target gives the mask."""
    told, silent = Architecture("pauth_dmask", "pauth_cmask"), Architecture()
    frames = {
        "told": Frame(told, MASK_39),
        "not told": Frame(silent, None),
        "unreadable": Frame(told, None),
        "zero": Frame(told, 0),
    }
    return {name: [_stripped(frame, signed) for signed in SIGNED] for name, frame in frames.items()}


def _stripped(frame: Frame, signed: int) -> int:
    mask = registers.Registers(frame.architecture(), ABI).pac_mask(frame)
    return step(RULE, ABI, 0x1000, 0, lambda _: signed, pac_mask=mask).pc
