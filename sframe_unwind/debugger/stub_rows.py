"""Rows of PLT stubs that cannot be true, as GNU ld 2.44 to 2.47 writes them for ``.plt.got``.

Such a row says that the CFA is SP + 16 where the stub is a bare jump, which pushes nothing.  A debugger that believes
it while it steps into the stub takes the stub for a new function and stops there.
"""

from __future__ import annotations

from sframe_unwind.address import WORD_SIZE
from sframe_unwind.arch import Arch
from sframe_unwind.sframe.constants import PcType
from sframe_unwind.sframe.table import Match
from sframe_unwind.unwind.modules import Found, Modules
from sframe_unwind.unwind_rule import RegisterRule


def is_possible(found: Found, arch: Arch) -> bool:
    """Return whether the rule can hold: at the first instruction of a PLT stub nothing has been pushed yet.

    The blocks of a mask FDE are the stubs of a PLT, which are entered by a call or a tail call of the stub's function.
    """
    match = found.match
    if not isinstance(match, Match) or match.function.fde.pc_type is not PcType.MASK or match.row_start:
        return True
    pushed_by_call = WORD_SIZE if arch.ra is None else 0
    return found.rule.cfa == RegisterRule(arch.sp, pushed_by_call - arch.sp_from_cfa, False)


def is_better_by_cfi(modules: Modules, address: int) -> bool:
    """Return whether the row at a lookup address cannot be true, and there is CFI to use in its place."""
    found = modules.results[address]
    return isinstance(found, Found) and not is_possible(found, modules.arch) and modules.has_cfi(address)
