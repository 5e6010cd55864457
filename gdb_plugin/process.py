"""One inferior in the core's terms: its architecture, registers, memory and modules."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable

import gdb

from gdb_plugin.frame_history import FrameHistory
from gdb_plugin.memory import read
from gdb_plugin.modules import discover_modules, list_modules
from gdb_plugin.plans import Plan, make_plan
from gdb_plugin.registers import Registers
from gdb_plugin.settings import Settings
from gdb_plugin.symbols import Symbols
from sframe_unwind.address import ADDRESS_MASK, WORD_SIZE
from sframe_unwind.arch import Arch
from sframe_unwind.errors import MemoryReadError
from sframe_unwind.memory import WordReader
from sframe_unwind.runtime_code.opening import open_run_time_code
from sframe_unwind.unwind.modules import Found, Modules
from sframe_unwind.unwind_rule import CFA

_LIMIT = 200_000
"""Plans to keep; stepping through a program for hours must not fill the memory."""


class Process:
    """What unwinding needs of one inferior between two changes of its modules.

    :param symbols: finds what the process has registered at run time.
    :param report: shows one line to the user.
    """

    def __init__(
        self, architecture: gdb.Architecture, arch: Arch, symbols: Symbols, report: Callable[[str], None]
    ) -> None:
        self.arch = arch
        self.read_word = WordReader(read, arch.byteorder)
        """For one frame: whoever reads another one drops what it has kept."""
        self.run_time = open_run_time_code(arch, read, symbols.addresses, report)
        self.modules = Modules(
            arch, list_modules(arch), report, partial(discover_modules, arch), self.run_time
        )
        self.history = FrameHistory(self._is_signal_frame, self._returns_to)
        self._registers: dict[gdb.Architecture, Registers] = {}
        self._plans: dict[int, Plan] = {}
        self._settings = Settings()
        first = Registers(architecture, arch)
        self._registers[architecture] = first
        self.pc_register = first.pc
        """Of the first frame that was seen; it has the same number in all frames of a process."""

    def registers(self, frame: Any) -> Registers:
        """Return the registers of a (pending) frame.

        Frames of one process can differ in their architecture: AArch64 with SVE, where the signal handler's frame
        says that the vectors were of another length.
        """
        architecture = frame.architecture()
        known = self._registers.get(architecture)
        if known is None:
            known = self._registers[architecture] = Registers(architecture, self.arch)
        return known

    def plan(self, frame: gdb.PendingFrame, pc: int, settings: Settings) -> Plan:
        """Return what to do with a pending frame."""
        if settings != self._settings:
            self._plans.clear()
            self._settings = settings
        plan = self._plans.get(pc)
        if plan is None:
            if len(self._plans) >= _LIMIT:
                self._plans.clear()
            strips = not self.arch.pac_mask or self.registers(frame).pac_mask(frame) is not None
            plan = self._plans[pc] = make_plan(self.modules, settings, pc, strips)
        return plan

    def look_again(self) -> None:
        """Look once more for code that came or went: the process has run."""
        self.modules.look_again()
        if not self.modules.answers:
            self._plans.clear()

    def run_time_name(self, pc: int) -> str:
        """Return what the code at an address was registered as at run time; empty for any other code."""
        return self.run_time.name(pc) if self.run_time is not None else ""

    def _is_signal_frame(self, pc: int) -> bool:
        found = self.modules.answers[pc]
        if isinstance(found, Found) and found.signal:
            return True
        codes = [frame.code for frame in self.arch.signal_frames]
        try:
            return read(pc, max(map(len, codes))).startswith(tuple(codes))
        except MemoryReadError:
            return False

    def _returns_to(self, inner_pc: int, pc: int, sp: int) -> bool:
        """Return whether a frame that was left to GDB has a return address where it returns to another frame."""
        cfa = sp - self.arch.sp_from_cfa & ADDRESS_MASK
        self.read_word.forget()
        offsets = {self._ra_offset(address) for address in (inner_pc, inner_pc - 1)} - {None}
        for offset in offsets:
            try:
                word = self.read_word(cfa + (offset or 0) & ADDRESS_MASK)
            except MemoryReadError:
                continue
            if pc in (word, self.arch.strip(word, self.arch.pac_mask)):
                return True
        return not offsets  # nobody knows; most frames are called

    def _ra_offset(self, address: int) -> int | None:
        """Return where the return address is from the CFA on, ``None`` where it is elsewhere or not known."""
        found = self.modules.answers[address]
        rule = found.rule if isinstance(found, Found) else self.modules.cfi_rule(address)
        if rule is None:
            return -WORD_SIZE if self.arch.ra is None else None
        place = rule.ra
        return place.offset if place is not None and place.base == CFA and place.in_memory else None
