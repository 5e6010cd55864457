"""Guesses the callers of frames that no unwind data describes."""

from __future__ import annotations

from functools import partial

from sframe_unwind.arch import Arch
from sframe_unwind.memory import ReadMemory, ReadWord
from sframe_unwind.process.register_history import RegisterHistory
from sframe_unwind.process.target import Code
from sframe_unwind.unwind import frame_pointer
from sframe_unwind.unwind.after_call import follows_call
from sframe_unwind.unwind.modules import Found
from sframe_unwind.unwind.walk import Registers, UnwindResult


class Guess:
    """Guesses the callers of one thread's frames.

    :param read: reads the memory of the process.
    :param history: the frames that the walk has passed.
    """

    def __init__(self, arch: Arch, code: Code, read: ReadMemory, read_word: ReadWord, history: RegisterHistory) -> None:
        self._arch = arch
        self._code = code
        self._read = read
        self._read_word = read_word
        self._history = history

    def unwind(self, registers: Registers, may_be_leaf: bool) -> UnwindResult | None:
        """Return the caller of a frame; ``None``: no guess is plausible.

        :param may_be_leaf: whether the frame was interrupted and has no CFI.  It can then be that of a leaf function,
            which sets up no frame pointer, and whose return address is still where the call put it.
        """
        is_code = self._code.is_code
        if may_be_leaf and not isinstance(self._code.modules.results[registers.pc], Found):
            is_caller = partial(self._calls, registers.pc) if is_code(registers.pc) else is_code
            read_register = self._history.read_register
            found = frame_pointer.unwind_untouched(self._arch, self._read_word, registers, read_register, is_caller)
            if found is not None or not is_code(registers.pc):
                return found
        result = frame_pointer.unwind(self._arch, self._read_word, registers, is_code)
        if result is not None and not self._arch.frame_record.at_end:
            self._history.note_guessed_sp()
        return result

    def _calls(self, pc: int, caller: int) -> bool:
        """Return whether a leaf function can have been called.

        :param pc: address in the leaf function.
        :param caller: lookup address of its caller.
        """
        if not self._code.is_code(caller) or not follows_call(self._arch, caller + 1, self._read):
            return False
        own, other = self._function(pc), self._function(caller)
        # If the function has made a call, the register for the return address leads to the function itself.
        return own != other if own is not None else self._arch.ra is None

    def _function(self, pc: int) -> int | None:
        """Return the start of the function that contains an address; ``None``: no symbol covers it."""
        found = self._code.find(pc)
        match = found.function_at(pc) if found is not None else None
        return pc - match.offset if match is not None else None
