"""A program's constants near the addresses at which instructions are lifted are not taken for relative ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from sframe_unwind import elf
from sframe_unwind.code.decode.instruction import CONSTANT
from sframe_unwind.code.decode.lifting import BASES, Lifter
from sframe_unwind.code.decode.machines import MACHINES
from sframe_unwind.code.judge.findings import DWARF
from sframe_unwind.code.judge.judgement import Judgement
from sframe_unwind.verify.code_check import check_elf
from tests.code.assembled import assemble

OFFSETS = (0, 16, 0x1000, -8, 1 << 32)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("offset", OFFSETS)
def test_a_constant_of_64_bits_is_itself(base: int, offset: int) -> None:
    raw = b"\x48\xb8" + (base + offset).to_bytes(8, "little")
    found = Lifter(MACHINES["amd64"]).instruction(raw, 0)
    assert dict(found.puts)[0] == (CONSTANT, base + offset)


@pytest.mark.parametrize("base", BASES)
def test_the_highest_bits_of_a_constant_are_themselves(base: int) -> None:
    high = base >> 32
    move = (0xD2C00000 | high << 5).to_bytes(4, "little")  # mov x0, #high, lsl #32
    assert dict(Lifter(MACHINES["aarch64"]).instruction(move, 0).puts)[0] == (CONSTANT, base)
    insert = b"\xc0\x0e" + high.to_bytes(4, "big")  # llihf %r0, high
    assert dict(Lifter(MACHINES["s390x"]).instruction(insert, 0).puts)[0] == (CONSTANT, base)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(("size", "judgement"), [(64, Judgement.PROVED), (64 - 10, Judgement.WRONG)])
def test_what_is_allocated_with_such_constants(base: int, size: int, judgement: Judgement, tmp_path: Path) -> None:
    """The second instruction is 10 bytes after the first: as relative ones, the constants would differ by 54."""
    source = f"""
        .text
        .type f,%function
    f:  .cfi_startproc
        movabs ${base + 64:#x}, %rax
        movabs ${base:#x}, %rdx
        sub %rdx, %rax
        sub %rax, %rsp
        .cfi_def_cfa_offset 8 + {size}
        mov %rcx, %rdx
        jmp .
        .cfi_endproc
        .size f, .-f
    """
    with elf.opened(assemble("amd64", source, tmp_path / "f.o")) as binary:
        verdict = check_elf(binary, None)
    (function,) = verdict.functions
    assert function.worst[DWARF] is judgement
