"""Decides what a test does if something it needs is missing on this machine; no other module decides this.

On a user's machine, the test is skipped with a message about the missing part.  If the environment variable ``CI`` is
set, as it is by CI services, a missing package, debugger, emulator or browser is a failure, because skip messages are
not read there.

What the machine itself cannot do is skipped there too: the probes of ``sframe-unwind doctor``, which run the debugger
alone, find that out.  The last lines of a run count the skipped tests by reason.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import NoReturn

import pytest

from sframe_unwind.errors import MissingExtraError
from sframe_unwind.machine import gdb, linux
from sframe_unwind.machine.finding import Finding
from tools.binutils import ToolchainUnavailable

OUTCOMES = (pytest.skip.Exception, pytest.fail.Exception)
"""What :func:`absent` raises: pytest's exceptions are none of :class:`Exception`."""
IN_CI = os.environ.get("CI", "").lower() not in ("", "0", "false")


def absent(what: str) -> NoReturn:
    """End the test: a package, debugger, emulator or browser is not installed.

    :param what: the missing part, and what stays untested.
    """
    if IN_CI:
        raise pytest.fail.Exception(f"{what} (CI is set: what is missing is a failure)", pytrace=False)
    raise pytest.skip.Exception(what, allow_module_level=True)


def not_on_this_system(why: str) -> NoReturn:
    """End the test: the kernel of this machine, or a limit, refuses what is tested, and no package changes that."""
    raise pytest.skip.Exception(why)


def gdb_needed(program: str, ability: str) -> None:
    """End the test if a GDB without the plugin lacks an ability on this machine.

    :param program: its path.
    :param ability: the name of a probe of :mod:`sframe_unwind.machine.gdb`.
    """
    for finding in gdb.probe(program):
        if finding.name in (gdb.STARTS, ability):
            _needed(finding)


def recordings_needed() -> None:
    """End the test if the kernel does not permit to record."""
    _needed(_records())


def core_files_needed() -> None:
    """End the test if the kernel does not write core files where a process runs."""
    _needed(_cores())


def fixed_addresses_needed() -> None:
    """End the test if no debugger can run a program twice at the same addresses, which the test compares."""
    _needed(_randomisation())


def mount_namespaces_needed() -> None:
    """End the test if programs cannot be started in a mount namespace of their own, in which they mount a folder."""
    tried = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    try:
        done = subprocess.run(tried, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        absent("unshare or mount (util-linux) is not installed: processes in mount namespaces stay untested")
    if done.returncode:
        not_on_this_system(f"no mount namespace: {done.stderr.strip()}")


def mapped_files_needed() -> None:
    """End the test if this user may not read files by the mappings of a process, which works after they are deleted."""
    with os.scandir("/proc/self/map_files") as mappings:
        first = next(mappings).path
    try:
        os.close(os.open(first, os.O_RDONLY))
    except PermissionError as error:
        not_on_this_system(f"/proc/PID/map_files needs the capability CAP_CHECKPOINT_RESTORE: {error.strerror}")


@contextmanager
def skipping_if_missing() -> Iterator[None]:
    """End the test if what the block raises means that a tool or a package is not installed.

    A test need not ask before for each of its commands, compilers and packages.  If ``CI`` is set, its own error stays.
    """
    try:
        yield
    except Exception as error:
        reason = _missing(error)
        if not reason or IN_CI:
            raise
        absent(reason)


def _missing(error: Exception) -> str:
    """Return what is not installed according to an exception; empty: that is not its cause."""
    if isinstance(error, (ToolchainUnavailable, MissingExtraError)):
        return str(error)
    # Where a folder of PATH cannot be read, a command that is in no folder is refused, not missing.
    if isinstance(error, (FileNotFoundError, PermissionError)):
        name = str(error.filename)
        raised_in = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
        if raised_in[-1:] == [subprocess.__file__] and os.sep not in name and shutil.which(name) is None:
            return f"{name} is not installed"
    return ""


_randomisation = functools.cache(linux.randomisation)
_records = functools.cache(linux.records)
_cores = functools.cache(linux.cores)


def _needed(finding: Finding) -> None:
    if finding.works is False:
        not_on_this_system(finding.sentence())


def package_needed(name: str) -> None:
    """End the test, or skip the module that calls this during its import, if a package is not installed."""
    if find_spec(name) is None:
        absent(f"the package {name} is not installed: what it compares with stays untested")


def zstd_needed() -> None:
    """End the test if the program ``zstd`` is not installed, which decompresses where Python and libzstd cannot."""
    if shutil.which("zstd") is None:
        absent("zstd is not installed: decompression by it stays untested")


@contextmanager
def toolchain_needed() -> Iterator[None]:
    """End the test if the compiler, assembler or emulator of the block is missing."""
    try:
        yield
    except ToolchainUnavailable as error:
        absent(str(error))
