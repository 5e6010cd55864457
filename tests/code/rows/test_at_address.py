"""Rows of single addresses from the machine code, against the CFI that the same program had before it was removed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from lab.code.from_code import DIFFERENT, NOT_KNOWN, outcome
from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.cfi.rules import CfiRules
from sframe_unwind.code.rows.at_address import CodeRow, CodeRows
from sframe_unwind.code.rows.extents import FoundBy
from sframe_unwind.code.rows.function import Basis
from sframe_unwind.code.rows.stack_words import FrameValues
from sframe_unwind.elf import ElfBinary, opened
from sframe_unwind.elf.cfi import CfiProblem
from sframe_unwind.errors import MemoryReadError
from sframe_unwind.memory import ReadMemory
from sframe_unwind.unwind_rule import OUTERMOST, RegisterRule
from tests.code.assembled import linked
from tests.hanging import HANG
from tests.samples.build import build
from tests.samples.catalogue import ABIS
from tests.undescribed import undescribed


def outcomes(described: ElfBinary, rows: CodeRows) -> dict[str, list[int]]:
    """Return the addresses of a program that its CFI describes, by how the code's rule there compares."""
    found: dict[str, list[int]] = {}
    rules = CfiRules(described.arch)
    for function in described.cfi.all_functions():
        assert not isinstance(function, CfiProblem)
        offsets, expected = rules.rows(function, function.start, function.end)
        for offset, rule in zip(offsets, expected):
            row = rows.at(function.start + offset)
            how = outcome(None if row is None else row.rule, rule, described.arch)
            found.setdefault(how, []).append(function.start + offset)
    return found


@pytest.mark.parametrize("with_symbols", [True, False])
@pytest.mark.parametrize("variant", ["O0", "O2"])
@pytest.mark.parametrize("abi", sorted(ABIS))
def test_rows_are_those_of_the_removed_cfi(abi: str, variant: str, with_symbols: bool, tmp_path: Path) -> None:
    path = build("free_walk", abi, variant=variant)
    rows = CodeRows(str(undescribed(path, abi, tmp_path / "copy", with_symbols)))
    with opened(path) as described:
        found = outcomes(described, rows)
    assert rows.why == ""
    assert found.get(DIFFERENT, []) == []
    total = sum(map(len, found.values()))
    assert total > 20
    # Without symbols, a function with an end where the frame is not known has no rows at all.
    assert len(found.get(NOT_KNOWN, [])) <= total // (10 if with_symbols else 3)


@pytest.mark.parametrize("variant", ["O0", "O2"])
@pytest.mark.parametrize("abi", [abi for abi in sorted(ABIS) if ABIS[abi].has_libc])
def test_a_program_that_shows_where_its_functions_begin(abi: str, variant: str, tmp_path: Path) -> None:
    """`main` is passed to the C library; nothing calls it directly.  It is not a part of the code before it."""
    path = build("callback", abi, variant=variant)
    rows = CodeRows(str(undescribed(path, abi, tmp_path / "copy", with_symbols=False)))
    with opened(path) as described:
        starts = {symbol.name: symbol.address for symbol in described.symbols}
        entry = described.entry_point
    main = rows.at(starts["main"])
    assert main is not None
    assert (main.start, main.basis) == (starts["main"], Basis.PROVED)
    assert main.found_by in (FoundBy.CALLED, FoundBy.SYMBOL)  # on s390x, `main` is exported
    first = rows.at(entry)
    assert first is not None
    assert first.rule == OUTERMOST


SOURCE = """
        .text
        .globl table
    inner:
        push %rbx
        sub $32, %rsp
    stop:
        nop
        add $32, %rsp
        pop %rbx
        ret
    other:
        sub $24, %rsp
        jmp stop + 1
    outer:
        sub $8, %rsp
        call inner
    after:
        add $8, %rsp
        ret
    wrong:
        call other
    after_wrong:
        ret
        .section .note.GNU-stack, "", @progbits
        .data
    table:
        .quad outer, wrong
"""


@pytest.fixture(scope="module")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    """Return a program without any table, whose functions nothing calls that is known, and where its labels are."""
    return assembled(SOURCE, tmp_path_factory.mktemp("hidden"))


