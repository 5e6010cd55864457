"""Relocations of RISC-V, which add and subtract symbols in the same field, compared with the linker's result.

The machine is not one of this project's: the test gives its relocations as a file in ``arch`` would.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sframe_unwind.arch import ARCHES, amd64
from sframe_unwind.arch.elf_code import FieldRelocation, absolute, relative
from sframe_unwind.elf import opened, relocation
from sframe_unwind.errors import FileError
from tests.elf.objects import run
from tests.lint.products import producers

SOURCE = """
.text
.globl f
f: .cfi_startproc
nop
.cfi_def_cfa_offset 16
call g
.cfi_def_cfa_offset 32
nop
.cfi_endproc
g: .cfi_startproc
nop
.cfi_def_cfa_offset 16
ret
.cfi_endproc
.data
.4byte g-f
.8byte g-f
.byte g-f
.2byte g-f
.8byte f
.4byte f-.
"""


def added(value: int, _place: int, before: int) -> int:
    return before + value


def subtracted(value: int, _place: int, before: int) -> int:
    return before - value


def low_6_set(value: int, _place: int, before: int) -> int:
    return before & 0xC0 | value & 0x3F


def low_6_subtracted(value: int, _place: int, before: int) -> int:
    return before & 0xC0 | before - value & 0x3F


RISCV = {
    1: FieldRelocation(4, absolute),  # R_RISCV_32
    2: FieldRelocation(8, absolute),  # R_RISCV_64
    **{33 + number: FieldRelocation(1 << number, added) for number in range(4)},  # R_RISCV_ADD8 to ADD64
    **{37 + number: FieldRelocation(1 << number, subtracted) for number in range(4)},  # R_RISCV_SUB8 to SUB64
    52: FieldRelocation(1, low_6_subtracted),  # R_RISCV_SUB6
    53: FieldRelocation(1, low_6_set),  # R_RISCV_SET6
    57: FieldRelocation(4, relative),  # R_RISCV_32_PCREL
}


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Return an object file, and the program that is linked from it."""
    source, made, linked = tmp_path / "a.s", tmp_path / "a.o", tmp_path / "linked"
    source.write_text(SOURCE, encoding="ascii")
    # With -mrelax, the linker may delete code between two labels, so that only it knows their distance.
    run(producers() / "clang", "--target=riscv64-linux-gnu", "-mrelax", "-c", source, "-o", made)
    run(producers() / "ld.lld", "-e", "f", "--no-relax", made, "-o", linked)
    return made, linked


def test_sections_are_those_of_the_linker(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    riscv = amd64.ARCH._replace(name="riscv64", elf_machine="EM_RISCV", relocations=RISCV)
    monkeypatch.setattr(relocation, "ARCHES", (*ARCHES, riscv))
    with opened(files[0]) as made, opened(files[1]) as linked:
        addresses = {section.name: section.address for section in linked.sections}
        relocations = made.relocations_at([addresses.get(section.name, 0) for section in made.sections])
        for name, size in ((".data", 27), (".eh_frame", 64)):
            before, after = made.named(name), linked.named(name)
            assert before is not None
            assert after is not None
            found = relocations.contents(before)
            assert len(found) >= size
            assert found != made.contents(before)
            assert found == linked.contents(after)[: len(found)]  # the linker ends `.eh_frame` with a zero


def test_machine_without_these_relocations(files: tuple[Path, Path]) -> None:
    with opened(files[0]) as made:
        section = made.named(".data")
        assert section is not None
        with pytest.raises(FileError, match=r"relocation of type 35 in .data at 0x0 is not known"):
            made.relocated(section)
