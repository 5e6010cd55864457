"""Entries of ORC as bytes."""

from __future__ import annotations

import pytest

from lab.kernel.objtool import normalised, words
from sframe_unwind.cfi.rules import NoRule
from sframe_unwind.errors import FormatError
from sframe_unwind.orc import OrcKind, OrcLayout, layout_of
from sframe_unwind.orc.entry import decode
from sframe_unwind.unwind_rule import CFA, OUTERMOST, RegisterRule, UnwindRule, saved_at_cfa
from tests.orc.entries import BP, BP_INDIRECT, DI, DX, PREV_SP, R10, R13, SP, SP_INDIRECT, UNDEFINED, entry

OLD, BOTH, NEW, _ = OrcLayout
END = 1 << 2
"""The flag ``end`` of the old layout."""
SIGNAL = 1 << 3
"""The flag ``signal`` of the new one."""
SIGNAL_OF_BOTH, END_OF_BOTH = 1 << 2, 1 << 3


@pytest.mark.parametrize(("layout", "call"), [(OLD, 0), (BOTH, 0), (NEW, 2), (NEW, 2 | SIGNAL)])
@pytest.mark.parametrize(
    ("sp", "register"), [((SP, 32), 7), ((BP, 16), 6), ((R10, 0), 10), ((R13, -8), 13), ((DI, 8), 5), ((DX, 8), 1)]
)
def test_a_call_frame(layout: OrcLayout, call: int, sp: tuple[int, int], register: int) -> None:
    decoded = decode(entry(sp, flags=call), layout)
    assert decoded.kind is OrcKind.CALL
    assert decoded.said == UnwindRule(RegisterRule(register, sp[1], False), saved_at_cfa(-8), None)


@pytest.mark.parametrize(
    ("bp", "rule"),
    [
        ((UNDEFINED, 0), None),
        ((PREV_SP, -16), RegisterRule(CFA, -16, True)),
        ((BP, -32), RegisterRule(6, -32, True)),
    ],
)
def test_the_frame_pointer(bp: tuple[int, int], rule: RegisterRule | None) -> None:
    said = decode(entry((SP, 32), bp), OLD).said
    assert isinstance(said, UnwindRule)
    assert said.fp == rule


def test_a_cfa_in_memory() -> None:
    """``unwind_next_frame`` adds the offset to BP before it reads the word, and to the word at SP."""
    by_bp = decode(entry((BP_INDIRECT, -8)), OLD).said
    assert by_bp == UnwindRule(RegisterRule(6, -8, True), saved_at_cfa(-8), None)
    by_sp = decode(entry((SP_INDIRECT, 24)), OLD).said
    assert isinstance(by_sp, NoRule)
    assert (by_sp.rule, by_sp.added) == (UnwindRule(RegisterRule(7, 0, True), saved_at_cfa(-8), None), 24)


@pytest.mark.parametrize(
    ("layout", "flags", "kind"),
    [
        (OLD, 1, OrcKind.REGISTERS),
        (OLD, 2, OrcKind.PARTIAL_REGISTERS),
        (BOTH, 1 | SIGNAL_OF_BOTH, OrcKind.REGISTERS),
        (BOTH, 2 | SIGNAL_OF_BOTH, OrcKind.PARTIAL_REGISTERS),
        (NEW, 3, OrcKind.REGISTERS),
        (NEW, 4 | SIGNAL, OrcKind.PARTIAL_REGISTERS),
    ],
)
def test_registers_of_an_exception(layout: OrcLayout, flags: int, kind: OrcKind) -> None:
    decoded = decode(entry((SP, 8), flags=flags), layout)
    assert (decoded.kind, decoded.place) == (kind, RegisterRule(7, 8, False))
    assert isinstance(decoded.said, NoRule)
    assert decoded.said.rule is None


def test_the_end_of_a_stack() -> None:
    for flags, layout in ((END, OLD), (END_OF_BOTH | SIGNAL_OF_BOTH, BOTH), (END_OF_BOTH, BOTH), (1, NEW)):
        decoded = decode(entry((UNDEFINED, 0), flags=flags), layout)
        assert decoded.kind is OrcKind.END
        assert decoded.said == OUTERMOST


def test_nothing_is_known() -> None:
    for layout in OrcLayout:
        decoded = decode(entry((UNDEFINED, 0)), layout)
        assert decoded.kind is OrcKind.UNDEFINED
        assert decoded.said is None


@pytest.mark.parametrize(
    ("data", "layout"),
    [
        (entry((SP, 8), flags=3), OLD),
        (entry((SP, 8), flags=1 << 3), OLD),  # the layout of 6.3 has a flag more
        (entry((SP, 8), flags=3), BOTH),
        (entry((SP, 8), flags=1 << 4), BOTH),
        (entry((SP, 8), flags=5), NEW),
        (entry((SP, 8), flags=1 << 4), NEW),
        (entry((PREV_SP, 8)), OLD),
        (entry((10, 8)), OLD),
        (entry((UNDEFINED, 8), flags=2), NEW),
        (entry((SP, 8), (SP, -8)), OLD),
    ],
)
def test_what_the_layout_does_not_have(data: bytes, layout: OrcLayout) -> None:
    with pytest.raises(FormatError, match=f"ORC entry {data.hex()}"):
        decode(data, layout)


