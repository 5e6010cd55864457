"""The readers: where they come from, and what they are made for.

Debian has no libsframe of binutils 2.46: testing and unstable have 2.47, stable has 2.44.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Callable

from sframe_unwind.sframe.constants import ARCH_BY_ABI, AbiNumber
from tests.readers.running import Reader, adapter
from tools import binutils
from tools.debian import FetchError, fetch_archives, unpack
from tools.kept import kept

_CACHE = binutils.CACHE.parent / "readers"
_HARNESS = Path(__file__).parent / "adapters" / "glibc.c"
_SECONDS = 60
_ALL = frozenset(int(abi) for abi in AbiNumber)
_LITTLE = frozenset(int(abi) for abi, arch in ARCH_BY_ABI.items() if arch.byteorder == "little")
_S390X = int(AbiNumber.S390X_ENDIAN_BIG)
_LIBSFRAME = {"2.40": ((1,), _ALL - {_S390X}), "2.44": ((2,), _ALL - {_S390X}), "2.47": ((3,), _ALL)}
"""The versions of the format that each libsframe reads, and the ABIs; that of s390x came with 2.45."""
_GLIBC_SUITE = "sid"
_GLIBC_FILES = ("sframe-read.c", "sframe-read.h", "sframe.h")
_LLVM_SUITE, _LLVM = "sid", "usr/lib/llvm-23"


class UnavailableError(Exception):
    """A reader cannot be had; the message is one line."""


def ours() -> Reader:
    """Return the decoder of this project."""
    return Reader("sframe-unwind", adapter("ours"), frozenset((1, 2, 3)), _ALL)


def libsframe(version: str) -> Reader:
    """Return the libsframe of a version of binutils.

    :raises UnavailableError: its package cannot be had.
    """
    try:
        binutils.provide(version, "x86_64")
    except binutils.ToolchainUnavailable as error:
        raise UnavailableError(str(error)) from error
    found = sorted((binutils.CACHE / version).glob("root/usr/lib/x86_64-linux-gnu/libsframe.so.?"))
    if not found:
        raise UnavailableError(f"the packages of binutils {version} have no libsframe")
    reads, abis = _LIBSFRAME[version]
    return Reader(f"libsframe {version}", adapter("libsframe", str(found[0])), frozenset(reads), abis)


def glibc() -> Reader:
    """Return the reader of glibc 2.43, whose source 2.44 has unchanged.

    :raises UnavailableError: its source package cannot be had, or not compiled.
    """
    try:
        program = kept(_CACHE / "glibc", _compile_glibc) / "glibc"
    except (FetchError, OSError, subprocess.SubprocessError, tarfile.TarError) as error:
        raise UnavailableError(f"the reader of glibc: {error}") from error
    return Reader("glibc 2.43", adapter("glibc", str(program)), frozenset((2,)), _LITTLE, shows_signed=False)


def linux() -> Reader:
    """Return the transcription of Linux's reader."""
    return Reader("linux-user", adapter("linux"), frozenset((3,)), _ALL)


def llvm() -> Reader:
    """Return ``llvm-readobj`` of LLVM 23.

    :raises UnavailableError: its package cannot be had.
    """
    try:
        folder = kept(_CACHE / "llvm", _fetch_llvm)
    except (FetchError, OSError) as error:
        raise UnavailableError(f"llvm-readobj: {error}") from error
    return Reader("llvm-readobj 23", adapter("llvm", str(folder)), frozenset((2,)), _ALL - {_S390X})


@functools.cache
def available() -> tuple[Sequence[Reader], Sequence[str]]:
    """Return all readers that can be had, and why the others cannot."""
    found, missing = [], []
    makers: list[Callable[[], Reader]] = [ours]
    makers += [functools.partial(libsframe, version) for version in _LIBSFRAME]
    for make in (*makers, glibc, llvm, linux):
        try:
            found.append(make())
        except UnavailableError as error:
            missing.append(str(error))
    return found, missing


def _compile_glibc(folder: Path) -> None:
    archives = fetch_archives(_GLIBC_SUITE, "glibc", folder)
    with tarfile.open(next(path for path in archives if ".orig.tar." in path.name)) as archive:
        wanted = {f"sysdeps/generic/{name}" for name in _GLIBC_FILES}
        for member in archive:
            if member.isfile() and member.name.partition("/")[2] in wanted:
                content = archive.extractfile(member)
                assert content is not None  # it is a file
                (folder / Path(member.name).name).write_bytes(content.read())
    for path in archives:
        path.unlink()
    # What else its headers take from other headers of glibc.
    flags = ["-O1", "-w", "-D_GNU_SOURCE", "-include", "stddef.h", "-Dlibc_hidden_proto(name)=", "-I", str(folder)]
    sources = [str(_HARNESS), str(folder / "sframe-read.c")]
    subprocess.run(["gcc", *flags, "-o", str(folder / "glibc"), *sources], check=True, timeout=_SECONDS)


def _fetch_llvm(folder: Path) -> None:
    unpack(_LLVM_SUITE, ["llvm-23"], folder)
    # Of 300 MB, what one program needs.
    for path in (folder / "root" / _LLVM / "bin").iterdir():
        if path.name != "llvm-readobj":
            path.unlink()
    for name in ("include", "share"):
        shutil.rmtree(folder / "root" / _LLVM / name, ignore_errors=True)
        shutil.rmtree(folder / "root" / "usr" / name, ignore_errors=True)