def assembled(source: str, folder: Path) -> tuple[Path, dict[str, int]]:
    """Return a program without any table, and where its labels are."""
    gcc = shutil.which("gcc")
    assert gcc is not None
    (folder / "source.s").write_text(source)
    command = [gcc, "-nostdlib", "-static", "-Wl,-e,0", str(folder / "source.s"), "-o", str(folder / "with")]
    subprocess.run(command, check=True, timeout=HANG)
    with opened(folder / "with") as binary:
        labels = {symbol.name: symbol.address for symbol in binary.symbols}
    return undescribed(folder / "with", "amd64", folder / "without", with_symbols=False), labels


def reader_of(binary: ElfBinary) -> ReadMemory:
    """Return a function that reads the code of a program."""
    text = binary.named(".text")
    assert text is not None
    code = binary.contents(text)

    def read(address: int, size: int) -> bytes:
        at = address - text.address
        if at < 0 or at + size > len(code):
            raise MemoryReadError(address, size)
        return bytes(code[at : at + size])

    return read


def no_memory(address: int, size: int) -> bytes:
    raise MemoryReadError(address, size)


def frame_of(words: list[int], sp: int = 0x7000, read: ReadMemory = no_memory) -> FrameValues:
    """Return a frame with some words on its stack, and code that can be read."""

    def read_word(address: int) -> int:
        at = (address - sp) // 8
        if not 0 <= at < len(words):
            raise MemoryReadError(address, 8)
        return words[at]

    return FrameValues(sp=sp, fp=0, read_word=read_word, read=read, bias=0)


def row_of_frame(hidden: tuple[Path, dict[str, int]], words: list[int]) -> CodeRow | None:
    path, labels = hidden
    rows = CodeRows(str(path))
    assert rows.at(labels["stop"]) is None  # no code that is known leads to it
    return rows.of_frame(labels["stop"], frame_of(words))


def test_a_frame_shows_where_its_function_begins(hidden: tuple[Path, dict[str, int]]) -> None:
    labels = hidden[1]
    # 32 bytes of room, the saved %rbx, and the return address; a stale one is in the room.
    found = row_of_frame(hidden, [0, labels["after"], 0, 0, 0, labels["after"], 0])
    assert found is not None
    assert (found.start, found.found_by) == (labels["inner"], FoundBy.FRAME)
    assert found.rule.cfa is not None
    assert found.rule.cfa.offset == 48


@pytest.mark.parametrize("words", [["after", 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, "after_wrong"], [0, 0, 0, 0, "after", 0]])
def test_a_word_elsewhere_shows_nothing(words: list[int | str], hidden: tuple[Path, dict[str, int]]) -> None:
    labels = hidden[1]
    assert row_of_frame(hidden, [labels[word] if isinstance(word, str) else word for word in words]) is None


POINTED_TO = """
        .text
    handler:
        push %rbx
        sub $16, %rsp
    in_handler:
        nop
        add $16, %rsp
        pop %rbx
        ret
    with_label:
        push %rbx
        sub $32, %rsp
    label:
        nop
    in_label:
        nop
        add $32, %rsp
        pop %rbx
        ret
    endless:
        sub $40, %rsp
    loop:
        nop
    in_loop:
        jmp loop
    with_jump_back:
        push %rbx
        sub $32, %rsp
    again:
        nop
        add $32, %rsp
        pop %rbx
        ret
    before_jump:
        nop
    in_jump_back:
        jmp again
    caller:
        sub $8, %rsp
        call *%rax
    after_pointer:
        add $8, %rsp
        ret
    other_caller:
        call caller
    after_direct:
        ret
    trampoline:
        mov $15, %rax
        syscall
        .section .note.GNU-stack, "", @progbits
        .data
        .quad handler, label, loop, before_jump
"""


