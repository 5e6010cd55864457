"""Checks the tables of a file in one function, and in the code that it leads to."""

from __future__ import annotations

from functools import partial

from sframe_unwind import unwind_rule
from sframe_unwind.code.decode.instruction import Instruction, Kind
from sframe_unwind.code.image.ranges import CodeRange
from sframe_unwind.code.interpret.entries import entries, interpreted
from sframe_unwind.code.interpret.state import State
from sframe_unwind.code.interpret.walk import walk
from sframe_unwind.code.judge.explanation import vector_lengths
from sframe_unwind.code.judge.findings import Finding, Part
from sframe_unwind.code.judge.judgement import (
    NOT_BY_ABI,
    NOT_REACHED,
    PROVED,
    Judgement,
    Judgements,
    RowRule,
    ScaledRule,
    SumRule,
    plain,
)
from sframe_unwind.code.judge.proofs import is_quiet
from sframe_unwind.code.judge.table_judge import TableJudge
from sframe_unwind.code.judge.tables import Rows
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind_rule import UnwindRule

_VALUES = ("cfa", "ra", "fp")
_MAX_FINDINGS = 200
"""Maximum number of findings for one function: random bytes have one at each instruction."""


class _Place(NamedTuple):
    """Where a table's rule is judged."""

    table: str
    block: int
    pc: int
    state: State
    is_first: bool
    """Whether the program starts in this function."""


