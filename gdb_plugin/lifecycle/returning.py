"""Prevents ``return`` from destroying registers whose values are unknown.

``return`` writes the caller's registers back.  GDB leaves out registers that it does not know, so they keep the values
of the function that is left, and the caller fails if it still needs them.  In frames of GDB's own unwinders, GDB knows
all registers that a function preserves by the psABI.  In a frame that only SFrame describes, it does not.
"""

from __future__ import annotations

import gdb

from gdb_plugin.frames.unwinder import SFrameUnwinder
from gdb_plugin.lifecycle.session import Session
from gdb_plugin.version import REFUSES_INLINED_RETURN
from sframe_unwind.debugger.settings import OFF

_NAME = "maintenance check-sframe-return"
_SHARED = (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME)


class CheckReturn(gdb.Command):
    """Fail if 'return' would destroy registers of the caller of the selected frame.

    Run by GDB before each 'return'.
    """

    def __init__(self, unwinder: SFrameUnwinder, session: Session) -> None:
        self._unwinder = unwinder
        self._session = session
        super().__init__(_NAME, gdb.COMMAND_MAINTENANCE)
        try:
            gdb.execute("show user hook-return", to_string=True)
        except gdb.error:  # the user has defined none
            gdb.execute(f"define hook-return\n{_NAME}\nend", to_string=True)

    def invoke(self, argument: str, from_tty: bool) -> None:
        """Run the command."""
        unknown = self._unknown() if self._unwinder.settings.mode != OFF else []
        if unknown:
            raise gdb.GdbError(
                f"sframe: the caller's {', '.join(unknown)} cannot be restored, which SFrame does not describe;"
                " 'set sframe mode off' leaves the frame to GDB"
            )

    def _unknown(self) -> list[str]:
        """Return the names of the registers that the caller of the selected frame may need and GDB does not know."""
        try:
            frame = gdb.selected_frame()
            unwinding = self._session.current(frame)
            caller = frame.older()
            while caller is not None and caller.type() in _SHARED:
                caller = caller.older()
            if unwinding is None or caller is None or (frame.type() == gdb.INLINE_FRAME and REFUSES_INLINED_RETURN):
                return []
        except gdb.error:
            return []  # 'return' itself reports this
        process = unwinding.process
        registers = process.registers(caller).by_number
        return [
            process.arch.register_name(number)
            for number in process.arch.preserved
            if registers[number] is not None and _is_unknown(caller, registers[number])
        ]


def _is_unknown(frame: gdb.Frame, register: gdb.RegisterDescriptor) -> bool:
    try:
        return bool(frame.read_register(register).is_optimized_out)
    except gdb.error:
        return True