@pytest.fixture(scope="module")
def pointed_to(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    """Return a program without any table, to whose functions and labels only data points, and where its labels are."""
    return assembled(POINTED_TO, tmp_path_factory.mktemp("pointed_to"))


@pytest.mark.parametrize("returns_to", ["after_pointer", "trampoline"])
def test_data_and_a_frame_show_where_a_function_begins(
    returns_to: str, pointed_to: tuple[Path, dict[str, int]]
) -> None:
    path, labels = pointed_to
    with opened(path) as binary:
        frame = frame_of([0, 0, 0, labels[returns_to]], read=reader_of(binary))
        found = CodeRows(str(path)).of_frame(labels["in_handler"], frame)
    assert found is not None
    assert (found.start, found.found_by) == (labels["handler"], FoundBy.POINTER)
    assert found.rule.cfa == RegisterRule(7, 32, False)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("in_handler", [0, 0, 0, "after_direct"]),
        ("in_handler", [0, 0, "after_pointer", 0]),
        ("in_handler", [0, 0, 0, "handler"]),
        ("in_label", ["after_pointer", 0, 0, 0, 0, "after_pointer"]),
        ("in_loop", ["after_pointer", 0, 0, 0, 0, "after_pointer"]),
        ("in_jump_back", ["after_pointer", 0, 0, 0, 0, "after_pointer"]),
    ],
)
def test_data_that_points_elsewhere_shows_nothing(
    place: str, words: list[int | str], pointed_to: tuple[Path, dict[str, int]]
) -> None:
    """The label of a function begins none: a frame is there already, also if the function does not return."""
    path, labels = pointed_to
    with opened(path) as binary:
        frame = frame_of([labels[one] if isinstance(one, str) else one for one in words], read=reader_of(binary))
        assert CodeRows(str(path)).of_frame(labels[place], frame) is None


ALIGNED = """
        .globl aligned
        .type aligned, @function
    aligned:
        lea 8(%rsp), %r10
        and $-32, %rsp
        push -8(%r10)
        push %rbp
        mov %rsp, %rbp
        push %r10
        sub $56, %rsp
    calls:
        call other
        mov -8(%rbp), %r10
        leave
        lea -8(%r10), %rsp
        ret
        .size aligned, .-aligned
        .globl other
        .type other, @function
    other:
        ret
        .size other, .-other
        .section .note.GNU-stack, "", @progbits
"""


def test_the_row_at_a_call_needs_no_register_that_calls_change(tmp_path: Path) -> None:
    """It is used while the callee runs, which may change `r10`."""
    (tmp_path / "aligned.s").write_text(ALIGNED)
    command = ["gcc", "-nostdlib", "-shared", str(tmp_path / "aligned.s"), "-o", str(tmp_path / "aligned.so")]
    subprocess.run(command, check=True, timeout=HANG)
    with opened(tmp_path / "aligned.so") as binary:
        calls = {symbol.name: symbol.address for symbol in binary.symbols}["calls"]
    row = CodeRows(str(tmp_path / "aligned.so")).at(calls)
    assert row is not None
    assert row.rule.cfa == RegisterRule(6, -8, True)  # the word at rbp - 8


ENTERED_WITHIN = """
        .globl two
        .type two, @function
    two:
        sub $24, %rsp
        call other
    within:
        nop
        add $24, %rsp
        ret
        .size two, .-two
        .globl one
        .type one, @function
    one:
        {code}
        ret
        .size one, .-one
        .globl other
        .type other, @function
    other:
        ret
        .size other, .-other
        .section .note.GNU-stack, "", @progbits
"""


@pytest.mark.parametrize(
    ("code", "has_row"),
    [
        ("sub $40, %rsp; call other; jmp within", False),
        ("sub $40, %rsp; call other; test %eax, %eax; je within; add $40, %rsp", False),
        ("sub $8, %rsp; call within; add $8, %rsp", False),
        ("sub $24, %rsp; call other; jmp within", True),
        ("sub $8, %rsp; call two; add $8, %rsp", True),
    ],
)
def test_code_that_another_function_enters_with_another_frame_has_no_row(
    code: str, has_row: bool, tmp_path: Path
) -> None:
    library = linked(ENTERED_WITHIN.format(code=code), tmp_path)
    with opened(library) as binary:
        labels = {symbol.name: symbol.address for symbol in binary.symbols}
    rows = CodeRows(str(library))
    row = rows.at(labels["within"])
    assert (row is not None) == has_row
    assert row is None or row.rule.cfa == RegisterRule(7, 32, False)
    assert rows.at(labels["two"]) is not None


def test_a_damaged_file_has_a_reason(tmp_path: Path) -> None:
    path = build("free_walk")
    damaged = tmp_path / "damaged"
    damaged.write_bytes(path.read_bytes()[:5000])
    rows = CodeRows(str(damaged))
    assert rows.at(0x401000) is None
    assert rows.of_frame(0x401000, frame_of([0x401000])) is None
    assert len(rows.why.splitlines()) == 1
    assert CodeRows(str(tmp_path / "none")).at(ADDRESS_MASK) is None
