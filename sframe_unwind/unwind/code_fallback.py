"""Unwinds frames of functions whose start only the frame itself shows, by their machine code.

Where the code does not tell, debuggers guess; :func:`may_return_to` refutes some of these guesses.
"""

from __future__ import annotations

from sframe_unwind.address import lookup_address
from sframe_unwind.arch import Arch
from sframe_unwind.memory import ReadMemory, ReadRegister, ReadWord
from sframe_unwind.unwind import signal_frame
from sframe_unwind.unwind.after_call import follows_call
from sframe_unwind.unwind.code_match import CODE, AskedFrame
from sframe_unwind.unwind.modules import Found, Modules
from sframe_unwind.unwind.modules_by_code import ModulesByCode
from sframe_unwind.unwind.step import step
from sframe_unwind.unwind.walk import Registers, UnwindResult


class CodeFallback:
    """Unwinds frames for which :meth:`sframe_unwind.unwind.modules_by_code.ModulesByCode.learn` finds a rule.

    From then on, the modules have the rule for other frames of the function, too.

    :param pac_mask: see :func:`sframe_unwind.unwind.step.step`.
    """

    def __init__(self, modules: Modules, read_word: ReadWord, pac_mask: int | None = None) -> None:
        self._modules = modules
        self._read_word = read_word
        self._pac_mask = pac_mask

    def unwind(
        self, registers: Registers, interrupted: bool, read_register: ReadRegister | None
    ) -> UnwindResult | None:
        """Return the caller of a frame; ``None``: the frame does not show where its function begins.

        The parameters and exceptions are those of :attr:`sframe_unwind.unwind.walk.FallbackUnwinder.unwind`.
        """
        pc, sp, fp = registers
        modules, frame = self._modules, AskedFrame(pc, sp, fp, interrupted, read_register)
        if not isinstance(modules, ModulesByCode) or not modules.learn(frame):
            return None
        found = modules.results[lookup_address(pc, interrupted)]
        if not isinstance(found, Found):
            return None
        if found.rule.ra_undefined:
            return UnwindResult(None, False, None, CODE)
        caller = step(
            rule=found.rule,
            arch=modules.arch,
            sp=sp,
            fp=fp,
            read_word=self._read_word,
            read_register=read_register,
            pac_mask=self._pac_mask,
        )
        return UnwindResult(caller, False, None, CODE)


def may_return_to(arch: Arch, pc: int, read: ReadMemory) -> bool:
    """Return whether a function may return to an address: after a call, or to a signal trampoline."""
    return follows_call(arch, pc, read) or signal_frame.is_trampoline(arch, read, pc)
