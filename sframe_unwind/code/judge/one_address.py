"""Judges the rules for one address of a function whose bytes are given, for debuggers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Callable

from sframe_unwind.arch import Arch
from sframe_unwind.code.decode.lifting import Lifter
from sframe_unwind.code.decode.machines import MACHINES
from sframe_unwind.code.image.code_image import CodeImage, CodeSection, Plt
from sframe_unwind.code.image.not_returning import is_not_returning
from sframe_unwind.code.image.ranges import CodeRange, CodeRanges
from sframe_unwind.code.interpret.entries import interpreted
from sframe_unwind.code.interpret.interpretation import Interpreter
from sframe_unwind.code.interpret.state import State
from sframe_unwind.code.interpret.walk import walk
from sframe_unwind.code.judge.caller_registers import CallerRegisters
from sframe_unwind.code.judge.explanation import Explainer
from sframe_unwind.code.judge.judgement import NOT_BY_ABI, NOT_REACHED, Judge, Judgement, Judgements, not_known
from sframe_unwind.errors import MemoryReadError
from sframe_unwind.memory import ReadMemory
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule

NameOf = Callable[[int], str]
"""Returns the name of the symbol that begins at an address, in the linker's spelling; empty: none does."""

_VALUES = ("cfa", "ra", "fp")
_SUFFIXES = (".cold", ".part")
"""Suffixes of the names that compilers give to parts that they split off a function."""
_SPLIT_OFF = not_known("a compiler moved the code out of a function, and the frame that it runs with is not known")
_MAX_STEPS = 100_000
"""Maximum number of executed instructions for one function: a user waits for it."""


class WrongValue(NamedTuple):
    """A wrong value of a rule."""

    what: str
    """``cfa``, ``ra`` or ``fp``."""
    rule: str
    """The value by the rule."""
    code: str
    """The value by the code, and the instruction after which it differs."""


class AddressVerdict(NamedTuple):
    """The code's verdict on one rule."""

    judgements: Judgements
    wrong: tuple[WrongValue, ...]

    @property
    def is_proved(self) -> bool:
        """Whether the code proves all values of the rule."""
        return self.judgements.worst is Judgement.PROVED

    @property
    def why(self) -> str:
        """Why it is unknown whether the rule is right; empty: it is known, or the reason is unknown."""
        return self.judgements.why if self.judgements.worst is Judgement.UNKNOWN else ""

    def __str__(self) -> str:
        if self.wrong:
            return f"wrong: the code has {'; '.join(value.code for value in self.wrong)}"
        return self.judgements.worst.name.lower()


