"""A stopped process in the core's terms: its ABI, registers, memory and modules."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Callable

import lldb

from lldb_plugin.process.memory import reader
from lldb_plugin.process.native_cfi import NativeCfi
from lldb_plugin.process.registers import pac_mask_of
from lldb_plugin.process.shared_rules import SharedRules
from sframe_unwind.arch import BY_NAME, Arch
from sframe_unwind.elf.records import HEADER_SIZE, file_header
from sframe_unwind.errors import FileError, KernelError, SFrameError, StepError
from sframe_unwind.memory import ReadRegister
from sframe_unwind.unwind import signal_frame
from sframe_unwind.unwind.modules import Modules
from sframe_unwind.unwind.precedence import Precedence

if TYPE_CHECKING:
    from sframe_unwind.kernel.linux import Kernel

_ARCHITECTURES = {
    "x86_64": "amd64",
    "aarch64": "aarch64",
    "aarch64_be": "aarch64",
    "arm64": "aarch64",
    "s390x": "s390x",
}


def arch_of(target: lldb.SBTarget) -> Arch:
    """Return the SFrame ABI of a target.

    :raises SFrameError: SFrame has no ABI for it, or LLDB's own list of its registers is wrong.
    """
    triple = target.GetTriple() or "this target"
    name = _ARCHITECTURES.get(triple.partition("-")[0])
    if name is None:
        raise SFrameError(f"SFrame has no ABI for {triple}")
    # A debug stub may call the target plain AArch64, and LLDB believes it even for the program's file.
    if name == "aarch64" and (
        target.GetByteOrder() == lldb.eByteOrderBig or _is_big_endian(target.GetExecutable().fullpath)
    ):
        raise SFrameError("LLDB reads big-endian AArch64 registers in the wrong byte order: its frames are wrong")
    return BY_NAME[name]


def _is_big_endian(file: str | None) -> bool:
    with suppress(OSError, FileError), open(file or "", "rb") as opened:
        return file_header(opened.read(HEADER_SIZE)).byteorder == "big"
    return False


class Process:
    """The data that unwinding needs of one process while it is stopped."""

    def __init__(
        self,
        process: lldb.SBProcess,
        arch: Arch,
        modules: Modules,
        shared: Mapping[str, SharedRules],
        precedence: Precedence,
        native_cfi: NativeCfi,
        kernel: Callable[[], Kernel | None],
    ) -> None:
        self.arch = arch
        self.kernel = kernel
        """Returns the Linux kernel that runs in the process; ``None``: there is none."""
        self.modules = modules
        self.shared = shared
        """By mode, the rules that SFrame and LLDB share."""
        self.precedence = precedence
        """Decides between SFrame and CFI in mode ``auto``."""
        self.native_cfi = native_cfi
        """Tells which addresses LLDB may unwind by CFI."""
        self.read = reader(process)
        self._process = process
        self.pac_mask = pac_mask_of(process, arch)

    def kernel_at(self, pc: int) -> Kernel | None:
        """Return the Linux kernel in the process; ``None``: there is none, or an address cannot be in its code.

        Looking for the kernel takes time, which the stacks of programs need not spend.
        """
        return self.kernel() if self.arch.may_be_kernel(pc) else None

    def known_kernel(self) -> Kernel:
        """Return the Linux kernel that runs in the process.

        :raises KernelError: there is none.
        """
        kernel = self.kernel()
        if kernel is None:
            raise KernelError("the target is not a Linux kernel whose stacks are known, or its code cannot be read yet")
        return kernel

    def is_executable(self, pc: int) -> bool:
        """Return whether an address is in executable memory; ``True`` if the target does not tell."""
        if self.modules.find(pc) is not None:
            return True
        region = lldb.SBMemoryRegionInfo()
        error = self._process.GetMemoryRegionInfo(pc, region)
        return not error.Success() or bool(region.IsExecutable())

    def is_trampoline(self, pc: int) -> bool:
        """Return whether the code at an address returns from a signal handler."""
        return signal_frame.is_trampoline(self.arch, self.read, pc)

    def register_reader(self, frame: lldb.SBFrame) -> ReadRegister:
        """Return the function that reads a register of a frame by its DWARF number."""

        def read_register(number: int) -> int:
            name = self.arch.register_name(number)
            value = frame.FindRegister(name)
            data = value.GetData() if value.IsValid() else None
            error = lldb.SBError()
            word = data.GetUnsignedInt64(error, 0) if data is not None and data.GetByteSize() >= 8 else None
            if word is None or not error.Success():
                raise StepError(f"{name} is not known here")
            return int(word)

        return read_register
