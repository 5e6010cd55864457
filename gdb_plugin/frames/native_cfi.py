"""Finds out which CFI GDB's own unwinder has: GDB does not read all files, and some files only in part."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Callable

import gdb

from gdb_plugin.process.modules import debug_files, objfiles_of
from sframe_unwind.arch import Arch
from sframe_unwind.cfi.section import CfiMatch
from sframe_unwind.debugger.banner import has_argument
from sframe_unwind.debugger.debug_frame import is_beyond_this_python
from sframe_unwind.errors import UnsupportedExpressionError
from sframe_unwind.unwind.modules import Module, Modules

_NEVER = re.compile(rb"--?readne(v(er?)?)?")
"""The argument, and its abbreviations, of a GDB that reads neither debug information nor CFI."""


class NativeCfi:
    """The CFI that GDB has for the modules of a process.

    :param modules: the modules.
    :param listed: those of them that GDB lists; GDB knows nothing of the others, which are in memory only.
    :param report: shows one line to the user, once.
    """

    def __init__(self, arch: Arch, modules: Modules, listed: Container[Module], report: Callable[[str], None]) -> None:
        self._arch = arch
        self._modules = modules
        self._listed = listed
        self._report = report
        self._has_read: dict[Module, bool] = {}
        self._compressed: dict[Module, bool] = {}
        self._decompressed: set[Module] = set()

    def has_read(self, module: Module) -> bool:
        """Return whether GDB has read the CFI of a module of its list."""
        known = self._has_read.get(module)
        if known is None:
            known = self._has_read[module] = self._ask(module)
        return known

    def match(self, pc: int) -> CfiMatch | None:
        """Return GDB's CFI for a lookup address; ``None``: it has none.

        :raises UnsupportedExpressionError: GDB may have CFI, but the plugin cannot read it.
        :raises SFrameError: the CFI is malformed, or cannot be read.
        """
        module = self._modules.find(pc)
        if module is None or not (self.has_read(module) or self._is_image(module)):
            return None
        found = module.cfi_match(pc)
        if found is None and self._is_hidden(module, pc):
            raise UnsupportedExpressionError(f"{module.name}: only GDB can decompress its CFI")
        return found

    def covers(self, pc: int, with_images: bool) -> bool:
        """Return whether GDB has CFI for a lookup address.  Unreadable CFI counts as none.

        :param with_images: count images of JIT compilers, too, whose CFI GDB has mostly, but not always.
        """
        module = self._modules.find(pc)
        if module is None or not (self.has_read(module) or (with_images and self._is_image(module))):
            return False
        return module.has_cfi(pc) or self._is_hidden(module, pc)

    def _is_image(self, module: Module) -> bool:
        return module not in self._modules.modules

    def _ask(self, module: Module) -> bool:
        if module not in self._listed or has_argument(_NEVER):
            return False
        return bool(self._files(module))

    def _is_hidden(self, module: Module, pc: int) -> bool:
        """Return whether GDB can decompress CFI of a module that this Python cannot.

        GDB is asked for debug information, which is compressed in the same way.
        """
        if module not in self._compressed:
            self._compressed[module] = is_beyond_this_python(debug_files(self._files(module)), self._arch)
        if self._compressed[module] and module not in self._decompressed and gdb.block_for_pc(pc) is not None:
            self._decompressed.add(module)
            self._report(
                f"{module.name}: only GDB can decompress its .debug_frame: frames that this may describe are GDB's"
            )
        return module in self._decompressed

    @staticmethod
    def _files(module: Module) -> list[gdb.Objfile]:
        return objfiles_of(module.name, module.build_id)
