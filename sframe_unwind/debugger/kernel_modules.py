"""Places the files of a kernel's modules for a debugger, which seldom knows the addresses of all their sections."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Callable

from sframe_unwind.debugger.modules import TEXT, SectionRange
from sframe_unwind.errors import SFrameError
from sframe_unwind.kernel.linux import Kernel
from sframe_unwind.kernel.modules import KernelModules, module_name


class ModulePlaces:
    """Finds the sections of modules' files by the kernel's own list.

    :param kernel: the debugger must be able to look up types and symbols.
    :param report: called with one line for the user.
    """

    def __init__(self, kernel: Kernel, report: Callable[[str], None]) -> None:
        self._report = report
        self._modules: KernelModules | None = None
        with suppress(SFrameError):  # a kernel without modules, or without their sections
            self._modules = KernelModules(kernel)

    def sections(self, path: str, sizes: Mapping[str, int], text: int | None) -> dict[str, SectionRange]:
        """Return the sections of a file where the kernel has loaded them; empty: it has not loaded this file.

        :param sizes: sizes of the file's sections in bytes, by name.
        :param text: the debugger's address of the section ``.text``, whose functions it shows; ``None``: it has none.
        """
        name = module_name(path)
        if name is None or self._modules is None:
            return {}
        try:
            found = self._modules.sections(name)
        except SFrameError as error:
            self._report(f"{path}: the kernel's list of modules cannot be read: {error}")
            return {}
        right = found.get(TEXT)
        if right is not None and text not in (None, right):
            self._report(
                f"{path}: its .text is at {text:#x} in the debugger and at {right:#x} in the kernel: names and lines of"
                " its functions are wrong, until the file is loaded at that address"
            )
        return {
            section: SectionRange(found[section], found[section] + size)
            for section, size in sizes.items()
            if section in found
        }
