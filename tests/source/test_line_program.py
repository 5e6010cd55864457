"""Line number programs that compilers seldom write, byte by byte."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sframe_unwind.errors import FormatError
from sframe_unwind.source.line_program import LineProgram
from sframe_unwind.source.sections import DebugSections

HEADER = bytes(
    (
        *(1, 1, 1, 0xFB, 14, 13),  # instructions of 1 byte, 1 each, is_stmt; lines from -5, 14 of them; first special
        *(0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1),  # arguments of the standard opcodes
        *(*b"source", 0, 0),  # a directory
        *(*b"file.c", 0, 1, 0, 0, 0),  # a file in it
    )
)
COPY, SPECIAL, END = bytes((1,)), bytes((13 + 5 + 1 + 14 * 4,)), bytes((0, 1, 1))
"""A row; 4 bytes and 1 line on, and a row; end of the sequence."""


def set_address(address: int) -> bytes:
    return bytes((0, 9, 2)) + address.to_bytes(8, "little")


def program(tmp_path: Path, code: bytes, lowest: int = 0, header: bytes = HEADER) -> LineProgram:
    """Return a line number program of version 4."""
    body = (4).to_bytes(2, "little") + len(HEADER).to_bytes(4, "little") + header + code
    (tmp_path / "line").write_bytes(len(body).to_bytes(4, "little") + body)
    (tmp_path / "empty.s").write_text("", encoding="ascii")
    made = tmp_path / "with.o"
    subprocess.run(["as", tmp_path / "empty.s", "-o", made], check=True)
    subprocess.run(["objcopy", f"--add-section=.debug_line={tmp_path / 'line'}", made], check=True)
    return LineProgram(DebugSections(made), 0, "/folder", lowest)


def test_rows_and_names(tmp_path: Path) -> None:
    lines = program(tmp_path, set_address(0x1000) + COPY + SPECIAL + bytes((2, 16)) + END)
    assert [lines.at(address) for address in (0xFFF, 0x1000, 0x1003, 0x1004, 0x1013, 0x1014)] == [
        *((0, 0), (1, 1), (1, 1), (1, 2), (1, 2), (0, 0))
    ]
    assert [lines.path(number) for number in (0, 1, 2)] == ["", "/folder/source/file.c", ""]


def test_of_several_rows_for_one_address_the_last_one_counts(tmp_path: Path) -> None:
    negate_statement, next_line = bytes((6,)), bytes((3, 1))
    code = set_address(0x1000) + COPY + negate_statement + next_line + COPY + SPECIAL + bytes((2, 4)) + END
    assert program(tmp_path, code).at(0x1000) == (1, 2)


def test_sequences_of_functions_that_the_linker_left_out(tmp_path: Path) -> None:
    left_out = set_address(0) + COPY + bytes((2, 0x80, 0x40)) + END  # to 0x2000
    kept = set_address(0x1000) + bytes((3, 6)) + COPY + bytes((2, 8)) + END
    assert program(tmp_path, left_out + kept, lowest=0x1000).at(0x1004) == (1, 7)
    assert program(tmp_path, left_out + kept).at(0x1004) == (1, 1)  # of an address that can be 0, nothing is left out


def test_rows_that_are_not_in_order(tmp_path: Path) -> None:
    code = set_address(0x1010) + COPY + set_address(0x1000) + bytes((3, 1)) + COPY + set_address(0x1020) + END
    lines = program(tmp_path, code)
    assert [lines.at(address)[1] for address in (0x1000, 0x100F, 0x1010, 0x101F)] == [2, 2, 1, 1]


@pytest.mark.parametrize(
    "code",
    [
        set_address(0x1000) + COPY,  # no end
        set_address(0x1000) + bytes((2, *[0xFF] * 60)),  # a number that does not end
        set_address(0x1000) + bytes((3, *[0x80] * 60, 1)) + COPY + END,  # a number of 420 bits
        set_address((1 << 64) - 2) + COPY + SPECIAL + END,  # an address of more than 64 bits
        set_address(0x1000) + bytes((4, *[0xFF] * 8, 1)) + COPY + END,  # likewise the number of a file
    ],
)
def test_malformed_programs(tmp_path: Path, code: bytes) -> None:
    lines = program(tmp_path, code)
    with pytest.raises(FormatError):
        lines.at(0x1000)
    assert lines.at(0x1000) == (0, 0)


def test_header_that_describes_more_opcodes_than_there_is_room_for(tmp_path: Path) -> None:
    header = HEADER[:5] + b"\xff"  # the program ends where the numbers of arguments begin
    with pytest.raises(FormatError, match="ends within its header"):
        program(tmp_path, b"", header=header)
