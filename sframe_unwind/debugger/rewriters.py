"""Finds out whether a file that a debugger uses for a module was rewritten after linking."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache

from sframe_unwind.arch import BY_NAME, Arch
from sframe_unwind.debugger.debug_files import DebugFile
from sframe_unwind.debugger.elf_files import build_id_of, opened_file
from sframe_unwind.debugger.glance import state_of
from sframe_unwind.elf.rewritten import rewriter
from sframe_unwind.errors import SFrameError


def rewriter_of_files(files: Iterable[DebugFile], arch: Arch) -> str:
    """Return what rewrote one of the files of a module after linking, in words; empty: nothing, as far as is known.

    Files that cannot be read, or have another build ID than the module, are left out.
    """
    return next(filter(None, (_rewriter_of(file, arch) for file in files)), "")


def _rewriter_of(file: DebugFile, arch: Arch) -> str:
    with suppress(OSError, ValueError):  # ValueError: the path has a NUL
        return _rewriter(file, arch.name, state_of(file.path))
    return ""


@lru_cache(maxsize=1024)
def _rewriter(file: DebugFile, arch_name: str, _state: tuple[int, ...]) -> str:
    with suppress(SFrameError), opened_file(file, BY_NAME[arch_name]) as binary:
        if not file.has_build_id() or build_id_of(binary) == file.build_id:
            return rewriter({section.name: section.address for section in binary.sections})
    return ""
