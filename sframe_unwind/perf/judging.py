"""Unwinds the samples of a recording by several methods, and compares each stack with that of DWARF CFI."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import Enum

from sframe_unwind.address import lookup_address
from sframe_unwind.arch import Arch
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.perf.by_code import CodeWitness, Right
from sframe_unwind.perf.constants import REGS_ABI_32, REGS_ABI_64
from sframe_unwind.perf.ending import Ending
from sframe_unwind.perf.machines import dwarf_registers
from sframe_unwind.perf.methods import METHODS, UNCERTAIN_ENDS
from sframe_unwind.perf.sample import Sample
from sframe_unwind.perf.sample_memory import SampleMemory
from sframe_unwind.perf.spaces import Space, Spaces
from sframe_unwind.perf.stack import Context, Stack
from sframe_unwind.perf.unusable import Unusable

REFERENCE = "dwarf"
"""The method with which the others are compared."""


OTHER_CALLER = "another caller than that of the CFI"
CALLED_OUTERMOST = "it is called the outermost frame"


class Verdict(Enum):
    """The quality of a stack."""

    COMPLETE = "complete"
    """It reaches the start of the thread."""
    CUT = "cut"
    """It reaches the end of the part of the stack that was copied."""
    FAILED = "failed"
    """It ends earlier."""
    WRONG = "wrong"
    """It differs from the stack by the CFI."""


class Judged(NamedTuple):
    """The stack of a sample by one method, and its verdict."""

    stack: Stack
    verdict: Verdict
    blocked_at: int | None
    """Index of the frame whose caller is missing or wrong; ``None``: the stack is complete or cut."""
    reason: str
    shared: int
    """Number of frames, from the innermost one on, that the CFI also gives."""
    right: Right | None = None
    """The stack that is right according to the code, if SFrame and the CFI differ.

    ``None``: they agree, or the extra ``code`` is absent.
    """


class Unwound(NamedTuple):
    """A sample with its stacks."""

    sample: Sample
    space: Space
    by_method: dict[str, Judged]
    frames_by_cfi: int
    """Number of frames of the stack by DWARF CFI, which need not be among the methods."""


def judge(method: str, stack: Stack, reference: Stack) -> Judged:
    """Judge a stack.

    Frame pointers and the kernel can end early without a sign of it, so an early end is a failure there.  SFrame that
    ends early, at a frame that it marks as the outermost one, is wrong.
    """
    shorter = min(len(stack.pcs), len(reference.pcs))
    same = shorter
    if stack.pcs != reference.pcs:
        same = next((n for n in range(shorter) if stack.pcs[n] != reference.pcs[n]), shorter)
    is_prefix, is_whole = same == len(stack.pcs), same == len(reference.pcs)
    if reference.ending is Ending.REACHED and is_prefix and is_whole:
        return Judged(stack, Verdict.COMPLETE, None, "", same)
    if not is_prefix and not (is_whole and reference.ending is not Ending.REACHED):
        return Judged(stack, Verdict.WRONG, max(same - 1, 0), OTHER_CALLER, same)
    if stack.ending is Ending.CUT:
        return Judged(stack, Verdict.CUT, None, "", same)
    last = len(stack.pcs) - 1
    if stack.ending is Ending.REACHED:
        if is_whole:
            return Judged(stack, Verdict.COMPLETE, None, "", same)
        if method in UNCERTAIN_ENDS:
            return Judged(stack, Verdict.FAILED, last, UNCERTAIN_ENDS[method], same)
        return Judged(stack, Verdict.WRONG, last, CALLED_OUTERMOST, same)
    return Judged(stack, Verdict.FAILED, last, stack.reason, same)


class Judge:
    """Unwinds samples.

    :param methods: names of :data:`METHODS`.
    """

    def __init__(self, arch: Arch, spaces: Spaces, methods: Sequence[str]) -> None:
        self._arch = arch
        self._spaces = spaces
        self._methods = tuple(methods)
        self._witness = CodeWitness()
        self.samples = 0
        """Number of samples that were seen."""
        self.unusable: Counter[Unusable] = Counter()
        """Numbers of samples that cannot be unwound, by reason."""

    def take(self, sample: Sample) -> Unwound | None:
        """Unwind a sample; ``None``: it has no user stack."""
        self.samples += 1
        arch = self._arch
        if sample.abi != REGS_ABI_64:
            self.unusable[Unusable.OF_32_BIT if sample.abi == REGS_ABI_32 else Unusable.WITHOUT_REGISTERS] += 1
            return None
        registers = dwarf_registers(arch, sample.registers)
        if not {arch.pc, arch.sp, arch.fp} <= registers.keys():
            self.unusable[Unusable.WITHOUT_POINTERS] += 1
            return None
        if not sample.stack:
            self.unusable[Unusable.WITHOUT_STACK] += 1
            return None
        space = self._spaces.of(sample.pid)
        memory = SampleMemory(space, registers[arch.sp], registers[arch.fp], sample.stack, arch.byteorder)
        context = Context(
            arch=arch,
            space=space,
            registers=registers,
            memory=memory,
            stack_is_cut=sample.stack_is_cut,
            user_chain=sample.user_chain,
        )
        reference = METHODS[REFERENCE](context)
        found = {}
        for name in self._methods:
            stack = reference if name == REFERENCE else METHODS[name](context)
            judged = judge(name, stack, reference)
            if judged.verdict is Verdict.WRONG and judged.blocked_at is not None and name.startswith("sframe"):
                shared = list(frames(stack))[: judged.blocked_at + 1]
                judged = judged._replace(right=self._witness.right(space, shared))
            found[name] = judged
        return Unwound(sample, space, found, len(reference.pcs))


def frames(stack: Stack) -> Iterator[int]:
    """Yield the lookup address of each frame."""
    for pc, interrupted in zip(stack.pcs, stack.interrupted):
        yield lookup_address(pc, interrupted)
