"""Each call frame instruction, from bytes to the expected rows (DWARF 5, 6.4.2 and 7.24)."""

from __future__ import annotations

import struct

import pytest

from sframe_unwind.cfi.row import Expression, Row, Source
from sframe_unwind.errors import FormatError, UnsupportedError, UnsupportedExpressionError
from sframe_unwind.unwind_rule import CFA, COMPUTED, OUTERMOST, UNDEFINED, RegisterRule, UnwindRule, saved_at_cfa
from tests.cfi.encoding import AARCH64, AMD64, S390X, START, decoded, sleb, uleb

RA = saved_at_cfa(-8)


def at(register: int, offset: int) -> RegisterRule:
    """Return the rule for a register plus an offset."""
    return RegisterRule(register, offset, False)


def last(code: bytes, **options: object) -> Row:
    """Return the last row of some instructions."""
    return decoded(code, **options).rows[-1]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "cfa"),
    [
        (b"", at(7, 8)),
        (b"\x0c\x06\x10", at(6, 16)),  # def_cfa
        (b"\x12\x06\x7e", at(6, 16)),  # def_cfa_sf: -2 * data factor -8
        (b"\x0d\x06", at(6, 8)),  # def_cfa_register
        (b"\x0e\x20", at(7, 32)),  # def_cfa_offset
        (b"\x13\x7c", at(7, 32)),  # def_cfa_offset_sf
        (b"\x0f\x03\x77\x08\x06", Expression(b"\x77\x08\x06", False)),  # def_cfa_expression
        (b"\x0e" + uleb(1 << 33), at(7, 1 << 33)),
        (b"\x0e" + uleb((1 << 64) - 8), at(7, -8)),
    ],
)
def test_cfa(code: bytes, cfa: Source) -> None:
    assert last(code).cfa == cfa


@pytest.mark.parametrize(
    ("code", "source"),
    [
        (b"\x83\x02", saved_at_cfa(-16)),  # offset
        (b"\x05\x03\x02", saved_at_cfa(-16)),  # offset_extended
        (b"\x11\x03\x7e", saved_at_cfa(16)),  # offset_extended_sf
        (b"\x2f\x03\x02", saved_at_cfa(16)),  # GNU_negative_offset_extended
        (b"\x14\x03\x02", at(CFA, -16)),  # val_offset
        (b"\x15\x03\x7e", at(CFA, 16)),  # val_offset_sf
        (b"\x09\x03\x0a", at(10, 0)),  # register
        (b"\x07\x03", UNDEFINED),
        (b"\x08\x03", None),  # same_value
        (b"\x83\x02\x08\x03", None),
        (b"\x10\x03\x02\x77\x00", Expression(b"\x77\x00", True)),  # expression
        (b"\x16\x03\x02\x77\x00", Expression(b"\x77\x00", False)),  # val_expression
        (b"\x83\x02\xc3", None),  # restore, of a register without a rule in the CIE
        (b"\x83\x02\x06\x03", None),  # restore_extended
    ],
)
def test_register(code: bytes, source: Source | None) -> None:
    row = last(code)
    assert row.source(3) == source
    assert row.registers == tuple(sorted([(16, RA), *([(3, source)] if source else [])]))


def test_restore_goes_back_to_the_cie() -> None:
    for restore in (b"\xd0", b"\x06\x10"):
        assert last(b"\x90\x05" + restore).source(16) == RA
        assert last(b"\x07\x10" + restore).source(16) == RA


@pytest.mark.parametrize(
    ("code", "distance"),
    [
        (b"\x7f", 63),
        (b"\x02\xff", 255),
        (b"\x03\x34\x12", 0x1234),
        (b"\x04\x78\x56\x34\x12", 0x12345678),
        (b"\x1d\x01\x00\x00\x00\x01\x00\x00\x00", 0x100000001),  # MIPS_advance_loc8
        (b"\x41\x00\x00\x41\x42", 4),
    ],
)
@pytest.mark.parametrize("factor", [1, 4])
def test_advance(code: bytes, distance: int, factor: int) -> None:
    function = decoded(code + b"\x0e\x10", factors=(factor, -8))
    assert function.offsets == (0, distance * factor)
    assert [row.cfa for row in function.rows] == [at(7, 8), at(7, 16)]


