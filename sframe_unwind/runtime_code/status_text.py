"""Formats the run-time code of a process as text, for ``sframe status``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sframe_unwind.errors import SFrameError, counted
from sframe_unwind.report.columns import aligned
from sframe_unwind.runtime_code.jit.image import JitImage
from sframe_unwind.runtime_code.libunwind.registered import Registered, UnknownFormat

SHOWN = 20
"""Maximum number of libunwind registrations that the text lists.  It gives only the number of the others."""
_TITLES = ("run-time code", "range", "unwind info")


def to_text(registered: Sequence[Registered], count: int, images: Iterable[JitImage]) -> list[str]:
    """Return the lines of the text; empty: there is no run-time code.

    :param registered: the first :data:`SHOWN` registrations with libunwind.
    :param count: the number of all registrations with libunwind.
    :param images: the JIT images.
    """
    rows: list[tuple[str, ...]] = []
    for module in registered:
        (start, end), entry = module.ranges[0], module.entry
        what = f"unknown format {entry.format}" if isinstance(module, UnknownFormat) else module.what
        rows.append((module.registered_name or "-", f"{start:#x}-{end:#x}", f"{what} at {entry.address:#x}"))
    for image in images:
        ranges = " ".join(f"{start:#x}-{end:#x}" for start, end in image.ranges)
        rows.append((image.name, ranges or "-", _image(image)))
    if not rows:
        return []
    lines = aligned((_TITLES, *rows))
    if count > len(registered):
        lines.append(f"and {count - len(registered):,} more registered with libunwind")
    return ["", *lines]


def _image(image: JitImage) -> str:
    section = image.section
    if section is None:
        return f"not used: {image.error}" if image.error else "no SFrame"
    try:
        functions = sum(len(table) for table in section.tables)
    except SFrameError as error:
        return f"not used: {error}"
    versions = "+".join(str(table.header.version) for table in section.tables)
    return f"SFrame version {versions or '-'}, {counted(functions, 'function')}"
