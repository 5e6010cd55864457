"""Rules of SFrame and CFI that give the same caller, and the lookup of both in the modules of a process."""

from __future__ import annotations

import pytest

from sframe_unwind.arch import BY_NAME
from sframe_unwind.cfi.agreement import agrees
from sframe_unwind.cfi.section import CfiSection, SectionData
from sframe_unwind.errors import MemoryReadError
from sframe_unwind.memory import LazyBytes
from sframe_unwind.unwind.modules import Module, Modules
from sframe_unwind.unwind_rule import COMPUTED, OUTERMOST, UNDEFINED, RegisterRule, UnwindRule, saved_at_cfa
from tests.cfi.addressed import AT, END, records
from tests.cfi.addressed import FORMS as ADDRESSES
from tests.cfi.addressed import START as CODE
from tests.cfi.encoding import AMD64, START

CFA8, CFA16 = RegisterRule(7, 8, False), RegisterRule(7, 16, False)
RA, FP = saved_at_cfa(-8), saved_at_cfa(-16)
OTHERS = ((3, saved_at_cfa(-24)),)


def in_register(number: int) -> RegisterRule:
    """Return the rule for a value in a register."""
    return RegisterRule(number, 0, False)


@pytest.mark.parametrize(
    ("sframe", "cfi", "arch", "agree"),
    [
        (UnwindRule(CFA8, RA, None), UnwindRule(CFA8, RA, None, False, ()), "amd64", True),
        (UnwindRule(CFA8, RA, FP), UnwindRule(CFA8, RA, FP, False, OTHERS), "amd64", True),
        (UnwindRule(CFA16, RA, FP), UnwindRule(CFA8, RA, FP), "amd64", False),
        (UnwindRule(CFA8, RA, FP), UnwindRule(CFA8, RA, None), "amd64", False),
        (UnwindRule(CFA8, RA, None), UnwindRule(CFA8, RA, UNDEFINED), "amd64", False),
        (UnwindRule(CFA8, RA, None), UnwindRule(CFA8, RA, COMPUTED), "amd64", False),
        (UnwindRule(CFA8, RA, None), UnwindRule(CFA8, None, None), "amd64", False),
        (UnwindRule(CFA8, RA, None), UnwindRule(CFA8, RA, in_register(6)), "amd64", True),
        (OUTERMOST, OUTERMOST, "amd64", True),
        (OUTERMOST, UnwindRule(CFA8, RA, None), "amd64", False),
        (UnwindRule(CFA8, RA, None), OUTERMOST, "amd64", False),
        (UnwindRule(CFA8, None, None), UnwindRule(CFA8, in_register(30), in_register(29)), "aarch64", True),
        (UnwindRule(CFA8, None, None), UnwindRule(CFA8, in_register(29), None), "aarch64", False),
        (UnwindRule(CFA8, RA, FP, True), UnwindRule(CFA8, RA, FP, True), "aarch64", True),
        (UnwindRule(CFA8, RA, FP, True), UnwindRule(CFA8, RA, FP, False), "aarch64", False),
        (UnwindRule(CFA8, in_register(14), None), UnwindRule(CFA8, None, in_register(11)), "s390x", True),
        (UnwindRule(CFA8, in_register(16), None), UnwindRule(CFA8, in_register(17), None), "s390x", False),
    ],
)
def test_agreement(sframe: UnwindRule, cfi: UnwindRule, arch: str, agree: bool) -> None:
    assert agrees(sframe, cfi, BY_NAME[arch]) is agree


def loaded(reads: list[int], broken: bool = False) -> Modules:
    """Return a module with a function, whose memory counts the reads."""
    data = records("<", *ADDRESSES["absolute"])

    def fetch(offset: int, size: int) -> bytes:
        reads.append(offset)
        if broken:
            raise MemoryReadError(AT + offset, size)
        return data[offset : offset + size]

    def load() -> CfiSection:
        return CfiSection(SectionData(AT, LazyBytes(fetch, len(data))), None, AMD64)

    return Modules(AMD64, [Module("program", [(CODE, END + 0x100)], lambda: None, load)])


def test_rule_of_an_address() -> None:
    reads: list[int] = []
    modules = loaded(reads)
    assert not reads
    assert modules.cfi_rule(CODE) == UnwindRule(CFA8, RA, None, False, ())
    assert modules.cfi_rule(CODE + 1) == UnwindRule(CFA16, RA, FP, False, ())
    once = len(reads)
    assert modules.find(CODE) is modules.modules[0]
    assert modules.modules[0].cfi_rule(CODE) is modules.cfi_rule(CODE)
    assert modules.cfi_rule(END) is None
    assert modules.cfi_rule(START) is None
    assert len(reads) == once


def test_agreement_at_an_address() -> None:
    modules = loaded([])
    sframe, other = UnwindRule(CFA16, RA, FP), UnwindRule(CFA8, RA, None)
    for _ in range(2):
        assert modules.cfi_agrees(CODE + 1, sframe)
        assert not modules.cfi_agrees(CODE + 1, other)
        assert modules.cfi_agrees(CODE, other)
        assert not modules.cfi_agrees(END, other)


def test_what_cannot_be_read_has_no_rule() -> None:
    modules = loaded([], broken=True)
    assert modules.cfi_rule(CODE) is None
    assert not modules.has_cfi(CODE)
    with pytest.raises(MemoryReadError):
        modules.cfi_match(CODE)


def test_rules_are_forgotten_when_modules_change() -> None:
    reads: list[int] = []
    first, second = loaded(reads).modules[0], Module("other", [(CODE, END)], lambda: None)
    found = [[first], [second]]
    modules = Modules(AMD64, [], discover=lambda: found.pop(0))
    assert modules.cfi_rule(CODE) is not None
    modules.look_again()
    assert modules.cfi_rule(CODE) is None