def test_advance_is_in_the_byte_order_of_the_file() -> None:
    options = {"initial": b"\x0c\x0f\xa0\x01", "column": 14}
    assert decoded(b"\x03\x12\x34\x0e\x10", S390X, **options).offsets == (0, 0x1234)
    assert decoded(b"\x04\x12\x34\x56\x78\x0e\x10", S390X, **options).offsets == (0, 0x12345678)


def test_set_loc() -> None:
    function = decoded(b"\x01" + struct.pack("<Q", START + 0x40) + b"\x0e\x10\x44\x0e\x18")
    assert function.offsets == (0, 0x40, 0x44)
    with pytest.raises(FormatError, match="goes back from offset 0x20 of the function to 0x10"):
        decoded(b"\x60\x01" + struct.pack("<Q", START + 0x10))


def test_same_instructions_at_another_place_are_decoded_again_where_the_place_matters() -> None:
    code = b"\x01" + struct.pack("<Q", START + 0x40) + b"\x0e\x10"
    function = decoded(code)
    assert function == decoded(code)._replace(rows=function.rows, cie=function.cie)


def test_remember_and_restore() -> None:
    function = decoded(b"\x41\x0e\x10\x86\x02\x0a\x42\x0e\x20\x83\x04\x44\x0b")
    assert function.offsets == (0, 1, 3, 7)
    assert function.rows[3] is function.rows[1]
    assert function.rows[1].registers == ((6, saved_at_cfa(-16)), (16, RA))
    with pytest.raises(FormatError, match="without a state that was remembered"):
        decoded(b"\x0a\x0b\x0b")


def test_rows_that_say_the_same_are_one() -> None:
    function = decoded(b"\x41\x0e\x10\x41\x0e\x10\x41\x2e\x10\x41\x00\x00")
    assert function.offsets == (0, 1)
    assert function.row_at(START + 0xFF) is function.rows[1]


@pytest.mark.parametrize("opcode", [0x2C, 0x2D])
def test_signed_return_addresses(opcode: int) -> None:
    options = {"initial": b"\x0c\x1f\x00", "column": 30, "factors": (4, -8)}
    negate = bytes([opcode])
    function = decoded(b"\x41" + negate + b"\x0a\x41" + negate + b"\x41\x0b", AARCH64, **options)
    assert [row.ra_signed for row in function.rows] == [False, True, False, True]
    assert [function.rule_at(START + at, AARCH64).ra_signed for at in (0, 4)] == [False, True]
    with pytest.raises(UnsupportedError, match=f"call frame instruction {opcode:#x} is not known for amd64"):
        decoded(negate)


@pytest.mark.parametrize("opcode", [0x17, 0x1C, 0x2B, 0x30, 0x3F])
def test_unknown_instruction(opcode: int) -> None:
    with pytest.raises(UnsupportedError, match=f"call frame instruction {opcode:#x} is not known"):
        decoded(b"\x41" + bytes([opcode]))


@pytest.mark.parametrize(
    "code", [b"\x83", b"\x83\x80", b"\x0c\x07", b"\x02", b"\x04\0\0\0", b"\x05\x03", b"\x09\x03\x80", b"\x01\0\0\0"]
)
def test_cut_short(code: bytes) -> None:
    with pytest.raises(FormatError, match="the data ends within"):
        decoded(b"\x41\x0e\x10" + code)


@pytest.mark.parametrize("code", [b"\x0f\x03\x77", b"\x10\x03\x7f\x77", b"\x16\x03\x01"])
def test_expression_cut_short(code: bytes) -> None:
    with pytest.raises(FormatError, match="an instruction's expression has"):
        decoded(code)


def test_cfa_that_cannot_be_changed() -> None:
    """The rows before are valid, as for elfutils and GDB, and so are those after which the CFA is defined anew."""
    for change in (b"\x0e\x10", b"\x0d\x06"):
        function = decoded(b"\x41\x0f\x02\x77\x08\x41" + change + b"\x41" + change + b"\x41\x0c\x07\x18")
        start, expression, *changed, last = function.rows
        arch, column = AMD64, AMD64.return_column
        assert [row.rule(arch, column, 0).cfa for row in (start, expression, last)] == [
            RegisterRule(7, 8, False),
            RegisterRule(7, 8, False),
            RegisterRule(7, 24, False),
        ]
        for row in changed:
            with pytest.raises(FormatError, match="a CFA that is not a register and an offset"):
                row.rule(arch, column, 0)


