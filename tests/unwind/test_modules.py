"""Lookup in the modules of a process, and that each problem is reported once."""

from __future__ import annotations

from sframe_unwind.errors import FormatError, MemoryReadError
from sframe_unwind.memory import LazyBytes
from sframe_unwind.sframe.constants import ARCH_BY_ABI, AbiNumber
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Match
from sframe_unwind.unwind.modules import Found, Module, Modules, NoData, Unusable
from tests.unwind.world import CODE, module, sp_based

AMD64 = AbiNumber.AMD64_ENDIAN_LITTLE
ABI = ARCH_BY_ABI[AMD64]


def one_function() -> Module:
    return module(AMD64, {(CODE, 0x40): [(4, sp_based(ABI, 16))]})


def test_answers() -> None:
    modules = Modules(ABI, [one_function(), Module("bare", [(0x5000, 0x6000)], lambda: None)])
    covered = modules.results[CODE + 4]
    assert isinstance(covered, Found)
    assert isinstance(covered.match, Match)
    assert (covered.match.function.start, covered.match.row_start) == (CODE, 4)
    assert not covered.needs_registers
    expected = {
        CODE + 3: "the address lies before the first row of the function at 0x10000",
        CODE + 0x40: "no SFrame function contains the address",
        0x5000: "the module has no SFrame section",
        0x6000: "no module has code there",
        0: "no module has code there",
    }
    for pc, reason in expected.items():
        answer = modules.results[pc]
        assert isinstance(answer, NoData)
        assert answer.reason == reason


def test_a_module_within_another_hides_nothing_after_it() -> None:
    """The vDSO, or a JIT image, can lie in a gap between the parts of another module."""
    outer = Module("outer", [(0x1000, 0x9000)], lambda: None)
    inner = Module("inner", [(0x3000, 0x4000)], lambda: None)
    modules = Modules(ABI, [inner, outer])
    expected = {0xFFF: None, 0x1000: outer, 0x3000: inner, 0x3FFF: inner, 0x4000: outer, 0x5000: outer, 0x9000: None}
    assert {pc: modules.find(pc) for pc in expected} == expected


def test_malformed_section_is_reported_once() -> None:
    lines: list[str] = []
    modules = Modules(ABI, [Module("lib.so", [(0, 0x100)], lambda: Section(b"nonsense" * 8, 0))], lines.append)
    answers = [modules.results[pc] for pc in range(5)]
    assert all(isinstance(answer, Unusable) for answer in answers)
    assert lines == [
        "lib.so: SFrame data not used: no SFrame header:"
        " expected magic number 0xdee2, found bytes 6e6f (.sframe offset 0x0)"
    ]


def test_unreadable_section_is_reported_once() -> None:
    def fetch(offset: int, size: int) -> bytes:
        raise MemoryReadError(0x7000 + offset, size)

    lines: list[str] = []
    modules = Modules(ABI, [Module("lib.so", [(0, 9)], lambda: Section(LazyBytes(fetch, 100), 0x7000))], lines.append)
    assert isinstance(modules.results[1], Unusable)
    assert isinstance(modules.results[2], Unusable)
    assert lines == ["lib.so: SFrame data not used: cannot read 100 bytes of memory at 0x7000"]


def test_section_for_another_abi_is_not_used() -> None:
    foreign = module(
        AbiNumber.S390X_ENDIAN_BIG, {(CODE, 0x40): [(0, sp_based(ARCH_BY_ABI[AbiNumber.S390X_ENDIAN_BIG], 160))]}
    )
    answer = Modules(ABI, [foreign]).results[CODE]
    assert isinstance(answer, Unusable)
    assert isinstance(answer.error, FormatError)
    assert "SFrame for s390x in a process of amd64" in str(answer.error)


def test_discovery_is_asked_once_until_told_to_look_again() -> None:
    calls: list[int] = []
    present: list[Module] = []

    def discover() -> list[Module]:
        calls.append(1)
        return present

    modules = Modules(ABI, [], discover=discover)
    assert isinstance(modules.results[CODE + 4], NoData)
    assert isinstance(modules.results[CODE + 5], NoData)
    assert len(calls) == 1
    present.append(one_function())
    assert isinstance(modules.results[CODE + 4], NoData)  # nothing has run meanwhile
    modules.look_again()
    assert isinstance(modules.results[CODE + 4], Found)
    assert len(calls) == 2
    found = modules.find(CODE)
    present[:] = [one_function()]
    modules.look_again()
    assert modules.find(CODE) is found  # the same module keeps what it has read
    present.clear()
    modules.look_again()
    assert isinstance(modules.results[CODE + 4], NoData)  # unloaded: nothing stale


def test_discovered_module_does_not_replace_the_debuggers() -> None:
    """The debugger gives a module's whole span, the program headers only its code."""
    known = Module("by the debugger", [(CODE - 0x1000, CODE + 0x2000)], lambda: None)
    modules = Modules(ABI, [known], discover=lambda: [one_function()])
    assert modules.find(0) is None
    assert modules.find(CODE) is known
    assert modules.modules == (known,)
