"""An object file of AMD64 with a section for each function, as `-ffunction-sections` makes it."""

from __future__ import annotations

from pathlib import Path

from tests.elf.objects import run, tools_for

_FUNCTION = """
.section .text.f{number},"ax"
.type f{number}, @function
f{number}:
.cfi_startproc
push %rbx
.cfi_def_cfa_offset 16
call f{callee}
pop %rbx
.cfi_def_cfa_offset 8
ret
.cfi_endproc
.size f{number}, . - f{number}
.type leaf{number}, @function
leaf{number}: ret
.size leaf{number}, . - leaf{number}
.skip 70
"""


def many_sections(folder: Path, count: int) -> Path:
    """Return the file; each section also has a function, of one byte, that SFrame does not describe.

    :param count: of the sections of code; each has relocations.
    """
    source, made = folder / "many.s", folder / "many.o"
    functions = (_FUNCTION.format(number=number, callee=number * 7 % count) for number in range(count))
    source.write_text("".join(functions), encoding="ascii")
    run(tools_for("amd64", 3) / "as", "--gsframe", source, "-o", made)
    return made
