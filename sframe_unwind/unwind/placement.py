"""Recognises SFrame that does not describe the code of its module, because a tool moved the section after linking.

The addresses of functions are relative to the section.  A linker that does not know SFrame puts the section before all
others, and patchelf moves such sections to make room for longer paths.  The functions of the section then begin
somewhere in the code, and CFI, whose addresses patchelf leaves right, shows it.
"""

from __future__ import annotations

from typing import Callable, Union

from sframe_unwind.cfi.section import CfiSection
from sframe_unwind.errors import FormatError, SFrameError, counted
from sframe_unwind.sframe.section import Section

Load = Callable[[], Union[Section, None]]
LoadCfi = Callable[[], Union[CfiSection, None]]
"""These open a section; ``None``: the module has none."""
_LOOKED_AT = 64
"""Maximum number of functions that are compared."""
_STRAY, _FEW = 0.2, 3
"""Share and number of functions that may begin inside those of the CFI.  In linked files, only parts of a PLT do."""


def checked(load: Load, load_cfi: LoadCfi) -> Load:
    """Return a function that opens a section as another one does, and checks it by :func:`check_placement`."""

    def load_checked() -> Section | None:
        section = load()
        if section is not None:
            check_placement(section, load_cfi)
        return section

    return load_checked


def check_placement(section: Section, load_cfi: LoadCfi) -> None:
    """Check that functions of a section do not begin inside those of the CFI.

    Only tables that no linker has sorted are looked at: a linker that knows SFrame puts it where no tool moves it.

    :param load_cfi: opens the CFI; ``None``: there is none.  CFI that cannot be read tells nothing.
    :raises FormatError: they do.
    """
    starts = [start for table in section.tables if not table.sorted for start in table.extents()[0]]
    chosen = starts[:: len(starts) // _LOOKED_AT + 1]
    try:
        cfi = load_cfi() if chosen else None
        found = [cfi.function_at(start) for start in chosen] if cfi is not None else []
    except SFrameError:
        return
    compared = [(start, function.start) for start, function in zip(chosen, found) if function is not None]
    stray = [pair for pair in compared if pair[0] != pair[1]]
    if len(stray) > max(_STRAY * len(compared), _FEW):
        start, inside = stray[0]
        many = counted(len(stray), "function begins", "functions begin")
        raise FormatError(
            f"the section was moved after linking: {many} inside others of the CFI, the first at {start:#x} inside"
            f" {inside:#x}"
        )
