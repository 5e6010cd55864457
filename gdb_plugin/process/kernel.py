"""The Linux kernel that GDB is attached to, and the CFI that GDB needs to unwind its entry code."""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import gdb

from gdb_plugin.interface.texts import path_of
from gdb_plugin.process.memory import read
from gdb_plugin.process.symbols import address_of
from sframe_unwind.arch import Arch
from sframe_unwind.elf.headers import Headers
from sframe_unwind.errors import FileError, KernelError
from sframe_unwind.kernel.entry_code import find_places
from sframe_unwind.kernel.linux import Kernel, entry_code
from sframe_unwind.kernel.orc_of_kernel import find_orc
from sframe_unwind.kernel.orc_places import assembly_places, code_without_debug_frame, orc_places
from sframe_unwind.kernel.symbol_file import symbol_file
from sframe_unwind.kernel.types import Member, Type, Types
from sframe_unwind.unwind.modules import Modules

_PROBE = "linux_banner"
"""The name of a variable that every kernel has, and no program."""
_TRUST = "trust-readonly-sections"
_made: dict[str, bytes] = {}
"""The created symbol files, by path."""


def kernel_of(arch: Arch, modules: Modules) -> Kernel:
    """Return the kernel of the current program space.

    GDB commands and symbol lookups must be possible: not in the middle of unwinding.

    :param modules: modules of the inferior; the kernel's CFI tells which functions are in assembly.
    :raises KernelError: the target is not a kernel, or its architecture is not supported.
    :raises SFrameError: its code or its CFI cannot be read.
    """
    if not address_of(_PROBE):
        raise KernelError(f"no symbol {_PROBE}: the target is not a Linux kernel, or its symbols are not loaded")
    if arch.linux_kernel is None:
        raise KernelError(f"the stacks of Linux kernels on {arch.name} are not known")
    with _code_of_file():
        places = list(find_places(arch, _symbol, read))
        orc = find_orc(_symbol, read)
    if orc is not None:
        is_entry_code = entry_code(_symbol)
        places += orc_places(orc, is_entry_code)
        module = modules.find(orc.start)
        if module is not None:
            places += assembly_places(orc, code_without_debug_frame(module), is_entry_code)
    return Kernel(
        arch=arch, facts=arch.linux_kernel, places=places, types=Types(_find_type), symbol=_symbol, read=read, orc=orc
    )


@contextmanager
def _code_of_file() -> Iterator[None]:
    """Read code from the kernel's file: the kernel frees its initial code, in which the stack of an idle task ends."""
    before = gdb.parameter(_TRUST)
    gdb.execute(f"set {_TRUST} on")
    try:
        yield
    finally:
        gdb.execute(f"set {_TRUST} {'on' if before else 'off'}")


def tell_gdb(kernel: Kernel) -> None:
    """Load CFI for the entry code of a kernel into GDB, as a symbol file.

    An unwinder in Python cannot make signal frames.  In other frames, GDB takes the pc for a return address, and ends a
    stack that continues at lower addresses.

    :raises SFrameError: the kernel's debug information is incomplete.
    """
    places = [place for _, _, place in kernel.places]
    if not places:
        return
    content = symbol_file(kernel.arch, _machine(), places, kernel.saved_registers)
    if any(_made.get(path_of(objfile)) == content for objfile in gdb.objfiles()):
        return
    handle, path = tempfile.mkstemp(prefix="sframe-kernel-entry-", suffix=".debug")
    atexit.register(_remove, path)
    _made[path] = content
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    gdb.execute(f"add-symbol-file {path} -o 0", to_string=True)


def _remove(path: str) -> None:
    with suppress(OSError):
        Path(path).unlink()


def _machine() -> int:
    """Return ``e_machine`` of the kernel's file.

    :raises KernelError: GDB has no file.
    """
    path = path_of(gdb.current_progspace())
    try:
        with Path(path).open("rb") as file:
            return Headers(file).header.machine
    except (OSError, FileError) as error:
        raise KernelError(f"the kernel's file cannot be read: {error}") from error


def _symbol(name: str) -> int | None:
    found = address_of(name)
    return found[0] if found else None


def _find_type(tag: str) -> Type | None:
    try:
        return _type(gdb.lookup_type(f"struct {tag}"))
    except gdb.error:
        return None


def _type(found: gdb.Type) -> Type:
    plain = found.strip_typedefs()

    def members() -> Sequence[Member]:
        if plain.code not in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
            return ()
        fields = (field for field in plain.fields() if hasattr(field, "bitpos"))
        return [Member(field.name or "", int(field.bitpos) // 8, _type(field.type)) for field in fields]

    def element() -> Type | None:
        return _type(plain.target()) if plain.code == gdb.TYPE_CODE_ARRAY else None

    return Type(int(plain.sizeof), members, element)
