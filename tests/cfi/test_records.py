"""CFI records in unusual forms, most of which no compiler writes."""

from __future__ import annotations

import struct
from contextlib import suppress
from random import Random

import pytest

from sframe_unwind.address import ByteOrder
from sframe_unwind.arch import BY_NAME
from sframe_unwind.cfi.records import CfiFunction, Records
from sframe_unwind.errors import FormatError, SFrameError, UnsupportedError
from sframe_unwind.memory import LazyBytes
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule, saved_at_cfa
from tests.cfi.addressed import AT, END, FORMS, SIZE, START, records


def second(data: bytes, extended: bool = False, mark: str = "<") -> int:
    """Return the offset of the second of two records."""
    if extended:
        return int(12 + struct.unpack_from(mark + "Q", data, 4)[0])
    return int(4 + struct.unpack_from(mark + "I", data)[0])


DATA_BASE = START - 0x10_0000

AMD64 = BY_NAME["amd64"]


def decoded(data: bytes, offset: int, data_base: int | None = None, byteorder: ByteOrder = "little") -> CfiFunction:
    """Decode the FDE at an offset of records at the address AT."""
    return Records(data, AT, AMD64._replace(byteorder=byteorder), data_base=data_base).fde(offset).decode()


@pytest.mark.parametrize("extended", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_ways_to_write_an_address(form: str, extended: bool) -> None:
    data = records("<", *FORMS[form], extended)
    function = decoded(data, second(data, extended), DATA_BASE)
    assert (function.start, function.end, function.offsets) == (START, END, (0, 1))
    assert function.rule_at(START, AMD64) == UnwindRule(RegisterRule(7, 8, False), saved_at_cfa(-8), None, False, ())
    inside = function.rule_at(START + 1, AMD64)
    assert inside == UnwindRule(RegisterRule(7, 16, False), saved_at_cfa(-8), saved_at_cfa(-16), False, ())


@pytest.mark.parametrize("extended", [False, True])
@pytest.mark.parametrize("byteorder", ["little", "big"])
def test_address_relative_to_its_own_place(byteorder: ByteOrder, extended: bool) -> None:
    mark = "<" if byteorder == "little" else ">"
    place = second(records(mark, 0x1B, bytes(8), extended), extended, mark) + (16 if extended else 8)
    data = records(mark, 0x1B, struct.pack(mark + "iI", START - AT - place, SIZE), extended)
    function = decoded(data, second(data, extended, mark), byteorder=byteorder)
    assert (function.start, function.end) == (START, END)


def test_what_is_no_fde_is_an_error() -> None:
    data = records("<", *FORMS["absolute"])
    fde = second(data)
    with pytest.raises(FormatError, match=f"expected an FDE at {AT:#x}, found a CIE"):
        decoded(data, 0)
    with pytest.raises(FormatError, match="needs 4 bytes, the section has 0 left"):
        decoded(data, len(data))
    long = data[:fde] + b"\xfe\xff\xff\x7f" + data[fde + 4 :]
    with pytest.raises(FormatError, match=f"at {AT + fde:#x}, found a record of 2147483646 bytes"):
        decoded(long, fde)
    longer = data[:fde] + struct.pack("<I", len(data)) + data[fde + 4 :]
    with pytest.raises(FormatError, match=f"the record at {AT + fde:#x} has {len(data)} bytes, the section"):
        decoded(longer, fde)


@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        (0x20, "relative to 0x20 is not supported"),
        (0x50, "relative to 0x50 is not supported"),
        (0x9B, "DW_EH_PE_indirect is not supported"),
        (0x3B, "DW_EH_PE_datarel without a known base address"),
        (0x07, "the format 0x7 is not known"),
        (0xFF, "DW_EH_PE_omit"),
    ],
)
def test_encoding_that_is_not_supported(encoding: int, said: str) -> None:
    data = records("<", encoding, FORMS["absolute"][1])
    with pytest.raises(UnsupportedError, match=f"^CIE at {AT:#x}: pointer encoding {encoding:#x}.*{said}"):
        decoded(data, second(data))


def test_unknown_augmentation() -> None:
    data = records("<", 0, FORMS["absolute"][1], augmentation=b"zRX")
    with pytest.raises(UnsupportedError, match=f"^CIE at {AT:#x}: CIE with the unknown augmentation 'zRX'"):
        decoded(data, second(data))


def test_any_damage_is_an_error_or_an_answer() -> None:
    data = records("<", *FORMS["relative to data"])
    fde = second(data)
    errors = 0
    for at in range(len(data)):
        for value in (0, 0x7F, 0x80, 0xFF):
            damaged = data[:at] + bytes([value]) + data[at + 1 :]
            try:
                decoded(damaged, fde, DATA_BASE)
            except SFrameError:
                errors += 1
    assert errors > 50


def outcome(entries: Records, offset: int) -> tuple[int, int, bytes, int] | str:
    """Return the fields of the FDE at an offset, or the error."""
    try:
        fde = entries.fde(offset)
    except SFrameError as error:
        return str(error)
    return fde.start, fde.end, fde.code, fde.code_address


def check_both_ways(data: bytes) -> int:
    """Check that FDEs of data that is there as a whole, which are read at once, are those of data that is fetched.

    :returns: the number of FDEs.
    """
    known, fetched = (
        Records(content, AT, AMD64, data_base=DATA_BASE)
        for content in (data, LazyBytes(lambda start, size: data[start : start + size], len(data)))
    )
    with suppress(SFrameError):  # afterwards, the CIEs are known
        list(known.fdes(True, []))
    outcomes = [outcome(known, offset) for offset in range(len(data))]
    assert outcomes == [outcome(fetched, offset) for offset in range(len(data))]
    return sum(not isinstance(one, str) for one in outcomes)


def test_fdes_are_the_same_when_they_are_read_at_once() -> None:
    # More augmentation data, also in a number of two bytes.
    usual = records("<", 0x1B, struct.pack("<iI", 0x1000, SIZE))
    fde = second(usual)
    longer = usual[:fde] + struct.pack("<I", 160) + usual[fde + 4 : fde + 16]
    several = [usual, usual + bytes(4) + usual, longer + b"\x05" + bytes(147), longer + b"\x81\x01" + bytes(146)]
    several += [records("<", *form) for form in FORMS.values()]
    for data in several:
        assert check_both_ways(data)


def test_damaged_fdes_are_the_same_when_they_are_read_at_once() -> None:
    random = Random(0)
    usual = records("<", 0x1B, struct.pack("<iI", 0x1000, SIZE)) * 2
    found = 0
    for _ in range(300):
        data = bytearray(usual)
        for _ in range(random.randint(1, 3)):
            data[random.randrange(len(data))] = random.choice((0, 1, 4, 0x7F, 0x80, 0xFF, random.randrange(256)))
        found += check_both_ways(bytes(data[: random.choice((len(data), random.randrange(len(data))))]))
    assert found > 150
