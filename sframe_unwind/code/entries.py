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
    first = function.start + (plt.first - function.start) % plt.entry_size
    return {address: frame.entry() for address in range(max(first, plt.first), function.end, plt.entry_size)}
