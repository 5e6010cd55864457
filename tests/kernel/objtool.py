"""ORC of kernel modules in objtool's words, to be compared with ``objtool --dump=orc``.

objtool pairs the entries of a vmlinux with relocations that the build did not sort with them, and so shows other
addresses than the kernel uses.  Those of modules are not sorted before they are loaded.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from sframe_unwind import elf
from sframe_unwind.orc import OrcEntry, OrcKind
from sframe_unwind.unwind_rule import CFA, RegisterRule

_NAMES = {6: "bp", 7: "sp", 10: "r10", 13: "r13", 1: "dx", 5: "di", CFA: "prevsp"}
_TYPES = {OrcKind.REGISTERS: "regs", OrcKind.PARTIAL_REGISTERS: "regs (partial)"}


def shown(module: Path) -> list[str]:
    """Return the entries of a module, sorted, by this package."""
    with elf.opened(module) as binary:
        assert binary.orc is not None
        return sorted(f"{_place(binary, address)}: {_entry(entry)}" for address, entry in binary.orc)


def by_objtool(objtool: Path, module: Path) -> list[str]:
    """Return the same by objtool of Linux 6.1."""
    command = [str(objtool), "--dump=orc", str(module)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return sorted(re.sub(r"\+([0-9a-f]+):", r"+0x\1:", line, count=1) for line in done.stdout.splitlines())


def _place(binary: elf.ElfBinary, address: int) -> str:
    """Return section and offset, also of the end of a section."""
    last = binary.layout.spot(address - 1)
    spot = binary.layout.spot(address)
    return str(spot if spot.section else last._replace(address=last.address + 1))


def _entry(entry: OrcEntry) -> str:
    sp = "(und)" if entry.kind in (OrcKind.UNDEFINED, OrcKind.END) else _register(entry.place, entry.added)
    bp = "(und)" if entry.bp is None else _register(entry.bp._replace(in_memory=False), 0)
    return f"sp:{sp} bp:{bp} type:{_TYPES.get(entry.kind, 'call')} end:{int(entry.kind is OrcKind.END)}"


def _register(rule: RegisterRule, added: int) -> str:
    name = _NAMES[rule.base]
    return f"({name}{rule.offset + added:+d})" if rule.in_memory else f"{name}{rule.offset:+d}"
