"""The table of modules."""

from __future__ import annotations

import pytest

from sframe_unwind.arch import BY_NAME
from sframe_unwind.report import status
from sframe_unwind.sframe.constants import AbiNumber
from sframe_unwind.sframe.encode import FunctionSpec, SectionSpec, encode, usual_table
from sframe_unwind.sframe.section import Section
from sframe_unwind.unwind.modules import Module, Modules

START, CODE_SIZE = 0x1000, 0x200


@pytest.mark.parametrize(("size", "share"), [(0, "0%"), (0x80, "25%"), (CODE_SIZE, "100%"), (0xFFFFFFFF, ">100%")])
def test_share_of_the_code(size: int, share: str) -> None:
    """The last size is that of a damaged function."""
    table = usual_table(3, AbiNumber.AMD64_ENDIAN_LITTLE, [FunctionSpec(START, size)])
    section = Section(encode(SectionSpec(0x8000, (table,))), 0x8000)
    module = Module("/bin/program", [(START, START + CODE_SIZE)], lambda: section)
    lines = status.to_text(Modules(BY_NAME["amd64"], [module]), "always", [])
    row = next(line for line in lines if line.startswith("program "))
    assert row.split()[-1] == share
    advice = "/bin/program: the functions are larger than the code: try sframe-unwind lint"
    assert (advice in lines) == (share == ">100%")


def test_functions_that_are_not_in_the_code_do_not_count() -> None:
    """A module of a kernel has SFrame for its initial code, which the kernel frees; other code can be there then."""
    functions = [FunctionSpec(START, CODE_SIZE // 2), FunctionSpec(0x5000, CODE_SIZE * 4)]
    section = Section(encode(SectionSpec(0x8000, (usual_table(3, AbiNumber.AMD64_ENDIAN_LITTLE, functions),))), 0x8000)
    module = Module("probe.ko", [(START, START + CODE_SIZE)], lambda: section)
    lines = status.to_text(Modules(BY_NAME["amd64"], [module]), "always", [])
    assert next(line for line in lines if line.startswith("probe.ko ")).split()[-1] == "50%"
    assert not any("larger than the code" in line for line in lines)