OF_LINUX_6_12 = """
080000000502 ffffffff81000000:type:call sp:sp+8 bp:(und) signal:0
000000000000 ffffffff81000032:type:(und) sp:(und) bp:(und) signal:0
1800e8ff1502 ffffffff81000053:type:call sp:sp+24 bp:prevsp-24 signal:0
000000000001 ffffffff81000b20:type:end sp:(und) bp:(und) signal:0
1000f0ff1402 ffffffff81000ce3:type:call sp:bp+16 bp:prevsp-16 signal:0
00000000050b ffffffff8100826a:type:regs sp:sp+0 bp:(und) signal:1
100000000902 ffffffff81027b19:type:call sp:(sp)+16 bp:(und) signal:0
08000000050c ffffffff8103c624:type:regs (partial) sp:sp+8 bp:(und) signal:1
8800d0ff1902 ffffffff8109face:type:call sp:(sp)+136 bp:prevsp-48 signal:0
000000000702 ffffffff8118d3d0:type:call sp:r13+0 bp:(und) signal:0
000000004702 ffffffff8118d3d8:type:call sp:r13+0 bp:bp+0 signal:0
e8ff00004802 ffffffff8118d3de:type:call sp:(bp-24) bp:bp+0 signal:0
000000000602 ffffffff812a4052:type:call sp:r10+0 bp:(und) signal:0
000000004602 ffffffff812a405a:type:call sp:r10+0 bp:bp+0 signal:0
000000000504 ffffffff81e01240:type:regs (partial) sp:sp+0 bp:(und) signal:0
08000000020c ffffffff81e01d69:type:regs (partial) sp:dx+8 bp:(und) signal:1
"""
"""One entry of each kind in Linux 6.12.117 of Debian, as bytes and as objtool of that kernel shows it."""
OF_LINUX_7_2 = """
080000000302 ffffffff81000000:type:call sp:sp+8 bp:(und) signal:0
000000000000 ffffffff8100000a:type:(und) sp:(und) bp:(und) signal:0
000000000001 ffffffff81000080:type:end sp:(und) bp:(und) signal:0
00000000030b ffffffff810000d2:type:regs sp:sp+0 bp:(und) signal:1
18000000030c ffffffff810001db:type:regs (partial) sp:sp+24 bp:(und) signal:1
000000000304 ffffffff81001240:type:regs (partial) sp:sp+0 bp:(und) signal:0
08000000020c ffffffff81001d79:type:regs (partial) sp:dx+8 bp:(und) signal:1
1000f0ff8302 ffffffff812000f6:type:call sp:sp+16 bp:prevsp-16 signal:0
1000f0ff8402 ffffffff81200a08:type:call sp:bp+16 bp:prevsp-16 signal:0
d8ff00004a02 ffffffff812222af:type:call sp:(bp-40) bp:bp+0 signal:0
000000004602 ffffffff812278fd:type:call sp:r10+0 bp:bp+0 signal:0
000000000602 ffffffff81227900:type:call sp:r10+0 bp:(und) signal:0
000000004702 ffffffff8129768d:type:call sp:r13+0 bp:bp+0 signal:0
000000000702 ffffffff81297692:type:call sp:r13+0 bp:(und) signal:0
100000000902 ffffffff812d0d49:type:call sp:(sp)+16 bp:(und) signal:0
8800d0ff8902 ffffffff81352233:type:call sp:(sp)+136 bp:prevsp-48 signal:0
"""
"""The same in Linux 7.2.13."""
HASHES = "fe5d32bf 581bd63b 2ca9a5c6 5ba5a625 eab3fe24", "137c36ad 7627c4dd 55932176 bb0ecdbd 5041fc82"
"""The contents of ``.orc_header`` in both."""
ENTRIES = [
    (line, data) for text, data in zip((OF_LINUX_6_12, OF_LINUX_7_2), HASHES) for line in text.strip().split("\n")
]


@pytest.mark.parametrize(("line", "header"), ENTRIES)
def test_entries_of_debians_kernels_are_those_of_objtool(line: str, header: str) -> None:
    data, _, shown = line.partition(" ")
    decoded = decode(bytes.fromhex(data), layout_of(bytes.fromhex(header)))
    assert words(decoded) == normalised(shown).partition(": ")[2]


def test_item_40_the_layout_by_the_hash() -> None:
    assert layout_of(None) is OLD
    for header in (b"", bytes(20), bytes.fromhex(HASHES[0])[:-1]):
        with pytest.raises(FormatError, match=f"has the hash {header.hex()}$"):
            layout_of(header)
