"""`sframe disassemble` in GDB shows the instructions that GDB's own command shows, with the CFA of GDB's own frames."""

from __future__ import annotations

import re

from tests.debugger import listing
from tests.gdb.driver import Debugger, batch
from tests.gdb.programs import built
from tests.gdb.terminal import plain, terminal

STOPPED = ("break sample_stop", "run > /dev/null", "up")


def test_frame_of_a_caller(debugger: Debugger) -> None:
    """The instructions and the arrow are those of `disassemble`, the CFA is that of `info frame`."""
    program = built("plt", "amd64", 3)
    commands = (
        "set sframe mode off",
        *STOPPED,
        "echo ---\\n",
        "disassemble",
        "echo ---\\n",
        "info frame",
        "echo ---\\n",
    )
    text = batch(debugger, *commands, "sframe disassemble /s", executable=program)
    _, own, frame, ours = text.split("---\n")
    shown = listing.read(ours)
    instructions = re.findall(r"^(=>)? +0x([0-9a-f]+) <", own, re.MULTILINE)
    assert shown.function == "called_back"
    assert shown.addresses == [int(address, 16) for _, address in instructions]
    assert shown.arrows == [int(address, 16) for arrow, address in instructions if arrow]
    own_cfa = re.search(r"Stack level 1, frame at (0x[0-9a-f]+)", frame)
    assert own_cfa is not None
    assert shown.cfa == int(own_cfa[1], 16)
    # The values are those at the call, which is before the pc.
    assert shown.above_values == shown.addresses[shown.addresses.index(shown.arrows[0]) - 1]
    assert any("return address" in line for line in shown.picture)
    assert "plt.c:13   sample_stop(value);" in ours


def test_frame_of_a_function_without_a_name(debugger: Debugger) -> None:
    program = built("sframe_only_stripped", "amd64", 3)
    text = batch(debugger, *STOPPED, "sframe disassemble", executable=program)
    shown = re.search(r"^#1  0x[0-9a-f]+ in (.*) \(", text, re.MULTILINE)
    assert shown is not None
    assert listing.read(text).function == shown[1] == "??"


def test_an_address_before_the_program_runs(debugger: Debugger) -> None:
    """`disas` suffices; there is no arrow, no value and no picture of a frame."""
    program = built("plt", "amd64", 3)
    shown = listing.read(batch(debugger, "sframe disas called_back + 4", executable=program))
    assert (shown.function, shown.arrows, shown.cfa, shown.picture) == ("called_back", [], None, [])
    assert len(shown.addresses) > 5


def test_what_cannot_be_shown(debugger: Debugger) -> None:
    program = built("plt", "amd64", 3)
    text = batch(debugger, "sframe disassemble nowhere", "sframe disassemble 16", "echo alive\\n", executable=program)
    nowhere, low, alive = text.splitlines()[-3:]
    assert nowhere == 'sframe: No symbol "nowhere" in current context.'
    assert low.startswith("sframe: 0x10: nothing tells where its function begins: ")
    assert alive == "alive"


def test_colours_are_those_of_gdb(debugger: Debugger) -> None:
    """They are for a terminal with `set style enabled on`, and not for programs that take the output."""
    with terminal(debugger, built("plt", "amd64", 3)) as session:
        session.run("set style enabled off")
        uncoloured = session.run("sframe disassemble called_back")
        assert "\x1b" not in uncoloured
        session.run("set style enabled on")
        coloured = session.run("sframe disassemble called_back")
        assert re.search(r"\x1b\[36[0-9;]*mrsp\+8", coloured)  # GDB 18 writes each sequence in its own way
        assert plain(coloured) == uncoloured
        taken = session.run("python print(gdb.execute('sframe disassemble called_back', to_string=True))")
        assert "\x1b" not in taken
        assert "rsp+8" in taken
