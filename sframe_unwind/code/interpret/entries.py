"""Finds the places where functions are entered, and the states there."""

from __future__ import annotations

from sframe_unwind.code.image.ranges import CodeRange
from sframe_unwind.code.interpret.interpretation import Interpreter
from sframe_unwind.code.interpret.run import Prover, Run
from sframe_unwind.code.interpret.state import State
from sframe_unwind.code.interpret.values import CFA

_MOST_PUSHED = 256
"""Maximum number of bytes that are pushed before an entry: the headers of PLTs push 16."""


def entries(interpreter: Interpreter, function: CodeRange) -> dict[int, State]:
    """Return the addresses at which a function is entered from elsewhere, with the states there.

    Each entry of a procedure linkage table is one; the table's header is reached only from the entries.
    """
    frame = interpreter.frame
    plt = interpreter.image.plt(function.start)
    if plt is None:
        return {function.start: frame.entry()}
    first = function.start + (plt.first - function.start) % plt.entry_size
    return {address: frame.entry() for address in range(max(first, plt.first), function.end, plt.entry_size)}


def interpreted(
    interpreter: Interpreter,
    function: CodeRange,
    entered: dict[int, State],
    through_calls: bool = False,
    is_by_abi: bool = False,
    prover: Prover | None = None,
) -> Run:
    """Interpret a function; if its end shows that it is not entered by the ABI, interpret it again in other states.

    The header of a procedure linkage table pushes two words before it jumps to the dynamic linker, which removes them
    at the end, and jumps to the called function.  Any other function that removes more from the stack than it pushed
    has an error.  `__fentry__` of s390x jumps only to what a register held at its entry that is not the ABI's for
    return addresses.

    :param entered: by address, the states in which the function is entered according to the ABI.
    :param through_calls: see :meth:`Interpreter.run`.
    :param is_by_abi: whether its rows show that it is entered by the ABI; that is also assumed if it has a return.
    :param prover: see :meth:`Interpreter.run`.
    """
    run = interpreter.run(function, entered, through_calls, prover=prover)
    if not is_by_abi and _may_have_other_link(interpreter, function, run):
        for link in interpreter.machine.other_links:
            linked = dict.fromkeys(entered, interpreter.frame.entry(link=link))
            again = interpreter.run(function, linked, through_calls, prover=prover)
            if again.complete and again.returns_to == {interpreter.frame.return_address}:
                return again
    pushed = _pushed(interpreter, run)
    if not pushed or (is_by_abi and run.has_return):
        return run
    entered = {address: interpreter.frame.entry(pushed) for address in entered}
    again = interpreter.run(function, entered, through_calls, prover=prover)
    return again._replace(pushed=pushed) if again.stack_pointers_at_end == {interpreter.frame.entry_sp} else run


def _may_have_other_link(interpreter: Interpreter, function: CodeRange, run: Run) -> bool:
    """Return whether a function may return through another register than the ABI's: it jumps, and has no return."""
    return (
        run.complete and bool(run.returns_to) and not run.has_return and interpreter.image.plt(function.start) is None
    )


def _pushed(interpreter: Interpreter, run: Run) -> int:
    """Return how many bytes more than by the ABI are on the stack at a function's entry, as its end shows."""
    if not run.complete or len(run.stack_pointers_at_end) != 1:
        return 0
    ((base, offset),) = run.stack_pointers_at_end
    pushed = offset - interpreter.frame.entry_sp[1]
    return pushed if base == CFA and 0 < pushed <= _MOST_PUSHED else 0
