"""Compares SFrame with the CFI by which LLDB's own unwinder unwinds, in the files of the modules.

The files exist before there is a process, and can be read without LLDB.  So it is often known before the first stop
that SFrame changes no stack.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import lldb

from lldb_plugin.interface.telling import Report
from lldb_plugin.process.memory import build_id_of
from lldb_plugin.process.modules import is_kernel_module
from lldb_plugin.process.process import arch_of
from lldb_plugin.process.runtime_code import registers_code
from sframe_unwind.arch import Arch
from sframe_unwind.debugger.debug_files import DebugFile
from sframe_unwind.debugger.file_agreement import agreement_of_file
from sframe_unwind.debugger.module_agreement import Difference, ModuleAgreement
from sframe_unwind.debugger.settings import ALWAYS, AUTO, FALLBACK, OFF, Settings
from sframe_unwind.errors import SFrameError
from sframe_unwind.memory import ReadMemory
from sframe_unwind.unwind.modules import Module

_TOLERATED = {AUTO: Difference.NONE, ALWAYS: Difference.NONE, FALLBACK: Difference.RULES, OFF: Difference.NO_CFI}
"""By mode, the largest difference with which SFrame's stack always equals LLDB's."""

_SECONDS = 0.1
"""Time limit for comparing files."""

Known = dict[DebugFile, Difference]
"""The largest difference in each file that was compared; without a build ID, LLDB gives it a number by its contents."""


class Comparison:
    """The comparison of one module, of which only the result is kept.

    :param known: gets the result.
    :param agreement: the comparison itself; ``None``: the result is known from an earlier one.
    :param is_of_file: whether a file is compared; the memory of a process may have less of it, and then shows other
        differences.
    """

    def __init__(self, known: Known, file: DebugFile, agreement: ModuleAgreement | None, is_of_file: bool) -> None:
        self._known = known
        self._file = file
        self._agreement = agreement
        self._is_of_file = is_of_file
        self.difference = known[file] if agreement is None else None
        self.unusable = ""
        """A line for the user if the SFrame data is unusable; this is known at the end of the comparison."""

    def advance(self, until: float) -> Difference | None:
        """Compare until the end or until a time of :func:`time.perf_counter`.

        :return: the largest difference; ``None``: the comparison has not ended.
        """
        if self._agreement is not None:
            self.difference = self._agreement.advance(until)
            if self.difference is not None:
                if self._agreement.error is not None:  # each process tells its user
                    self.unusable = f"{self._file.path}: {Module.kind} not used: {self._agreement.error}"
                elif self._is_of_file or self.difference is Difference.NONE:
                    self._known[self._file] = self.difference
                self._agreement = None
        return self.difference


class Differences:
    """The comparisons of the files of all processes, each of which is made once.

    :param report: shows one line to the user.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._known: Known = {}

    def of_module(self, module: lldb.SBModule, described: Module, arch: Arch, read: ReadMemory) -> Comparison:
        """Return the comparison of a module, by its file if possible; otherwise, by the memory of the process.

        :param described: the module in the process.
        :param read: reads the memory of the process.
        """
        found = self._of_file(module, arch)
        if found is not None:
            return found
        return Comparison(self._known, _file_of(module), ModuleAgreement(described, arch, read), is_of_file=False)

    def can_change_stacks(
        self, target: lldb.SBTarget, modules: Iterable[lldb.SBModule], settings: Settings, seconds: float = _SECONDS
    ) -> bool:
        """Return whether SFrame can change a stack with frames in some modules of a target, by their files.

        ``False`` is certain; this waits for none of LLDB's locks on the target.

        :param seconds: time limit.
        """
        try:
            arch = arch_of(target)
        except SFrameError:
            return False  # SFrame cannot unwind this target; the `sframe` commands say why
        limit = tolerated(settings, arch)
        if limit is None:
            return True
        until = time.perf_counter() + seconds
        for module in modules:
            comparison = self._of_file(module, arch)
            found = comparison.advance(until) if comparison is not None else None
            if comparison is not None and comparison.unusable:
                self._report(comparison.unusable)
            if found is None or found > limit or registers_code(module):
                return True
        return False

    def _of_file(self, module: lldb.SBModule, arch: Arch) -> Comparison | None:
        """Return the comparison of a module by its file; ``None``: the file cannot be compared without a process.

        This asks LLDB only for the path and the build ID: LLDB may still be filling the module in, in another thread.
        """
        file = _file_of(module)
        if file in self._known:
            return Comparison(self._known, file, None, is_of_file=True)
        # LLDB gives a relative path as the program did.  The vDSO has a name only, which is not that of a file.
        if not (file.path.startswith("/") or file.has_build_id()):
            return None
        if is_kernel_module(file.path):
            return None  # a kernel module's sections have no addresses yet
        try:
            return Comparison(self._known, file, agreement_of_file(file, arch), is_of_file=True)
        except SFrameError:
            return None


def _file_of(module: lldb.SBModule) -> DebugFile:
    return DebugFile(module.GetFileSpec().fullpath or "", build_id_of(module))


def tolerated(settings: Settings, arch: Arch) -> Difference | None:
    """Return the largest difference of the modules with which SFrame certainly changes no stack.

    :return: ``None``: stacks are to be compared one by one.  On machines with return addresses in registers, these can
        be signed, and signal trampolines often belong to no module.
    """
    if settings.concerns_all or arch.ra is not None:
        return None
    return _TOLERATED[settings.mode]
