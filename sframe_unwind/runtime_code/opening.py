"""Opens the registration lists of a process.

Most processes have none, so the modules that read them are imported on demand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

from sframe_unwind.arch import Arch
from sframe_unwind.memory import ReadMemory
from sframe_unwind.runtime_code.names import JIT_SYMBOL, LIST_FUNCTION, LIST_SYMBOL

if TYPE_CHECKING:
    from sframe_unwind.runtime_code.head import FindSymbol
    from sframe_unwind.runtime_code.source import RunTimeCode


def open_run_time_code(
    arch: Arch, read: ReadMemory, find: FindSymbol, report: Callable[[str], None]
) -> RunTimeCode | None:
    """Return the run-time code of a process; ``None``: the process has no registration list.

    The parameters are those of :class:`sframe_unwind.runtime_code.source.RunTimeCode`.
    """
    if not has_list(find):
        return None
    from sframe_unwind.runtime_code.source import RunTimeCode

    return RunTimeCode(arch, read, find, report)


def has_list(find: FindSymbol) -> bool:
    """Return whether there is a symbol of a registration list.

    :param find: finds symbols.
    """
    return any(list(find(name)) for name in (LIST_SYMBOL, LIST_FUNCTION, JIT_SYMBOL))
