"""Finds the rows of one interpreted function, and of the code that it leads to with its frame."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum

from sframe_unwind.code.decode.instruction import PC_RELATIVE, Kind
from sframe_unwind.code.interpret.interpretation import Interpreter
from sframe_unwind.code.interpret.run import Run, address_of
from sframe_unwind.code.interpret.state import State
from sframe_unwind.code.interpret.values import ENTRY
from sframe_unwind.code.interpret.walk import walk
from sframe_unwind.code.judge.judgement import Judge, Judgement, SumRule
from sframe_unwind.code.judge.proofs import is_quiet
from sframe_unwind.code.rows.rule import Candidate, bases_of, candidate, others
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind_rule import UnwindRule

_MOST_JUMPS = 4
"""Maximum number of jumps from one to the next that are followed to a trap."""


class Basis(Enum):
    """The assumptions of a rule."""

    PROVED = "proved"
    """The function is entered by the ABI; the code from there to the instruction proves the rule."""
    BY_ABI = "by ABI"
    """There is a call on some path to the instruction; the callee returns, and preserves registers by the ABI."""


class FoundRule(NamedTuple):
    """The rule for an instruction."""

    rule: UnwindRule
    basis: Basis
    b_key: bool = False
    """The return address is signed, with the B key."""
    added: int = 0
    """The CFA is a word in memory plus this constant in bytes, which no :class:`UnwindRule` can hold."""

    def is_same(self, other: FoundRule) -> bool:
        """Return whether another rule computes the same values."""
        return self.rule == other.rule and self.added == other.added


def rules_of(
    interpreter: Interpreter, judge: Judge, run: Run, registers: Sequence[int] = ()
) -> dict[int, FoundRule | None]:
    """Return the rule before each instruction that a run reaches, by address; ``None``: it is not known.

    :param registers: DWARF numbers of further registers that the rules have, and that the interpreter follows.  The
        rules are then as in CFI: they may also add a constant to a word in memory, and the frame pointer may be lost.
    """
    if not run.complete or run.pushed or _has_other_link(interpreter, run):
        return {}
    rules = _Rules(interpreter, judge, run, registers)
    before_calls = _before_calls(interpreter, run)
    found: dict[int, FoundRule | None] = {}
    for block in sorted(run.states):
        basis = Basis.PROVED if block in before_calls else Basis.BY_ABI
        for pc, rule in rules.of_block(block):
            known = None if rule is None else FoundRule(rule.rule, basis, rule.b_key, rule.added)
            found[pc] = known if pc not in found or found[pc] == known else None
    return found


def _has_other_link(interpreter: Interpreter, run: Run) -> bool:
    """Return whether a function returns only to what callee-saved registers held at its entry.

    Then it is not entered by the ABI: it is a part of another function, which has kept its return address there.
    """
    links = {ENTRY + number for number in interpreter.machine.preserved} - {interpreter.frame.return_address[0]}
    return bool(run.returns_to) and all(base in links and not offset for base, offset in run.returns_to)


class _Rules:
    """Finds the rules of one interpreted function."""

    def __init__(self, interpreter: Interpreter, judge: Judge, run: Run, registers: Sequence[int]) -> None:
        self._interpreter = interpreter
        self._judge = judge
        self._run = run
        self._registers = registers
        frame = interpreter.frame
        self._usual = frozenset(number for number in (frame.sp, frame.fp, frame.ra) if number is not None)

    def of_block(self, block: int) -> Iterator[tuple[int, Candidate | None]]:
        """Yield the address of each instruction of a block, with its rule."""
        instructions = self._interpreter.sweep_at(address_of(block)).instructions
        rule: Candidate | None = None
        is_known = False
        for pc, state in walk(self._interpreter, self._run, block):
            if not is_known:
                rule = self._find(block, state, rule) if self._is_followed(block) else None
            yield pc, self._with_others(rule, state) if rule is not None and self._registers else rule
            instruction = instructions.get(pc)
            # A base that calls overwrite may be saved in the frame by the next instruction.
            has_usual = rule is None or bases_of(rule.rule) <= self._usual
            is_known = has_usual and instruction is not None and is_quiet(instruction, self._usual)

    def _is_followed(self, block: int) -> bool:
        """Return whether rules are looked for in a block: in certain code, in cases of tables, and at traps.

        Compilers that know all values of an index do not compare it with a limit.  A table is then read to the first
        entry that is no address in the function.  What an entry after its end names is another case, or never executed.

        Compilers put a trap, or a jump to one, after a call that does not return.  It is reached if the call returns
        after all, and then in the state that is known.
        """
        if block not in self._run.guessed or block in self._run.listed:
            return True
        at = address_of(block)
        for _ in range(_MOST_JUMPS):
            instruction = self._interpreter.sweep_at(at).instruction(at)
            if instruction.kind is not Kind.JUMP or instruction.target is None or instruction.target[0] != PC_RELATIVE:
                return instruction.kind is Kind.TRAP
            at += instruction.target[1]
        return False

    def _find(self, block: int, state: State, before: Candidate | None) -> Candidate | None:
        """Return the rule in a state: the simplest one, or that of the instruction before if it still holds."""
        for found in (candidate(self._interpreter.frame, state, bool(self._registers)), before):
            if found is None:
                continue
            rule = SumRule(found.rule, found.added) if found.added else found.rule
            if self._judge.judge_in(self._run, block, rule, state).worst is Judgement.PROVED:
                return found
        return None

    def _with_others(self, found: Candidate, state: State) -> Candidate:
        """Return a rule with the places of the other registers that change."""
        kept = others(self._interpreter.frame, state, self._registers)
        return found._replace(rule=found.rule._replace(others=kept))


def _before_calls(interpreter: Interpreter, run: Run) -> set[int]:
    """Return the blocks that are reached without a call on any path."""
    after: set[int] = set()
    leads_to: dict[int, set[int]] = {}
    for block, sources in run.sources.items():
        for source in sources:
            leads_to.setdefault(source.block, set()).add(block)
            if interpreter.sweep_at(source.pc).instruction(source.pc).kind is Kind.CALL:
                after.add(block)
    waiting = list(after)
    while waiting:
        for block in leads_to.get(waiting.pop(), ()):
            if block not in after:
                after.add(block)
                waiting.append(block)
    return set(run.states) - after


class Rows(NamedTuple):
    """The rows of one piece of code without a gap."""

    start: int
    """Start address."""
    end: int
    """Address after the last byte."""
    offsets: list[int]
    """Start of each row, in bytes from :attr:`start`."""
    rules: list[FoundRule]

    @property
    def b_key(self) -> bool:
        """Whether return addresses are signed with the B key."""
        return any(found.b_key for found in self.rules)


class RuleCounts(NamedTuple):
    """Numbers of rules, by what they rest on."""

    proved: int
    """Of :attr:`Basis.PROVED`."""
    by_abi: int
    """Of :attr:`Basis.BY_ABI`."""


def counted_rules(pieces: Iterable[Rows]) -> RuleCounts:
    """Count the rules of some code."""
    by_abi = [found.basis is Basis.BY_ABI for piece in pieces for found in piece.rules]
    return RuleCounts(by_abi.count(False), by_abi.count(True))


def _is_by_other_key(found: FoundRule, rows: Rows) -> bool:
    """Return whether a signed return address has another key than that of some rows: a function has one in tables."""
    return any(other.rule.ra_signed and other.b_key != found.b_key for other in rows.rules)


def rule_in(pieces: Iterable[Rows], address: int) -> FoundRule | None:
    """Return the rule for an address; ``None``: no piece of code with rows contains it."""
    piece = next((one for one in pieces if one.start <= address < one.end), None)
    return None if piece is None else piece.rules[bisect_right(piece.offsets, address - piece.start) - 1]


def joined(interpreter: Interpreter, start: int, end: int, found: Mapping[int, FoundRule | None]) -> list[Rows]:
    """Return the rows of a function, in several pieces if there is code in it without a rule.

    Padding that nothing reaches belongs to the row before it: it is never executed.  After an instruction that is not
    known, it may be.

    :param found: the rule before each instruction.
    """
    pieces: list[Rows] = []
    sweep, is_padding = interpreter.sweep_at(start), interpreter.machine.is_padding
    current: Rows | None = None
    pc, before = start, Kind.NEXT
    while pc < end:
        instruction = sweep.instruction(pc)
        size = max(instruction.size, 1)
        known = found.get(pc)
        is_unreached = pc not in found and before is not Kind.STOP
        if is_unreached and current is not None and is_padding(sweep.bytes_at(pc, size)):
            known = current.rules[-1]
        if known is None:
            current = None
        elif current is None:
            current = Rows(pc, pc + size, [0], [known])
            pieces.append(current)
        else:
            if known.rule.ra_signed and _is_by_other_key(known, current):
                current = Rows(pc, pc + size, [0], [known])
                pieces.append(current)
            elif not known.is_same(current.rules[-1]):
                current.offsets.append(pc - current.start)
                current.rules.append(known)
            elif known.basis is Basis.BY_ABI:
                current.rules[-1] = known
        pc, before = pc + size, instruction.kind
        if current is not None:
            current = pieces[-1] = current._replace(end=min(pc, end))
    return pieces
