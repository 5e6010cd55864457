"""Where functions are entered, and in which state."""

from __future__ import annotations

from sframe_unwind.code.interpretation import Interpreter
from sframe_unwind.code.ranges import CodeRange
from sframe_unwind.code.state import State


def entries(interpreter: Interpreter, function: CodeRange) -> dict[int, State]:
    """Return the addresses at which a function is entered from elsewhere, and the states there.

    Each entry of a procedure linkage table is one; its header is reached from them alone.
    """
    frame = interpreter.frame
    plt = interpreter.image.plt(function.start)
    if plt is None:
        return {function.start: frame.entry()}
    found = range(max(plt.first, function.start - (function.start - plt.first) % plt.entry_size), function.end, plt.entry_size)
    starts = [address for address in found if address >= function.start]
    return {address: frame.entry() for address in starts}
