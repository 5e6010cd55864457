"""`sframe disassemble` in LLDB shows the instructions that LLDB's own command shows, with the CFA of its own frames."""

from __future__ import annotations

import re

import pytest

from tests.debugger import listing
from tests.gdb.terminal import plain
from tests.lldb.driver import IMPORT, batch
from tests.samples.build import build

STOPPED = ("-o", "breakpoint set -n sample_stop", "-o", "process launch -o /dev/null", "-o", "frame select 1")


def test_frame_of_a_caller(lldb: str) -> None:
    program = build("plt")
    text = batch(
        lldb,
        *("-o", IMPORT, "-o", "sframe mode off", *STOPPED),
        *("-o", "disassemble --bytes", "-o", "script print('own', hex(lldb.frame.GetCFA()))"),
        *("-o", "sframe disassemble /s", str(program)),
    )
    before, _, ours = text.partition("(lldb) sframe disassemble /s\n")
    shown = listing.read(ours)
    own = before.partition("(lldb) disassemble --bytes\n")[2]
    instructions = re.findall(r"^(->)? +0x([0-9a-f]+) <", own, re.MULTILINE)
    assert shown.function == "called_back"
    assert shown.addresses == [int(address, 16) for _, address in instructions]
    assert shown.arrows == [int(address, 16) for arrow, address in instructions if arrow]
    own_cfa = re.search(r"own (0x[0-9a-f]+)", before)
    assert own_cfa is not None
    assert shown.cfa == int(own_cfa[1], 16)
    assert shown.above_values == shown.addresses[shown.addresses.index(shown.arrows[0]) - 1]
    assert any("return address" in line for line in shown.picture)
    assert "plt.c:13   sample_stop(value);" in ours


def test_an_address_before_the_program_runs(lldb: str) -> None:
    """`disas` suffices; there is no arrow, no value and no picture of a frame."""
    text = batch(lldb, "-o", IMPORT, "-o", "sframe disas called_back + 4", str(build("plt")))
    shown = listing.read(text)
    assert (shown.function, shown.arrows, shown.cfa, shown.picture) == ("called_back", [], None, [])
    assert len(shown.addresses) > 5


@pytest.mark.parametrize(
    ("address", "error"),
    [
        ("nowhere", "sframe: 'nowhere' is not an address"),
        ("16", "sframe: 0x10: nothing tells where its function begins: "),
    ],
)
def test_what_cannot_be_shown(lldb: str, address: str, error: str) -> None:
    text = batch(lldb, "-o", IMPORT, "-o", f"sframe disassemble {address}", str(build("plt")), status=None)
    assert error in text


def test_colours_are_those_of_lldb(lldb: str) -> None:
    program, shown = str(build("plt")), []
    for colours in ("true", "false"):
        setting = f"settings set use-color {colours}"
        text = batch(lldb, "-o", IMPORT, "-o", setting, "-o", "sframe disassemble called_back", program)
        shown.append(text.partition("sframe disassemble called_back\n")[2])
    coloured, uncoloured = shown
    assert "\x1b" not in uncoloured
    assert "\x1b[36mrsp+8" in coloured
    assert plain(coloured) == uncoloured
