"""Refuses SFrame that does not describe the code of its module, because a tool moved the section after linking.

:mod:`sframe_unwind.sframe.displaced` tells it by the starts of the functions in the CFI.  A process can have hundreds
of modules, so all of these starts are read only if some functions of the section begin inside others of the CFI.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Callable, Union

from sframe_unwind.address import Range
from sframe_unwind.cfi.section import CfiSection
from sframe_unwind.errors import FormatError, SFrameError
from sframe_unwind.sframe.section import Section

Load = Callable[[], Union[Section, None]]
LoadCfi = Callable[[], Union[CfiSection, None]]
"""These open a section; ``None``: the module has none."""


def checked(load: Load, load_cfi: LoadCfi) -> Load:
    """Return a function that opens a section as another one does, and checks it by :func:`check_placement`."""

    def load_checked() -> Section | None:
        section = load()
        if section is not None:
            check_placement(section, load_cfi)
        return section

    return load_checked


def check_placement(section: Section, load_cfi: LoadCfi) -> None:
    """Check that the functions of a section are not displaced from those of the CFI.

    Only tables that no linker has sorted are looked at: a linker that knows SFrame puts it where no tool moves it.

    :param load_cfi: opens the CFI; ``None``: there is none.  CFI that cannot be read tells nothing.
    :raises FormatError: they are displaced.
    """
    starts = [start for table in section.tables if not table.sorted for start in table.extents()[0]]
    if not starts:
        return
    from sframe_unwind.sframe.displaced import displacement, some_of, told  # few sections are not sorted

    try:
        cfi = load_cfi()
        distance = 0 if cfi is None or not _are_inside(some_of(starts), cfi) else displacement(starts, _ranges(cfi))
    except SFrameError:
        return
    if distance:
        raise FormatError(told(distance))


def _are_inside(starts: Iterable[int], cfi: CfiSection) -> bool:
    """Return whether functions of a section begin inside others of the CFI."""
    found = ((start, cfi.function_at(start)) for start in starts)
    return any(function is not None and function.start != start for start, function in found)


def _ranges(cfi: CfiSection) -> list[Range]:
    return [(start, end) for start, end, _ in cfi.extents()]