class FunctionCode:
    """One function, interpreted once for all questions about it.

    :param start: address of its first byte.
    :param code: its bytes.
    :param name: name of the function; empty: not known.
    :param read: reads jump tables and constants elsewhere; ``None``: they are not known.
    :param name_of: used to find functions that do not return; ``None``: their names are not known.
    :param stub_size: size of one stub in bytes, if the code is a procedure linkage table; each stub is an entry.
    :param tracked: the registers for which :meth:`caller_registers` will be called.
    :raises MissingExtraError: the package that decodes the code is not installed.
    """

    def __init__(
        self,
        arch: Arch,
        start: int,
        code: bytes,
        name: str = "",
        read: ReadMemory | None = None,
        name_of: NameOf | None = None,
        stub_size: int = 0,
        tracked: Sequence[int] = (),
    ) -> None:
        self.name = name
        lifter = lifter_of(arch.name)
        self._function = CodeRange(start, start + len(code))
        image = _Image(arch, CodeSection(start, code, True, False), read, stub_size)
        self._interpreter = Interpreter(
            image=image,
            machine=lifter.machine,
            lifter=lifter,
            ranges=CodeRanges([self._function]),
            landing_pads=lambda _: (),
            max_steps=_MAX_STEPS,
            tracked=tracked,
        )
        if name_of is not None:
            called = {target for _, target in self._interpreter.sweep_at(start).calls()}
            self._interpreter.not_returning.update(target for target in called if is_not_returning(name_of(target)))
        # A part that a compiler split off a function is entered with the function's frame, which is unknown here.
        self._is_part = any(suffix in name for suffix in _SUFFIXES)
        starts = range(start, start + len(code), stub_size) if stub_size else (start,)
        entry = self._interpreter.frame.entry
        entries = {} if self._is_part else {at: entry() for at in starts}
        self._run = interpreted(self._interpreter, self._function, entries)
        self._judge = Judge(self._interpreter.frame)
        self._explainer = Explainer(self._interpreter)
        self._callers = CallerRegisters(self._interpreter, self._run, self._function, tracked)
        self._verdicts: dict[tuple[int, UnwindRule], AddressVerdict] = {}

    @property
    def is_complete(self) -> bool:
        """Whether the whole function was interpreted; otherwise that took too long, and the rest is unknown."""
        return self._run.complete

    def is_entered_with(self, rule: UnwindRule) -> bool:
        """Return whether a rule holds before the first instruction, provided that a call enters the function there."""
        return self._judge.judge(rule, self._interpreter.frame.entry()).worst is Judgement.PROVED

    @property
    def leaves(self) -> bool:
        """Whether a path leaves the function, by a return or by a jump to another function, or may."""
        return self._run.returns

    @property
    def returns(self) -> bool:
        """Whether a path ends in a return, or in a jump to the value of a register."""
        return bool(self._run.returns_to)

    def worst(self, rule: UnwindRule) -> tuple[Judgement, int]:
        """Return the worst judgement of a rule over all reached instructions, and the first address with it.

        It is unknown if none is reached, or if the function was interpreted only in part.
        """
        found = Judgement.PROVED if self._run.states and self._run.complete else Judgement.UNKNOWN, self._function.start
        for block in sorted(self._run.states):
            for at, state in walk(self._interpreter, self._run, block):
                judged = self._judge.judge_in(self._run, block, rule, state).worst
                if judged > found[0]:
                    found = judged, at
        return found

    def verdict(self, pc: int, rule: UnwindRule) -> AddressVerdict:
        """Judge a rule for the instruction that contains an address.  The result is cached: callers stay the same."""
        known = self._verdicts.get((pc, rule))
        if known is None:
            known = self._verdicts[pc, rule] = self._judged(pc, rule)
        return known

    def _judged(self, pc: int, rule: UnwindRule) -> AddressVerdict:
        found = self._find(pc)
        if found is None:
            return AddressVerdict(_SPLIT_OFF if self._is_part else NOT_REACHED, ())
        block, at, state = found
        judged = self._judge.judge_in(self._run, block, rule, state)
        if self._run.pushed and judged.worst is Judgement.PROVED:
            judged = NOT_BY_ABI
        wrong = []
        for what, judgement in zip(_VALUES, judged):
            if judgement is Judgement.WRONG:
                said = self._explainer.explain(what=what, rule=rule, run=self._run, block=block, pc=at, state=state)
                since = f" since `{said.origin.text}` at {said.origin.address:#x}" if said.origin is not None else ""
                wrong.append(WrongValue(what, said.rule, said.code + since))
        return AddressVerdict(judged, tuple(wrong))

    def caller_registers(self, pc: int, rule: UnwindRule) -> dict[int, RegisterRule | None]:
        """Return the places of the caller's registers at an address, as the code proves them; ``None``: unchanged.

        :param rule: the rule for the address; the offsets of slots count from its CFA.
        """
        found = self._find(pc)
        if found is None:
            return {}
        block, _, state = found
        cfa = self._judge.judge_in(self._run, block, rule, state).cfa
        return {} if cfa is Judgement.WRONG else self._callers.at(state, cfa is Judgement.PROVED)

    def _find(self, pc: int) -> tuple[int, int, State] | None:
        """Return the block and the start of the instruction that contains an address, and the state before it."""
        sweep = self._interpreter.sweep_at(pc)
        # The nearest block first: it is mostly the right one, and walking all earlier ones takes most of the time of a
        # step.
        for block in sorted((start for start in self._run.states if start <= pc), reverse=True):
            for at, state in walk(self._interpreter, self._run, block):
                if at > pc:
                    break
                if pc < at + sweep.instruction(at).size:
                    return block, at, state
        return None


@cache
def lifter_of(arch: str) -> Lifter:
    """Return the lifter of a machine; it remembers the instructions that it has seen."""
    return Lifter(MACHINES[arch])


class _Image(CodeImage):
    """A function, and the other memory of the process to which it refers.

    That memory may change while the process runs, but hardly ever does: jump tables, constants too large for an
    instruction, and addresses of functions.
    """

    def __init__(self, arch: Arch, code: CodeSection, read: ReadMemory | None, stub_size: int) -> None:
        self._read_memory = read
        plts = (Plt(code.start, code.end, code.start, stub_size),) if stub_size else ()
        super().__init__([code], "big" if arch.byteorder == "big" else "little", plts=plts)

    def read(self, address: int, size: int) -> int | None:
        """Return the unsigned number at an address at this moment."""
        found = super().read(address, size)
        if found is not None or self._read_memory is None:
            return found
        try:
            return int.from_bytes(self._read_memory(address, size), self.byteorder)
        except MemoryReadError:
            return None

    def read_constant(self, address: int, size: int) -> int | None:
        """Return the number at an address, as :meth:`read`: it is not known which memory cannot change."""
        return self.read(address, size)
