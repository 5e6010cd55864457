"""Finds out whether a file that a debugger uses for a module was rewritten after linking."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from io import FileIO

from sframe_unwind.arch import Arch
from sframe_unwind.debugger.debug_files import DebugFile
from sframe_unwind.elf.rewritten import rewriter
from sframe_unwind.errors import SFrameError
from sframe_unwind.image.elf_sections import ElfSections


def rewriter_of_files(files: Iterable[DebugFile], arch: Arch) -> str:
    """Return what rewrote one of the files of a module after linking, in words; empty: nothing, as far as is known.

    Files that cannot be read, or have another build ID than the module, are left out.
    """
    return next(filter(None, (_rewriter(file, arch) for file in files)), "")


def _rewriter(file: DebugFile, arch: Arch) -> str:
    with suppress(SFrameError, OSError, ValueError), FileIO(file.path) as stream:  # ValueError: the path has a NUL
        elf = ElfSections(stream, arch)
        if not file.has_build_id() or elf.build_id() == file.build_id:
            return rewriter({section.name: section.address for section in elf.all})
    return ""
