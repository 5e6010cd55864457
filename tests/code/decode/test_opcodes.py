"""The opcodes of the assembler's tables are counted; `python -m lab.code.opcodes` counts all of them."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from lab.code.opcodes.counting import STATUSES, Counted
from lab.code.opcodes.sampling import samples
from lab.code.opcodes.tables import opcodes
from lab.code.witness.running import Witness
from tests.missing import toolchain_needed

TABLES = {
    "amd64": {
        # add with a register; vaddps; APX's imulzu; lgdt, which only systems may execute; aaa, not in 64-bit mode; a
        # prefix that is none of the processor's
        "i386-tbl.h": """
  { MN_add, 0x00, 2, SPACE_BASE, None,
  { MN_vaddps, 0x58, 3, SPACE_0F, None,
  { MN_imulzu, 0x69, 3, SPACE_MAP4, None,
  { MN_lgdt, 0x01, 1, SPACE_0F, 2,
  { MN_aaa, 0x37, 0, SPACE_BASE, None,
  { MN__disp8_, 0, 0, SPACE_BASE, Prefix_Disp8,
"""
    },
    "aarch64": {
        "aarch64-tbl.h": """
  CORE_INSN ("add", 0x0b200000, 0x7fe00000, addsub_ext, 0, OP3 (Rd_SP, Rn_SP, Rm_EXT), QL_I3_EXT, F_SF),
  CORE_INSN ("hvc", 0xd4000002, 0xffe0001f, exception, 0, OP1 (EXCEPTION), {}, 0),
  CORE_INSN ("sysl", 0xd5280000, 0xfff80000, ic_system, 0, OP5 (Rt, UIMM3_OP1, CRn, CRm, UIMM3_OP2), QL_X, 0),
"""
    },
    "s390x": {
        "s390-opc.txt": """
a704 j*8 RI_0P "conditional jump" g5 esa,zarch
b908 agr RRE_RR "add 64" z900 zarch
b2fe nothing RRE_RR "none"
c802 csst SSF_RRDRD "compare and swap and store" z9-ec zarch
""",
        "s390-opc.c": """
#define MASK_RI_0P        { 0xff, 0x0f, 0x00, 0x00, 0x00, 0x00 }
#define MASK_RRE_RR       { 0xff, 0xff, 0xff, 0x00, 0x00, 0x00 }
#define MASK_SSF_RRDRD   { 0xff, 0x0f, 0x00, 0x00, 0x00, 0x00 }
""",
    },
}
COUNTS = {
    "amd64": {"executed": 2, "unknown": 1, "refused": 1, "not encoded": 1},
    "aarch64": {"executed": 1, "unknown": 1, "left out": 1},
    "s390x": {"executed": 2, "unknown": 1, "not encoded": 1},
}


@pytest.mark.parametrize("machine", TABLES)
def test_opcodes_are_counted_by_what_is_known_and_executed(machine: str, tmp_path: Path) -> None:
    for name, text in TABLES[machine].items():
        (tmp_path / name).write_text(text)
    random_ = Random(1)
    with toolchain_needed():
        found = samples(machine, opcodes(machine, tmp_path), random_)
        witness = Witness(machine, 8)
    with witness:
        counted = Counted(witness, found, random_)
    wanted = COUNTS[machine]
    numbers = counted.numbers()
    assert numbers[:6] == [sum(wanted.values()), *(wanted.get(status, 0) for status in STATUSES)]
    assert not counted.has_false
    assert numbers[-2] > 0
