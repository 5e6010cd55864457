"""Corrupt stacks, unmapped memory, overwritten unwind data, and `exec` of another program.

Each runs in every debugger and is compared with the same debugger without the plugin.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.debugger import listing
from tests.expectations import AGREEMENT
from tests.faults.sessions import DEBUGGERS, show, show_all


class Fault(NamedTuple):
    """A failure, and the reason that SFrame's walk reports."""

    argument: str
    functions: tuple[str, ...]
    """The innermost functions, which are found nevertheless."""
    end: str
    """Pattern of the reason why the walk ends."""
    before: tuple[str, ...] = ()
    """Commands before the failure."""
    first: tuple[str, ...] = ()
    """Commands before the program starts."""
    complaint: str = ""
    """Pattern of the line that the plugin prints without being asked; empty: it prints no line."""


ASKED = ("sframe bt", "sframe compare", "sframe explain", "sframe disassemble", "sframe status")
TRIED = ("bt", *ASKED, "mode off", "bt", "mode always", "bt")
_COMPLETE = r"  main \("

_UNUSED = "SFrame data not used"
FAULTS = {
    "frames in a cycle": Fault("cycle", ("sample_stop", "damaged", "outer"), "does not lie outward"),
    "frames that lead inward": Fault("inward", ("sample_stop", "damaged", "outer"), "does not lie outward"),
    "memory that vanishes between two stops": Fault(
        "vanish", ("sample_stop", *("deep",) * 10), "cannot read|[Cc]annot access", ("bt", "sframe bt", "continue")
    ),
    "unwind data overwritten before it is read": Fault(
        "overwritten", ("sample_stop", "run", "main"), _COMPLETE, complaint=_UNUSED
    ),
    "unwind data overwritten after it was read": Fault(
        "overwrite", ("sample_stop", "run", "main"), _COMPLETE, ("bt", "continue")
    ),
    "another program in the process": Fault("exec", ("sample_stop", "run", "main"), _COMPLETE, ("bt", "continue")),
    "the process's child": Fault("fork", ("sample_stop", "run", "main"), _COMPLETE, first=("children",)),
}


@pytest.mark.parametrize("debugger", DEBUGGERS)
@pytest.mark.parametrize("fault", FAULTS.values(), ids=list(FAULTS))
@pytest.mark.usefixtures("fixed_addresses")
def test_item_26_the_session_goes_on(program: Path, debugger: str, fault: Fault) -> None:
    shown = show_all(debugger, program, fault.argument, *fault.before, *TRIED, first=fault.first)
    first, ours, compared, explained, disassembled, status, _, off, _, again, _ = shown[-len(TRIED) - 1 :]
    before = tuple(command for command in fault.before if not command.startswith("sframe"))
    native = show(debugger, program, fault.argument, *before, "bt", first=fault.first, plugin=False)[-1]
    assert off == native
    # In batch mode, GDB has no prompt, and the plugin's lines come when it ends.
    complaints = re.findall(r"sframe: .*$", "\n".join(shown), re.MULTILINE)
    # LLDB has CFI, so its plugin reads the data in memory only for a command of its own, after the program has run.
    reads_late = debugger in ("LLDB 22.1", "LLDB 23.1") and fault.argument == "overwrite"
    complaint = _UNUSED if reads_late else fault.complaint
    assert len(complaints) == bool(complaint), complaints
    assert all(re.search(complaint, line) for line in complaints)
    for backtrace in (first, again, off):
        assert functions(backtrace)[: len(fault.functions)] == list(fault.functions), backtrace
    assert functions(again) == functions(first)
    assert re.search(fault.end, ours, re.MULTILINE), ours
    assert re.search(rf"^{AGREEMENT}$|^first difference", compared, re.MULTILINE), compared
    assert explained
    code = listing.read(disassembled)
    assert code.function == "sample_stop"
    assert len(code.arrows) == 1
    assert code.cfa is not None
    assert "hostile" in status


def functions(shown: str) -> list[str]:
    """Return the functions in a backtrace of any debugger."""
    return re.findall(r"^ *\*? *(?:frame )?#\d+:? +(?:0x\w+ )?(?:in |[\w.]+`)?(\w+)", shown, re.MULTILINE)
