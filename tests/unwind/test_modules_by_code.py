"""Lookups where neither SFrame nor CFI describes an address, with machine code that gives rules for some."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from sframe_unwind.arch import BY_NAME
from sframe_unwind.memory import ReadMemory, WordReader
from sframe_unwind.report.explain import explain
from sframe_unwind.report.stack import by_sframe
from sframe_unwind.sframe.constants import AbiNumber
from sframe_unwind.unwind.code_fallback import CodeFallback, may_return_to
from sframe_unwind.unwind.code_match import CODE as BY_CODE
from sframe_unwind.unwind.code_match import AskedFrame, CodeFunction, CodeMatch
from sframe_unwind.unwind.modules import NO_SECTION, Found, Module, Modules, NoData
from sframe_unwind.unwind.modules_by_code import UNTOLD, ModulesByCode, is_untold
from sframe_unwind.unwind.step import Caller
from sframe_unwind.unwind.walk import Registers
from sframe_unwind.unwind_rule import OUTERMOST, RegisterRule, UnwindRule, saved_at_cfa
from tests.unwind.world import CODE, module, sp_based

AMD64 = BY_NAME["amd64"]
BARE, END = 0x5000, 0x6000
TOLD, SHOWN, OUTERMOST_AT = 0x5010, 0x5020, 0x5030
RULE = UnwindRule(RegisterRule(AMD64.sp, 16, False), saved_at_cfa(-8), None)
SP, RETURN = 0x7000, 0x5111


def match(rule: UnwindRule) -> CodeMatch:
    return CodeMatch(CodeFunction(BARE, BARE + 0x100, "called"), rule, "proved")


@dataclass
class OneFunction:
    """Code that gives a rule for one address, and for another if a frame shows where its function begins."""

    asked: list[AskedFrame] = field(default_factory=list)

    def match(self, pc: int) -> CodeMatch | None:
        return match(RULE) if pc == TOLD else None

    def learn(self, frame: AskedFrame) -> CodeMatch | None:
        self.asked.append(frame)
        return {SHOWN: match(RULE), OUTERMOST_AT: match(OUTERMOST)}.get(frame.pc)


def memory(words: dict[int, int]) -> ReadMemory:
    def read(address: int, size: int) -> bytes:
        data = b"".join(words.get(at, 0).to_bytes(8, "little") for at in range(address & ~7, address + size + 7, 8))
        return data[address & 7 : (address & 7) + size]

    return read


def bare() -> tuple[Module, OneFunction]:
    found, code = Module("bare", [(BARE, END)], lambda: None), OneFunction()
    found.load_code = lambda: code
    return found, code


def modules() -> tuple[ModulesByCode, OneFunction]:
    found, code = bare()
    described = module(AbiNumber.AMD64_ENDIAN_LITTLE, {(CODE, 0x40): [(0, sp_based(AMD64, 16))]})
    described.load_code = lambda: code
    return ModulesByCode(AMD64, [found, described]), code


def test_code_counts_where_there_is_no_table() -> None:
    found, _ = modules()
    by_code = found.results[TOLD]
    assert isinstance(by_code, Found)
    assert (by_code.rule, by_sframe(TOLD, found)) == (RULE, BY_CODE)
    by_row = found.results[CODE]
    assert isinstance(by_row, Found)
    assert not isinstance(by_row.match, CodeMatch)
    assert not is_untold(found, TOLD)
    assert not is_untold(found, CODE)


def test_without_the_setting_the_code_is_not_opened() -> None:
    found, _ = bare()
    found.load_code = lambda: pytest.fail("opened")
    result = Modules(AMD64, [found]).results[TOLD]
    assert isinstance(result, NoData)
    assert result.reason == NO_SECTION


def test_the_code_does_not_tell() -> None:
    found, _ = modules()
    result = found.results[SHOWN]
    assert isinstance(result, NoData)
    assert result.reason == UNTOLD
    assert is_untold(found, SHOWN)
    assert not is_untold(found, END)  # no module has code there


def test_a_module_without_a_file() -> None:
    found, _ = bare()
    found.load_code = lambda: None
    assert not is_untold(ModulesByCode(AMD64, [found]), SHOWN)


def test_a_frame_shows_where_its_function_begins() -> None:
    found, code = modules()
    read_word = WordReader(memory({SP + 8: RETURN}), "little")
    fallback = CodeFallback(found, read_word)
    unwound = fallback.unwind(Registers(SHOWN, SP, 0x99), True, None)
    assert unwound is not None
    assert (unwound.caller, unwound.unwinder) == (Caller(SP + 16, RETURN, SP + 16, 0x99), BY_CODE)
    assert isinstance(found.results[SHOWN], Found)
    assert len(code.asked) == 1
    assert fallback.unwind(Registers(SHOWN, SP, 0x99), True, None) is None  # the walk has the rule now


def test_a_frame_that_shows_nothing_and_one_that_is_the_outermost() -> None:
    found, code = modules()
    fallback = CodeFallback(found, WordReader(memory({}), "little"))
    assert fallback.unwind(Registers(0x5040, SP, 0), True, None) is None
    unwound = fallback.unwind(Registers(OUTERMOST_AT, SP, 0), True, None)
    assert unwound is not None
    assert unwound.caller is None
    assert fallback.unwind(Registers(TOLD, SP, 0), True, None) is None
    assert [frame.pc for frame in code.asked] == [0x5040, OUTERMOST_AT]


def test_return_addresses() -> None:
    call, trampoline = 0x5100, 0x5200
    read = memory({call: 0xE8 << 24})
    assert may_return_to(AMD64, call + 8, read)
    assert not may_return_to(AMD64, call + 7, read)
    whole = AMD64.signal_frames[0].code
    words = {
        trampoline + at: int.from_bytes(whole[at : at + 8].ljust(8, b"\0"), "little") for at in range(0, len(whole), 8)
    }
    assert may_return_to(AMD64, trampoline, memory(words))


def test_explained() -> None:
    found, _ = modules()
    lines = explain(found, TOLD, "f", None)
    assert lines[:4] == [
        f"{TOLD:#x} f",
        f"code:  {BARE:#x} to {BARE + 0x100:#x} in bare, which no SFrame and no CFI describes",
        "       start: called",
        "       proved",
    ]
    assert lines[4].startswith("rule:  CFA = rsp + 16")