class FunctionCheck:
    """The check of one function, and of the code that it leads to.

    :param entered: the states in which it is entered, by address; ``None``: as by a call.
    :param rows: its rows, if they are known already.
    """

    def __init__(
        self,
        judge: TableJudge,
        function: CodeRange,
        entered: dict[int, State] | None = None,
        rows: dict[str, Rows] | None = None,
    ) -> None:
        self._judge = judge
        self._all = judge.interpreter
        self._function = function
        if entered is None:
            # Signal trampolines are entered with the frame of a handler that returned.
            is_signal = any(table.is_signal(function) for table in judge.tables.values())
            entered = {} if is_signal else entries(self._all, function)
        self.instructions = 0
        self._rows: dict[CodeRange, dict[str, Rows]] = {}
        self._bases: dict[CodeRange, frozenset[int]] = {}
        self._verdicts: dict[int, dict[str, dict[int, Judgements]]] = {}
        self._describe(function, judge.rows(function) if rows is None else rows)
        self._findings: dict[int, list[Finding]] = {}
        self._unreached: set[int] = set()
        self._open: dict[tuple[str, str], tuple[object, int]] = {}
        is_by_abi = self._is_entered_by_abi()
        proofs = judge.proofs(self._described(function), self._bases_of(function))
        interpret = partial(interpreted, self._all, is_by_abi=is_by_abi, prover=proofs)
        self.run = interpret(function, entered)
        link = self._link()
        if link is not None:
            linked = dict.fromkeys(entered, self._all.frame.entry(link=link))
            run = interpret(function, linked)
            if run.complete and run.returns_to == {self._all.frame.return_address}:
                self.run, entered = run, linked
        self.rests_on_effects = bool(self.run.called) and (self.run.rests_on_call or self._has_other_base())
        """Whether the registers were examined that called functions of the file change."""
        if self.rests_on_effects:
            self.run = interpret(function, entered, through_calls=True)
        self._entered = entered
        self._is_disputed = is_by_abi and self.run.pushed > 0

    def _is_entered_by_abi(self) -> bool:
        """Return whether the tables have the row of an entry by the ABI at the start of a function."""
        entry = self._all.frame.entry()
        rules = (rows.at(self._function.start) for rows in self._described(self._function).values())
        judged = [self._judge.judge_alone(rule, entry).worst for rule in rules if rule is not None]
        return bool(judged) and max(judged) is Judgement.PROVED

    def _link(self) -> int | None:
        """Return the register with the return address at the entry according to the rows; ``None``: the ABI's.

        ``brasl %r0,__fentry__`` enters a function in such a way.
        """
        frame = self._all.frame
        if frame.ra is None:
            return None
        rules = (plain(rows.at(self._function.start) or "") for rows in self._described(self._function).values())
        places = {rule.ra for rule in rules if rule is not None}
        place = places.pop() if len(places) == 1 else None
        return (
            place.base
            if place is not None and place.base in self._all.machine.general and not place.in_memory
            else None
        )

    def _has_other_base(self) -> bool:
        """Return whether a rule uses a register other than the CFA, the stack pointer and the frame pointer."""
        usual = (unwind_rule.CFA, self._all.frame.sp, self._all.frame.fp)
        for rows in self._described(self._function).values():
            for rule in (plain(row) for row in rows.rules if row is not None):
                if rule is not None:
                    places = (rule.cfa, rule.ra, rule.fp)
                    if any(place is not None and place.base not in usual for place in places):
                        return True
        return False

    def parts(self) -> dict[int, Part]:
        """Return the findings, by the start of the function in which they were found."""
        run = self.run
        self._described(self._function)
        for start in sorted(run.states):
            if start in run.proved and not self._is_disputed:
                self._add_proved(start, run.proved[start])
                continue
            current = self._all.ranges.find(start)
            if current is not None:
                self._block(start, current)
        if run.meets and run.complete:
            self._prove_apart()
        self._add_unreached()
        parts = {
            start: Part(verdicts, tuple(self._findings.get(start, ()))) for start, verdicts in self._verdicts.items()
        }
        own = self._function.start
        parts[own] = parts[own]._replace(unreached=frozenset(self._unreached))
        return parts

    def _described(self, function: CodeRange) -> dict[str, Rows]:
        if function not in self._rows:
            self._describe(function, self._judge.rows(function))
        return self._rows[function]

    def _describe(self, function: CodeRange, rows: dict[str, Rows]) -> None:
        self._rows[function] = rows
        self._verdicts[function.start] = {table: {} for table in rows}

    def _add_proved(self, start: int, end: int) -> None:
        """Record that all rules were proved in a block of the function itself."""
        pcs = self._all.sweeps.sweep(self._function).addresses(start, end)
        for table, rows in self._described(self._function).items():
            if rows.rules:
                self._verdicts[self._function.start][table].update(dict.fromkeys(pcs, PROVED))

    def _block(self, start: int, function: CodeRange) -> None:
        rows, verdicts = self._described(function), self._verdicts[function.start]
        is_first = function.start == self._all.image.entry_point
        unknown: dict[str, Judgements] = {}
        proved: dict[str, RowRule] = {}
        if function not in self._bases:
            self._bases[function] = self._bases_of(function)
        bases = self._bases[function]
        instructions = self._all.sweep_at(start).instructions
        for pc, state in walk(self._all, self.run, start):
            instruction = instructions.get(pc)
            quiet = instruction is not None and is_quiet(instruction, bases)
            for table, described in rows.items():
                rule = described.at(pc)
                if rule is None:
                    continue
                place = _Place(table, start, pc, state, is_first)
                judged = PROVED if rule is proved.get(table) else self._judged(place, rule, unknown)
                if judged is PROVED:
                    proved[table] = rule
                within = None if instruction is None else _row_within(described, pc, instruction)
                if within is not None and (inner := self._judged(place, within, unknown)) is not PROVED:
                    judged = judged.joined(inner)
                verdicts[table][pc] = judged
            if not quiet:
                proved.clear()

    def _judged(self, place: _Place, rule: RowRule, unknown: dict[str, Judgements]) -> Judgements:
        """Judge a rule, and record its errors.

        :param unknown: by table, the last unknown judgement in the block; this method adds to it.
        """
        table, start, pc, state, is_first = place
        judged = self._judge.judge(self.run, start, rule, state)
        if judged is PROVED and self._is_disputed:
            judged = NOT_BY_ABI
        if judged is PROVED:
            return judged
        if is_first and isinstance(rule, UnwindRule) and rule.ra_undefined:
            return PROVED  # the outermost frame has no caller
        if isinstance(rule, str):
            return judged
        self._note(table=table, row=rule, judged=judged, block=start, pc=pc, state=state)
        if self._judge.origins and judged.worst is Judgement.UNKNOWN:
            if judged[:4] != unknown.get(table, ())[:4]:
                unknown[table] = self._judge.with_origin(
                    judged=judged, rule=rule, run=self.run, block=start, pc=pc, state=state
                )
            return unknown[table]
        return judged

    def _prove_apart(self) -> None:
        """Prove the provable rules in loops that move the stack pointer; these are followed round by round."""
        verdicts = self._verdicts[self._function.start]
        left = {table: [pc for pc, one in known.items() if _is_open(one)] for table, known in verdicts.items()}
        if not any(left.values()):
            return
        self.rests_on_effects |= bool(self.run.called)
        run = self._all.run(self._function, self._entered, through_calls=True, apart=True)
        self.run = self.run._replace(is_local=self.run.is_local and run.is_local)
        if not run.complete:
            return
        worst: dict[tuple[str, int], Judgement] = {}
        rows = self._described(self._function)
        for start in run.states:
            for pc, state in walk(self._all, run, start):
                for table in left:
                    rule = rows[table].at(pc)
                    if rule is not None and _is_open(verdicts[table].get(pc, PROVED)):
                        judged = self._judge.judge(run, start, rule, state).worst
                        worst[table, pc] = max(judged, worst.get((table, pc), Judgement.PROVED))
        for (table, pc), judged in worst.items():
            if judged is Judgement.PROVED:
                verdicts[table][pc] = PROVED

    def _bases_of(self, function: CodeRange) -> frozenset[int]:
        """Return the registers that the rules of a function use."""
        frame, rows = self._all.frame, self._described(function)
        bases = {frame.sp, frame.fp, *(() if frame.ra is None else (frame.ra,))}
        for row in (row for described in rows.values() for row in described.rules if row is not None):
            rule = plain(row)
            places = () if rule is None else (rule.cfa, rule.ra, rule.fp)
            bases.update(place.base for place in places if place is not None)
        return frozenset(bases)

    def _note(
        self, table: str, row: UnwindRule | SumRule | ScaledRule, judged: Judgements, block: int, pc: int, state: State
    ) -> None:
        """Record the errors of a rule, and the values that are wrong if callees change all that the ABI permits."""
        rule, added = plain(row), row.added if isinstance(row, SumRule) else 0
        assert rule is not None
        scales = row.scales._asdict() if isinstance(row, ScaledRule) else {}
        clobbered = self._judge.clobbered(rule, state)
        if judged.worst is not Judgement.WRONG and not clobbered:
            return
        function = self._all.ranges.find(pc)
        assert function is not None
        findings = self._findings.setdefault(function.start, [])
        end = pc + self._all.sweep_at(pc).instruction(pc).size
        for what, verdict in zip(_VALUES, judged):
            if verdict is Judgement.WRONG:
                assumes: tuple[str, ...] = ()
            elif verdict is Judgement.UNKNOWN and what in clobbered:
                assumes = (f"callee changes {self._all.machine.arch.register_name(clobbered[what])}",)
            else:
                continue
            key = (self._error(what, rule, state), scales.get(what))
            known = self._open.get((table, what))
            if known is not None and known[0] == key and known[1] < len(findings) and findings[known[1]].end == pc:
                findings[known[1]] = findings[known[1]]._replace(end=end)
            elif len(findings) < _MAX_FINDINGS:
                self._open[table, what] = key, len(findings)
                found = self._judge.finding(
                    table=table, what=what, rule=rule, run=self.run, block=block, pc=pc, state=state, end=end
                )
                said = f"{found.rule}, plus {added}" if added and what == "cfa" else found.rule
                said += vector_lengths(scales.get(what, 0))
                findings.append(found._replace(assumes=assumes, rule=said))

    @staticmethod
    def _error(what: str, rule: UnwindRule, state: State) -> object:
        """Return a key that is equal for the findings of adjacent instructions if they are the same error."""
        if what == "cfa":
            assert rule.cfa is not None
            value = state.registers.get(rule.cfa.base)
            # If a table misses a push, all later offsets are wrong by the same amount.
            return rule.cfa.base, None if value is None else (value[0], value[1] + rule.cfa.offset)
        return (rule.ra, rule.ra_signed) if what == "ra" else rule.fp

    def _add_unreached(self) -> None:
        """Count the function's instructions; those to which no path leads are unknown."""
        function = self._function
        sweep, padding = self._all.sweeps.sweep(function), self._all.machine.is_padding
        rows, verdicts = self._described(function), self._verdicts[function.start]
        in_plt = self._all.image.plt(function.start) is not None  # which has data between its entries
        reached: set[int] = set().union(*verdicts.values()) if verdicts else set()
        self.instructions += len(reached - sweep.instructions.keys())  # within others
        for pc, instruction in sweep.instructions.items():
            if pc not in reached:
                if pc in sweep.executed or in_plt or padding(sweep.bytes_at(pc, instruction.size)):
                    continue
                for table, described in rows.items():
                    if described.at(pc) is not None:
                        verdicts[table][pc] = NOT_REACHED
                self._unreached.add(pc)
            self.instructions += 1


def _row_within(rows: Rows, pc: int, instruction: Instruction) -> RowRule | None:
    """Return the rule of a row that begins within a call: while the callee runs, unwinders look up its last byte."""
    if instruction.kind is not Kind.CALL:
        return None
    within = rows.at(pc + instruction.size - 1)
    return within if within is not rows.at(pc) else None


def _is_open(judged: Judgements) -> bool:
    return judged.worst is Judgement.UNKNOWN
