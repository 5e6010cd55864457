"""Unwinds frames by the machine code of their functions, where no unwind data describes them.

This needs the extra ``code``, and the file with the code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sframe_unwind.address import lookup_address
from sframe_unwind.arch import Arch
from sframe_unwind.code.rows.stack_words import FrameValues
from sframe_unwind.elf.symbols import Symbols
from sframe_unwind.errors import MissingExtraError
from sframe_unwind.memory import ReadRegister
from sframe_unwind.process.elf_file import ElfFile
from sframe_unwind.process.register_history import RegisterHistory
from sframe_unwind.process.target import UnwindableCode
from sframe_unwind.process.unwinder import StackMemory
from sframe_unwind.unwind.code_fallback import may_return_to
from sframe_unwind.unwind.code_match import CODE
from sframe_unwind.unwind.step import step
from sframe_unwind.unwind.walk import Registers, UnwindResult

if TYPE_CHECKING:
    from sframe_unwind.code.rows.at_address import CodeRow, CodeRows


def rows_of_file(file: ElfFile, symbols: Symbols) -> CodeRows | None:
    """Return the rows that the code of a file gives; ``None``: the extra ``code`` is not installed.

    :param symbols: the symbols of the file, or of its separate debug file.
    """
    # Not before a frame needs it: most stacks do without.
    from sframe_unwind.code.rows.at_address import CodeRows

    try:
        return CodeRows(file.path, symbols)
    except MissingExtraError:
        return None


class CodeUnwinder:
    """Unwinds frames of one thread.

    :param history: the frames that the walk has passed.
    """

    def __init__(self, arch: Arch, code: UnwindableCode, memory: StackMemory, history: RegisterHistory) -> None:
        self._arch = arch
        self._code = code
        self._memory = memory
        self._history = history

    def unwind(self, registers: Registers, interrupted: bool) -> UnwindResult | None:
        """Return the caller of a frame; ``None``: the code does not tell it.

        A caller is returned only if its pc follows a call, or is the return address of a signal handler: functions are
        entered in no other way by the ABI.

        :param interrupted: the pc is not a return address; see :func:`sframe_unwind.address.lookup_address`.
        :raises SFrameError: the code tells it, but the step fails.
        """
        read_register = self._history.read_register
        row = self._row(registers, interrupted, read_register)
        if row is None:
            return None
        if row.rule.ra_undefined:
            return UnwindResult(None, False, None, CODE)
        if row.rule.ra is None and not interrupted:
            return None  # calls overwrite its register
        if self._history.is_sp_guessed and row.rule.cfa is not None and row.rule.cfa.base == self._arch.sp:
            return None
        caller = step(
            rule=row.rule,
            arch=self._arch,
            sp=registers.sp,
            fp=registers.fp,
            read_word=self._memory.read_frame_word,
            read_register=read_register,
        )
        return (
            UnwindResult(caller, False, None, CODE) if may_return_to(self._arch, caller.pc, self._memory.read) else None
        )

    def _row(self, registers: Registers, interrupted: bool, read_register: ReadRegister) -> CodeRow | None:
        lookup = lookup_address(registers.pc, interrupted)
        placed = self._code.code_rows(lookup)
        if placed is None:
            return None
        frame = FrameValues(
            sp=registers.sp,
            fp=registers.fp,
            read_word=self._memory.read_frame_word,
            read=self._memory.read,
            bias=placed.bias,
            read_register=read_register if interrupted else None,
        )
        return placed.rows.of_frame(lookup - placed.bias, frame)
