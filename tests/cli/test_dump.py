"""`dump`: the form of its JSON, sections with several tables, and damaged sections."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sframe_unwind.cli import main
from sframe_unwind.errors import FormatError
from sframe_unwind.report import dump
from sframe_unwind.sframe.fre import MAX_SHARED_ROWS, most_rows
from sframe_unwind.sframe.section import Section
from tests.cli.sections import AARCH64, AMD64, S390X, Function, elf, row, section

CONFORMANCE = Path(__file__).resolve().parents[2] / "conformance"
FORM: dict[str, Any] = {
    "file": str,
    "sections": [
        {
            "address": int,
            "size": int,
            "version": (1, 2, 3),
            "abi": ("amd64", "aarch64", "aarch64_be", "s390x"),
            "flags": [("FDE_SORTED", "FRAME_POINTER", "FDE_FUNC_START_PCREL")],
            "fixed_ra_offset": int,
            "fixed_fp_offset": int,
            "functions": [
                {
                    "start": int,
                    "size": int,
                    "type": ("default", "flex"),
                    "pc_type": ("inc", "mask"),
                    "repetition_size": int,
                    "signal": bool,
                    "pauth_key": ("a", "b"),
                    "rows": [{"start": int, "cfa": str, "fp": str, "ra": str, "ra_signed": bool, "ra_undefined": bool}],
                }
            ],
        }
    ],
}
"""The form of the JSON: in place of a value, its type or the possible values."""


def check_form(value: object, form: object) -> None:
    """Check that a value has a form, with no member more or less."""
    if isinstance(form, dict):
        assert isinstance(value, dict)
        assert list(value) == list(form)
        for name, member in form.items():
            check_form(value[name], member)
    elif isinstance(form, list):
        assert isinstance(value, list)
        for element in value:
            check_form(element, form[0])
    elif isinstance(form, tuple):
        assert value in form
    else:
        assert type(value) is form


def dumped(capsys: pytest.CaptureFixture[str], file: Path, status: int = 0) -> tuple[str, dict[str, Any], list[str]]:
    """Return text, JSON, and the messages; check that both forms have the same messages and exit status."""
    assert main(["dump", str(file)]) == status
    text = capsys.readouterr()
    assert main(["dump", "--json", str(file)]) == status
    as_json = capsys.readouterr()
    assert text.err == as_json.err
    decoded = json.loads(as_json.out)
    check_form(decoded, FORM)
    return text.out, decoded, text.err.splitlines()


ROW = row(AMD64, 0, [8])
ALL = section(
    AMD64,
    [
        Function(0x10, 8, [row(AMD64, 0, [8]), row(AMD64, 4, [16, -16])]),
        Function(0x20, 32, [ROW], 0x10, repetition=16),
        Function(0x40, 8, [row(AMD64, 0, [0x51, 0])], flexible=True),
        Function(0x50, 8, [], 0x80),
        Function(0x60, 8, [row(AMD64, 0, [])]),
        Function(0x70, 8, [ROW], 0x20),
    ],
    ra=-8,
)


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, decoded, _ = dumped(capsys, elf(tmp_path / "file", AMD64, ALL, address=0x1000))
    (found,) = decoded["sections"]
    functions = found.pop("functions")
    assert found == {
        "address": 0x1000,
        "size": len(ALL),
        "version": 3,
        "abi": "amd64",
        "flags": ["FDE_SORTED"],
        "fixed_ra_offset": -8,
        "fixed_fp_offset": 0,
    }
    assert functions[0] == {
        "start": 0x1010,
        "size": 8,
        "type": "default",
        "pc_type": "inc",
        "repetition_size": 0,
        "signal": False,
        "pauth_key": "a",
        "rows": [
            {"start": 0x1010, "cfa": "sp+8", "fp": "u", "ra": "f", "ra_signed": False, "ra_undefined": False},
            {"start": 0x1014, "cfa": "sp+16", "fp": "c-16", "ra": "f", "ra_signed": False, "ra_undefined": False},
        ],
    }
    assert (functions[1]["pc_type"], functions[1]["repetition_size"]) == ("mask", 16)
    assert functions[1]["rows"][0]["start"] == 0
    assert functions[2]["type"] == "flex"
    assert functions[3]["signal"]
    assert functions[3]["rows"] == []
    undefined = {"start": 0x1060, "cfa": "", "fp": "", "ra": "RA undefined", "ra_signed": False, "ra_undefined": True}
    assert functions[4]["rows"] == [undefined]
    assert functions[5]["pauth_key"] == "b"


def test_signed_return_address(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    signed = section(AARCH64, [Function(0, 8, [row(AARCH64, 0, [32, -24], signed=True)])])
    _, decoded, _ = dumped(capsys, elf(tmp_path / "file", AARCH64, signed))
    (found,) = decoded["sections"][0]["functions"][0]["rows"]
    assert (found["ra"], found["ra_signed"]) == ("c-24[s]", True)


def test_start_below_zero_is_an_address(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, decoded, _ = dumped(capsys, elf(tmp_path / "file", AMD64, section(AMD64, [Function(-16, 8, [ROW])], ra=-8)))
    assert "pc = 0xfffffffffffffff0," in text
    assert "\n    fffffffffffffff0  sp+8 " in text
    function = decoded["sections"][0]["functions"][0]
    assert function["start"] == function["rows"][0]["start"] == 0xFFFFFFFFFFFFFFF0


def test_empty_section(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, decoded, _ = dumped(capsys, elf(tmp_path / "file", AMD64, b""))
    assert text == "Contents of the SFrame section .sframe:\n  empty\n"
    assert decoded["sections"] == []


def test_no_functions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, decoded, _ = dumped(capsys, elf(tmp_path / "file", AMD64, section(AMD64, [], ra=-8)))
    assert "Num FDEs: 0\n" in text
    assert decoded["sections"][0]["functions"] == []


def test_every_header_and_every_section(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = section(AMD64, [Function(0x10, 8, [ROW])], ra=-8)
    second = section(AMD64, [Function(0x20, 8, [ROW])], version=2, ra=-8)
    joined = first + bytes(-len(first) % 8) + second
    text, decoded, _ = dumped(capsys, elf(tmp_path / "file", AMD64, joined, first, address=0x1000))
    at = len(joined) - len(second)
    assert [(part["address"], part["version"], part["size"]) for part in decoded["sections"]] == [
        (0x1000, 3, len(first)),
        (0x1000 + at, 2, len(second)),
        (0x1000, 3, len(first)),
    ]
    assert text.count("Contents of the SFrame section") == 2
    assert text.count("  Header :\n") == 2
    assert text.count(f"  Header at offset {at:#x} :\n") == 1


def test_bytes_after_the_last_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = section(AMD64, [Function(0x10, 8, [ROW])], ra=-8)
    file = elf(tmp_path / "file", AMD64, whole + b"rest")
    _, decoded, complaints = dumped(capsys, file, 2)
    assert len(decoded["sections"][0]["functions"]) == 1
    assert complaints == [
        f"sframe-unwind: {file}: no SFrame header in the 4 bytes after the last table (.sframe offset {len(whole):#x})"
    ]


def test_malformed_functions_do_not_hide_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    functions = [
        Function(0x10, 8, [ROW]),
        Function(0x20, 8, [row(AMD64, 0, [8, -8, -16])]),  # a word too many
        Function(0x30, 8, [ROW], 0x0F),  # FRE type 15
        Function(0x40, 8, [bytes([0, 0x61])]),  # words of no size
        Function(0x50, 8, [row(AMD64, 0, [0x02, 8])], flexible=True),  # CFA based on itself
        Function(0x60, 8, [row(AMD64, 0, [0x39, 8, 0x02])], flexible=True),  # half a pair
        Function(0x70, 8, [ROW], 0x10),  # repetition size 0
        Function(0x80, 8, [row(AMD64, 4, [8]), ROW]),  # out of order
        Function(0x90, 8, [ROW]),
    ]
    file = elf(tmp_path / "file", AMD64, section(AMD64, functions, ra=-8))
    text, decoded, complaints = dumped(capsys, file, 2)
    assert [function["start"] for function in decoded["sections"][0]["functions"]] == [0x10, 0x90]
    assert text.count("malformed\n") == len(complaints) == 7
    for complaint, said in zip(
        complaints,
        [
            "function at 0x20: AMD64 row with 3 data words",
            "FDE 2: unknown FRE type 15",
            "function at 0x40: row 0: info byte 0x61",
            "function at 0x50: flexible row whose CFA is based on the CFA itself",
            "function at 0x60: flexible row ends after control word 0x2",
            "FDE 6: repetition size 0",
            "function at 0x80: row 1 starts at 0x0, before its predecessor",
        ],
    ):
        assert complaint.startswith(f"sframe-unwind: {file}: {said}")
        assert "(.sframe offset 0x" in complaint


class Writes(io.StringIO):
    """Counts the pieces of text that are written."""

    number = 0

    def write(self, text: str) -> int:
        self.number += 1
        return super().write(text)


def test_functions_are_written_in_few_pieces_and_in_order_with_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    functions = [Function(8 * number, 8, [ROW]) for number in range(1, 200)]
    functions[100] = Function(8 * 101, 8, [ROW], 0x0F)
    file = elf(tmp_path / "file", AMD64, section(AMD64, functions, ra=-8))
    both = Writes()
    monkeypatch.setattr("sys.stdout", both)
    monkeypatch.setattr("sys.stderr", both)
    assert main(["dump", str(file)]) == 2
    before, complaint, after = both.getvalue().partition(f"sframe-unwind: {file}: FDE 100: unknown FRE type 15")
    assert complaint
    assert ("func idx [99]" in before, "func idx [100]" in before, "func idx [100]" in after) == (True, False, True)
    assert both.number < len(functions) / 8


def test_what_was_made_before_an_interrupt_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> Iterator[str]:
        yield "the first function\n"
        raise KeyboardInterrupt

    monkeypatch.setattr("sframe_unwind.cli.dump.to_text", interrupted)
    assert main(["dump", str(elf(tmp_path / "file", AMD64, section(AMD64, [Function(0, 8, [ROW])], ra=-8)))]) == 130
    assert capsys.readouterr().out == "the first function\n"


def test_rows_claimed_again_and_again_do_not_grow_the_dump(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    count = 1000
    rows = [row(AMD64, 0, [8])] * count
    raw = section(AMD64, [Function(0, 8, rows)] + [Function(8, 8, [])] * count, version=2, ra=-8)
    entry = raw[28:48]
    greedy = raw[:28] + entry * (count + 1) + raw[28 + 20 * (count + 1) :]
    text, _, complaints = dumped(capsys, elf(tmp_path / "file", AMD64, greedy), 2)
    assert len(complaints) == count - MAX_SHARED_ROWS
    assert "with its 1000 rows there are more than functions may share" in complaints[0]
    assert text.count("rsp+8") < most_rows(3 * count, count + 1)


def test_unknown_header(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for at, value, said in ((2, 9, "unknown SFrame version 9, expected 1, 2 or 3"), (4, 7, "unknown ABI 7")):
        raw = bytearray(ALL)
        raw[at] = value
        file = elf(tmp_path / "file", AMD64, bytes(raw))
        assert main(["dump", str(file)]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith(f"sframe-unwind: {file}: {said}")
        assert printed.err.endswith(f"(.sframe offset {at:#x})\n")


def test_machine_of_another_abi(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", str(elf(tmp_path / "file", S390X, ALL))]) == 2
    assert "SFrame ABI 3 (amd64) in a big-endian file for EM_S390" in capsys.readouterr().err


@pytest.mark.parametrize("seed", range(20))
def test_damage_gives_an_answer_or_a_complaint(tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(25):
        raw = bytearray(ALL)
        for _ in range(chance.randint(1, 6)):
            raw[chance.randrange(2, len(raw))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        file = elf(tmp_path / "file", AMD64, bytes(raw[: chance.randint(0, len(raw) * 2)]))
        for arguments in (["dump", str(file)], ["dump", "--json", str(file)], ["lookup", str(file), "0x12", "0x28"]):
            status = main(arguments)
            printed = capsys.readouterr()
            assert "internal error" not in printed.err
            assert (status == 2) == bool(printed.err)
            if arguments[1] == "--json" and printed.out:
                check_form(json.loads(printed.out), FORM)


def test_functions_that_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the FDEs that contain the addresses are printed, with their numbers; one that is not covered is told."""
    functions = [Function(start, 16, [row(AMD64, 0, [8])]) for start in (0x10, 0x20, 0x40)]
    symbols = [(b"first", 0x1010, 16), (b"bare", 0x1030, 16), (b"last", 0x1040, 16)]
    path = elf(tmp_path / "file", AMD64, section(AMD64, functions, ra=-8), address=0x1000, symbols=symbols)

    def printed(status: int, *names: str) -> list[str]:
        assert main(["dump", str(path), *names]) == status
        return [line.strip() for line in capsys.readouterr().out.splitlines() if "func idx" in line]

    first, last = (f"func idx [{number}]: pc = {at:#x}, size = 16 bytes" for number, at in ((0, 0x1010), (2, 0x1040)))
    assert printed(0, "last") == [last]
    assert printed(0, "last+4", "0x1010", "--json") == []
    assert printed(0, "last+4", "0x1010") == [first, last]
    assert printed(1, "bare") == []
    for form in ([], ["--json"]):
        assert main(["dump", *form, str(path), "bare", "0x1010", "0x2000"]) == 1
        missing = "".join(f"sframe-unwind: {path}: SFrame does not cover {name}\n" for name in ("bare", "0x2000"))
        assert capsys.readouterr().err == missing
    assert main(["dump", "--json", str(path), "first"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["sections"][0]["functions"]
    assert found["start"] == 0x1010
    assert main(["dump", str(path), "nowhere"]) == 2
    assert "nowhere: neither an address nor a symbol" in capsys.readouterr().err


def texts(data: bytes) -> tuple[str, list[str]]:
    """Return the text of a section, and the errors."""
    errors: list[str] = []

    def report(error: FormatError) -> None:
        errors.append(str(error))

    try:
        return "".join(dump.to_text([Section(data, 0x1000)], report)), errors
    except FormatError as error:
        return "", [str(error)]


def test_texts_that_functions_share_are_those_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each conformance case, also damaged."""
    chance = random.Random(0)
    sections = [path.read_bytes() for path in sorted(CONFORMANCE.glob("cases/*/section.sframe"))]
    assert len(sections) > 700
    for data in tuple(filter(None, sections)):
        raw = bytearray(data)
        for _ in range(chance.randint(1, 3)):
            raw[chance.randrange(len(raw))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        sections.append(bytes(raw))
    shared = list(map(texts, sections))
    monkeypatch.setattr(dump.Reader, "plain_text", lambda *_: None)
    assert list(map(texts, sections)) == shared
    assert sum(not errors and "STARTPC" in text for text, errors in shared) > 700
