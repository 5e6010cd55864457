"""Formats the ORC of kernel modules like ``objtool --dump=orc``, for comparison with it.

For a vmlinux, objtool pairs the entries with relocations that the build did not sort together with them, so it shows
other addresses than the kernel uses.  The entries of modules are not sorted before they are loaded.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from sframe_unwind import elf
from sframe_unwind.orc import OrcEntry, OrcKind
from sframe_unwind.unwind_rule import CFA, RegisterRule
from tests.hanging import HANG

_NAMES = {0: "ax", 1: "dx", 5: "di", 6: "bp", 7: "sp", 10: "r10", 13: "r13", CFA: "prevsp"}
_TYPES = {
    OrcKind.UNDEFINED: "(und)",
    OrcKind.END: "end",
    OrcKind.CALL: "call",
    OrcKind.REGISTERS: "regs",
    OrcKind.PARTIAL_REGISTERS: "regs (partial)",
}


def shown(module: Path) -> list[str]:
    """Return the entries of a module, sorted, by this package."""
    with elf.opened(module) as binary:
        return sorted(f"{_place(binary, address)}: {words(entry)}" for address, entry in binary.orc or ())


def by_objtool(objtool: Sequence[str], module: Path) -> list[str]:
    """Return the same from objtool."""
    command = [*objtool, "--dump=orc", str(module)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=True)
    return sorted(map(normalised, done.stdout.splitlines()))


def normalised(line: str) -> str:
    """Return the line of an entry in the form of :func:`shown`, for any version of objtool.

    Before Linux 6.4, the type is after the registers, and there are neither undefined entries nor ends of stacks.
    """
    found = re.match(r"(.+?)(?:\+([0-9a-f]+))?: ?(.*)$", line)
    assert found is not None
    registers = re.search(r"sp:(\S+) bp:(\S+)", found[3])
    kind = re.search(r"type:(regs \(partial\)|\S+)", found[3])
    assert registers is not None
    assert kind is not None
    name = kind[1]
    if registers[1] == "(und)" and name == "call":
        name = "end" if found[3].endswith("end:1") else "(und)"
    place = f"{found[1]}+0x{found[2]}" if found[2] else found[1]
    return f"{place}: {name} sp:{registers[1]} bp:{registers[2]}"


def words(entry: OrcEntry) -> str:
    """Return an entry in objtool's notation."""
    sp = "(und)" if entry.kind in (OrcKind.UNDEFINED, OrcKind.END) else _register(entry.place, entry.added)
    bp = "(und)" if entry.bp is None else _register(entry.bp._replace(in_memory=False), 0)
    return f"{_TYPES[entry.kind]} sp:{sp} bp:{bp}"


def _place(binary: elf.ElfBinary, address: int) -> str:
    """Return section and offset, also for the end of a section."""
    last = binary.layout.spot(address - 1)
    spot = binary.layout.spot(address)
    return str(spot if spot.section else last._replace(address=last.address + 1))


def _register(rule: RegisterRule, added: int) -> str:
    name = _NAMES[rule.base]
    if rule.in_memory and rule.base == 7:  # the offset is added to the word
        return f"({name}){rule.offset + added:+d}"
    return f"({name}{rule.offset:+d})" if rule.in_memory else f"{name}{rule.offset:+d}"