def test_numbers_that_go_on_and_on() -> None:
    for size in (11, 1_000_000):
        for code in (b"\x0e" + b"\xff" * size, b"\x83" + b"\x80" * size + b"\0", b"\x10\x03" + b"\x80" * size + b"\0"):
            with pytest.raises(FormatError, match="LEB128 number of more than 10 bytes"):
                decoded(code)


@pytest.mark.parametrize("version", [1, 3, 4])
@pytest.mark.parametrize("wide", [False, True])
def test_versions_of_debug_frame(version: int, wide: bool) -> None:
    for column in (16, 100) if version == 1 else (16, 300):
        initial = b"\x0c\x07\x08\x05" + uleb(column) + b"\x01"
        function = decoded(b"\x41\x0e\x10\x86\x02", version=version, wide=wide, column=column, initial=initial)
        assert (function.start, function.end) == (START, START + 0x100)
        rule = function.rule_at(START + 1, AMD64)
        assert rule == UnwindRule(at(7, 16), RA, saved_at_cfa(-16), False, ())


def test_rule_has_every_register() -> None:
    function = decoded(b"\x86\x02\x83\x03\x07\x0c\x09\x0d\x0e\x16\x0f\x02\x35\x36\x08\x08")
    others = (3, saved_at_cfa(-24)), (12, UNDEFINED), (13, at(14, 0)), (15, COMPUTED)
    assert function.rule_at(START, AMD64) == UnwindRule(at(7, 8), RA, saved_at_cfa(-16), False, others)


@pytest.mark.parametrize(
    ("code", "cfa", "ra"),
    [
        (b"\x87\x05", RegisterRule(7, -32, True), RegisterRule(7, 0, True)),  # offset: in memory at CFA - 40
        (b"\x14\x07\x7f", at(7, -1008), saved_at_cfa(1008)),  # val_offset: CFA - 1016
        (b"\x09\x07\x08", at(8, 0), RegisterRule(7, 0, True)),  # register
        (b"\x16\x07\x02\x77\x10", at(7, 16), saved_at_cfa(-16)),  # val_expression: rsp + 16
        (b"\x16\x07\x02\x77\x08", at(7, 8), RA),  # which also follows from the CFA
        (b"\x07\x07", at(7, 8), RA),  # undefined
    ],
)
def test_item_39_the_cfa_is_the_one_that_tells_the_stack_pointer(
    code: bytes, cfa: RegisterRule, ra: RegisterRule
) -> None:
    assert decoded(code).rule_at(START, AMD64) == UnwindRule(cfa, ra, None, False, ())


def test_item_39_stack_pointers_that_no_rule_has() -> None:
    for code in (
        b"\x16\x07\x05\x77\x00\x06\x23\x08",  # a word in memory plus 8
        b"\x0f\x03\x77\x08\x06\x87\x01",  # saved at a CFA that is a word in memory
    ):
        with pytest.raises(UnsupportedExpressionError):
            decoded(code).rule_at(START, AMD64)


def test_item_39_where_s390x_saves_the_stack_pointer_does_not_matter() -> None:
    initial = b"\x0c\x0f\xa0\x01"
    with_sp, without = (decoded(code, S390X, initial=initial, column=14) for code in (b"\x8f\x05", b""))
    assert with_sp.rule_at(START, S390X) == without.rule_at(START, S390X)


def test_item_39_the_cfa_of_go_on_s390x_is_the_stack_pointer() -> None:
    initial = b"\x0c\x0f\x18\x14\x0f\x00"  # CFA r15 + 24, r15 is CFA + 0
    rule = decoded(b"\x8e\x03", S390X, initial=initial, column=14).rule_at(START, S390X)
    assert rule == UnwindRule(at(15, 184), saved_at_cfa(-184), None, False, ())
    usual = b"\x0c\x0f\xa0\x01\x14\x0f\x14"  # CFA r15 + 160, r15 is CFA - 160
    rule = decoded(b"\x8e\x03", S390X, initial=usual, column=14).rule_at(START, S390X)
    assert rule == UnwindRule(at(15, 160), saved_at_cfa(-24), None, False, ())


