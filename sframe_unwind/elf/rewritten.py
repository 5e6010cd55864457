"""Recognises files whose code was rewritten after the linker had written ``.sframe``.

BOLT (llvm-bolt 16 to 22) reorders the code of functions, in place or elsewhere, and writes ``.eh_frame`` anew.  It does
not know ``.sframe``, which still describes the code as it was linked.
"""

from __future__ import annotations

from collections.abc import Mapping

BOLT_ORIGINAL = ".bolt.org"
"""How BOLT begins the names of the sections that it has replaced (``RewriteInstance::getOrgSecPrefix``)."""
BOLT_NOTE = ".note.bolt_info"
"""The section with BOLT's command line; it is not loaded, so a debugger may not list it."""
MARKS = (BOLT_NOTE, f"{BOLT_ORIGINAL}.eh_frame", f"{BOLT_ORIGINAL}.text")
"""The sections to look for by their whole names: one of them is in each file that BOLT has rewritten."""
_SFRAME = ".sframe"


def rewriter(sections: Mapping[str, int]) -> str:
    """Return in words what rewrote the code of a file and left ``.sframe`` as it was; empty: nothing did.

    :param sections: the address of each section by its name; 0: it is not loaded.
    """
    marks = [name for name in sections if name == BOLT_NOTE or name.startswith(BOLT_ORIGINAL)]
    if not marks or BOLT_ORIGINAL + _SFRAME in sections or _was_added_last(sections):
        return ""
    return f"rewritten by BOLT after linking ({', '.join(marks[:2])})"


def _was_added_last(sections: Mapping[str, int]) -> bool:
    """Return whether ``.sframe`` is after all other sections: it was made from the CFI of the rewritten file.

    That is where ``convert`` puts it.  A linker puts it before the data, and BOLT adds sections behind it.
    """
    return _SFRAME in sections and sections[_SFRAME] == max(sections.values()) > 0
