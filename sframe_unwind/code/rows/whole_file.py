"""Finds the rows of all functions of a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sframe_unwind.code.decode.instruction import Kind
from sframe_unwind.code.image.ranges import CodeRange
from sframe_unwind.code.interpret.entries import entries, interpreted
from sframe_unwind.code.interpret.interpretation import Interpreter
from sframe_unwind.code.interpret.run import Run, address_of
from sframe_unwind.code.interpret.walk import walk
from sframe_unwind.code.judge.checking import Checker
from sframe_unwind.code.judge.judgement import Judge
from sframe_unwind.code.judge.whole_file import learned
from sframe_unwind.code.rows.function import FoundRule, Rows, joined, rule_in, rules_of
from sframe_unwind.code.rows.rule import bases_of
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind_rule import UnwindRule


class FunctionRows(NamedTuple):
    """The rows of one function."""

    start: int
    """Start address."""
    end: int
    """Address after the last byte."""
    pieces: list[Rows]
    """The code with rows; empty: no rule is known in the function."""
    instructions: list[int]
    """The addresses of its instructions."""
    unreached: frozenset[int]
    """The addresses of those to which no known path leads; padding among them has the row before it."""
    after_exits: frozenset[int]
    """The addresses of those that follow the end of a path: a return or an unconditional jump."""

    def rule_at(self, address: int) -> UnwindRule | None:
        """Return the rule for an address of the function; ``None``: it is not known."""
        found = rule_in(self.pieces, address)
        return None if found is None else found.rule


def rows_of_functions(
    interpreter: Interpreter, jobs: int = 1, registers: Sequence[int] = (), only: Sequence[int] | None = None
) -> Iterator[FunctionRows]:
    """Yield the rows of each function of a file.

    The effects of functions on their callers are found first, as the check of tables does.

    :param jobs: number of processes for the search of these effects.
    :param registers: DWARF numbers of further registers that the rules have; the interpreter follows them.
    :param only: the numbers of the functions to examine, ascending; ``None``: all.
    """
    parts = learned(Checker(interpreter, {}), jobs, only)
    judge = Judge(interpreter.frame)
    ranges = interpreter.ranges
    chosen = range(len(ranges)) if only is None else only
    elsewhere: dict[int, FoundRule | None] = {}
    own: dict[int, dict[int, FoundRule | None]] = {}
    for function in map(ranges.__getitem__, chosen):
        if function.start not in parts:
            own[function.start] = followed(interpreter, judge, function, elsewhere, registers)
    for function in map(ranges.__getitem__, chosen):
        found = own.get(function.start)
        if found is not None:
            found = agreeing(found, elsewhere)
        else:  # the function is entered with the frames of other functions, whose rules must agree
            found = {pc: elsewhere[pc] for pc in range(*function) if pc in elsewhere}
        instructions = interpreter.sweep_at(function.start).instructions
        exits = (at + one.size for at, one in instructions.items() if one.kind in (Kind.JUMP, Kind.RETURN))
        yield FunctionRows(
            start=function.start,
            end=function.end,
            pieces=joined(interpreter, *function, found),
            instructions=list(instructions),
            unreached=frozenset(at for at in instructions if at not in found),
            after_exits=frozenset(exits),
        )


def followed(
    interpreter: Interpreter,
    judge: Judge,
    function: CodeRange,
    elsewhere: dict[int, FoundRule | None],
    registers: Sequence[int] = (),
) -> dict[int, FoundRule | None]:
    """Return the rules of a function by address, and add those of the other functions that are entered with its frame.

    :param elsewhere: gets the latter, by address.
    """
    run, found = run_with_rules(interpreter, judge, function, registers)
    for address in sorted(run.called):
        other = interpreter.within_another(address, function)
        if other is not None:
            called = interpreter.run(other, {address: interpreter.frame.entry()})
            _add(elsewhere, rules_of(interpreter, judge, called, registers))
    if not found:  # it is not entered by the ABI, or too large: its frame is not known where it leads to others
        blocks = [block for block in run.states if interpreter.ranges.find(address_of(block)) != function]
        found = {pc: None for block in blocks for pc, _ in walk(interpreter, run, block)}
    own: dict[int, FoundRule | None] = {}
    for pc, known in found.items():
        if function.start <= pc < function.end:
            own[pc] = known
        else:
            _add(elsewhere, {pc: known})
    return own


def _add(elsewhere: dict[int, FoundRule | None], found: Mapping[int, FoundRule | None]) -> None:
    """Add rules for another way into some code; rules that differ are not known."""
    for pc, known in found.items():
        elsewhere[pc] = known if pc not in elsewhere or elsewhere[pc] == known else None


def agreeing(
    found: Mapping[int, FoundRule | None], elsewhere: Mapping[int, FoundRule | None]
) -> dict[int, FoundRule | None]:
    """Return the rules of a function by address that are the same for other ways into it."""
    return {pc: known if _agrees(known, elsewhere.get(pc, known)) else None for pc, known in found.items()}


def _agrees(known: FoundRule | None, other: FoundRule | None) -> bool:
    """Return whether a rule is the same for another way into the code."""
    return known is not None and other is not None and known.is_same(other)


def run_with_rules(
    interpreter: Interpreter, judge: Judge, function: CodeRange, registers: Sequence[int] = ()
) -> tuple[Run, dict[int, FoundRule | None]]:
    """Interpret a function as it is entered, and find its rules, with the effects of its callees where these matter.

    They matter where the stack pointer, a saved register or a rule rests on another register that calls preserve.
    """
    entered = entries(interpreter, function)
    if interpreter.image.plt(function.start) is not None:
        run = interpreter.run(function, entered)  # its header ends with two words on the stack, for the dynamic linker
    else:
        run = interpreted(interpreter, function, entered)
    found: dict[int, FoundRule | None] = {}
    if not (run.called and run.rests_on_call):
        found = rules_of(interpreter, judge, run, registers)
    if run.called and (run.rests_on_call or _has_other_base(interpreter, found)):
        run = interpreted(interpreter, function, entered, through_calls=True)
        found = rules_of(interpreter, judge, run, registers)
    return run, found


def _has_other_base(interpreter: Interpreter, found: Mapping[int, FoundRule | None]) -> bool:
    """Return whether a rule uses a register other than the stack pointer, the frame pointer and the link register."""
    frame = interpreter.frame
    usual = {frame.sp, frame.fp, frame.ra}
    rules = {known.rule for known in found.values() if known is not None}
    return any(not bases_of(rule) <= usual for rule in rules)