def test_undefined_return_address_is_the_outermost_frame() -> None:
    assert decoded(b"\x07\x10").rule_at(START, AMD64) == OUTERMOST


def test_frame_pointer_does_not_spoil_the_rule() -> None:
    for code, fp in ((b"\x07\x06", UNDEFINED), (b"\x10\x06\x04\x77\x00\x06\x06", COMPUTED)):
        assert decoded(code).rule_at(START, AMD64) == UnwindRule(at(7, 8), RA, fp, False, ())


def test_return_address_in_a_register() -> None:
    options = {"initial": b"\x0c\x1f\x00", "factors": (4, -8)}
    assert decoded(b"", AARCH64, column=30, **options).rule_at(START, AARCH64).ra is None
    assert decoded(b"\x09\x1e\x09", AARCH64, column=30, **options).rule_at(START, AARCH64).ra == at(9, 0)
    assert decoded(b"", AARCH64, column=17, **options).rule_at(START, AARCH64).ra == at(17, 0)


PLT = bytes([0x77, 8, 0x80, 0, 0x3F, 0x1A, 0x3B, 0x2A, 0x33, 0x24, 0x22])
"""``breg7+8 breg16+0 lit15 and lit11 ge lit3 shl plus``: GNU ld's expression for a PLT."""


def test_cfa_computed_from_the_address() -> None:
    function = decoded(b"\x0f" + uleb(len(PLT)) + PLT)
    cfas = [function.rule_at(START + offset, AMD64).cfa for offset in range(32)]
    assert cfas == ([at(7, 8)] * 11 + [at(7, 16)] * 5) * 2


@pytest.mark.parametrize(
    ("expression", "rule"),
    [
        (b"\x77\x10", at(7, 16)),
        (b"\x76\x78\x06", RegisterRule(6, -8, True)),  # breg6-8, deref: a realigned stack
        (b"\x92\x07\x10", at(7, 16)),  # bregx
        (b"\x77\x00\x23\x90\x01", at(7, 144)),  # plus_uconst
        (b"\x77\x00\x0a\x00\x01\x22", at(7, 256)),  # const2u plus
        (b"\x77\x00\x11\x70\x22", at(7, -16)),  # consts plus
        (b"\x77\x00\x38\x1c", at(7, -8)),  # lit8 minus
        (b"\x96\x77\x00", at(7, 0)),  # nop
    ],
)
def test_expression_that_is_a_rule(expression: bytes, rule: RegisterRule) -> None:
    assert decoded(b"\x0f" + uleb(len(expression)) + expression).rule_at(START, AMD64).cfa == rule


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        (b"\x77\x00\x06\x06", "more than one read from memory"),
        (b"\x77\x00\x06\x23\x08", "a sum with a word from memory"),
        (b"\x77\x00\x76\x00\x22", "a sum of two places"),
        (b"\x77\x00\x12", "DW_OP_dup"),
        (b"\xff", "operation 0xff"),
        (b"\x22", "DW_OP_plus on an empty stack"),
        (b"\x35", "a constant"),
        (b"", "nothing"),
        (b"\x77\x00\x3f\x1a", "arithmetic on a register"),
    ],
)
def test_expression_that_is_no_rule(expression: bytes, why: str) -> None:
    function = decoded(b"\x0f" + uleb(len(expression)) + expression)
    with pytest.raises(UnsupportedExpressionError, match=f"^{why}"):
        function.rule_at(START, AMD64)


@pytest.mark.parametrize("expression", [b"\x77", b"\x0a\x00", b"\x92\x07", b"\x10\x80"])
def test_malformed_expression(expression: bytes) -> None:
    function = decoded(b"\x0f" + uleb(len(expression)) + expression)
    with pytest.raises(FormatError, match="ends within"):
        function.rule_at(START, AMD64)


def test_encoding_of_the_tests() -> None:
    """The tests' own encoder agrees with DWARF 5, 7.6, tables 7.7 and 7.8."""
    assert [uleb(value) for value in (2, 127, 128, 12857)] == [b"\x02", b"\x7f", b"\x80\x01", b"\xb9\x64"]
    signed = {2: b"\x02", -2: b"\x7e", 127: b"\xff\x00", -127: b"\x81\x7f", 128: b"\x80\x01", -128: b"\x80\x7f"}
    assert {value: sleb(value) for value in signed} == signed
