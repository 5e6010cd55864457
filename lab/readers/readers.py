"""The readers, their sources, and the sections that they support.

Debian has packages with libsframe of binutils 2.40, 2.44 and 2.47.  Of 2.46, it has only the source package, which it
keeps for packages that were built with it; the library is compiled from that.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Callable

from lab.readers.running import Reader, adapter
from sframe_unwind.sframe.constants import ARCH_BY_ABI, AbiNumber
from tests.hanging import HANG
from tools import binutils
from tools.debian import FetchError, fetch_archives, unpack
from tools.kept import kept

_CACHE = binutils.CACHE.parent / "readers"
_HARNESS = Path(__file__).parent / "adapters" / "glibc.c"
_SECONDS = HANG
_ALL = frozenset(int(abi) for abi in AbiNumber)
LITTLE = frozenset(int(abi) for abi, arch in ARCH_BY_ABI.items() if arch.byteorder == "little")
_S390X = int(AbiNumber.S390X_ENDIAN_BIG)
_LIBSFRAME = {
    "2.40": (1, _ALL - {_S390X}, "libsframe-2.40"),
    "2.44": (2, _ALL - {_S390X}, "libsframe-2.44"),
    "2.46": (3, _ALL, "libsframe-2.47"),
    "2.47": (3, _ALL, "libsframe-2.47"),
}
"""By binutils version: the version of SFrame of its tools, the ABIs (2.45 added that of s390x), and the profile."""
_BINUTILS_2_46 = "binutils=2.46-3"
_BINUTILS_FILES = ("include/ansidecl.h", "include/sframe*.h", "libsframe/*.[ch]", "libctf/swap.h")
_SWAP_H_NEEDS = ("BYTESWAP_H", *(f"DECL_BSWAP_{size}" for size in (16, 32, 64)))
_GLIBC_SUITE = "sid"
_GLIBC_FILES = ("sframe-read.c", "sframe-read.h", "sframe.h")
_LLVM_SUITE, _LLVM = "sid", "usr/lib/llvm-23"


class UnavailableError(Exception):
    """A reader is not available; the message is one line."""


def ours() -> Reader:
    """Return the decoder of this project."""
    return Reader("sframe-unwind", adapter("ours"), frozenset((1, 2, 3)), _ALL, profile="spec")


def libsframe(version: str) -> Reader:
    """Return the libsframe of a version of binutils.

    :raises UnavailableError: its package cannot be had.
    """
    version_read, abis, profile = _LIBSFRAME[version]
    library = _compiled() if version == "2.46" else _packaged(version)
    command = adapter("libsframe", str(library))
    return Reader(f"libsframe {version}", command, frozenset((version_read,)), abis, profile=profile, swaps=True)


def _packaged(version: str) -> Path:
    try:
        binutils.provide(version, "x86_64")
    except binutils.ToolchainUnavailable as error:
        raise UnavailableError(str(error)) from error
    found = sorted((binutils.CACHE / version).glob("root/usr/lib/x86_64-linux-gnu/libsframe.so.?"))
    if not found:
        raise UnavailableError(f"the packages of binutils {version} have no libsframe")
    return found[0]


def _compiled() -> Path:
    try:
        return kept(_CACHE / "libsframe-2.46", _compile_libsframe) / "libsframe.so.3"
    except (FetchError, OSError, subprocess.SubprocessError, tarfile.TarError) as error:
        raise UnavailableError(f"libsframe 2.46: {error}") from error


def glibc() -> Reader:
    """Return the reader of glibc 2.43, whose source 2.44 has unchanged.

    :raises UnavailableError: its source package cannot be had, or not compiled.
    """
    try:
        program = kept(_CACHE / "glibc", _compile_glibc) / "glibc"
    except (FetchError, OSError, subprocess.SubprocessError, tarfile.TarError) as error:
        raise UnavailableError(f"the reader of glibc: {error}") from error
    return Reader(
        name="glibc 2.43",
        command=adapter("glibc", str(program)),
        versions=frozenset((2,)),
        abis=LITTLE,
        shows_signed=False,
        profile="glibc",
    )


def linux() -> Reader:
    """Return the transcription of Linux's reader."""
    return Reader("linux-user", adapter("linux"), frozenset((3,)), _ALL, profile="linux-user")


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
    """Return all readers that are available, and why the others are not."""
    found, missing = [], []
    makers: list[Callable[[], Reader]] = [ours]
    makers += [functools.partial(libsframe, version) for version in _LIBSFRAME]
    for make in (*makers, glibc, llvm, linux):
        try:
            found.append(make())
        except UnavailableError as error:
            missing.append(str(error))
    return found, missing


def _extract(archives: Sequence[Path], patterns: Sequence[str], folder: Path) -> None:
    """Unpack the files of a source package whose paths match a pattern; the archives are removed."""
    with tarfile.open(next(path for path in archives if ".orig.tar." in path.name)) as archive:
        for member in archive:
            path = PurePosixPath(member.name.partition("/")[2])
            content = archive.extractfile(member) if any(map(path.match, patterns)) else None
            if content is not None:
                (folder / path.name).write_bytes(content.read())
    for archived in archives:
        archived.unlink()


def _compile_glibc(folder: Path) -> None:
    archives = fetch_archives(_GLIBC_SUITE, "glibc", folder)
    _extract(archives, [f"sysdeps/generic/{name}" for name in _GLIBC_FILES], folder)
    # The rest that its headers take from other headers of glibc.
    flags = ["-O1", "-w", "-D_GNU_SOURCE", "-include", "stddef.h", "-Dlibc_hidden_proto(name)=", "-I", str(folder)]
    sources = [str(_HARNESS), str(folder / "sframe-read.c")]
    subprocess.run(["gcc", *flags, "-o", str(folder / "glibc"), *sources], check=True, timeout=_SECONDS)


def _compile_libsframe(folder: Path) -> None:
    _extract(fetch_archives("testing", _BINUTILS_2_46, folder), _BINUTILS_FILES, folder)
    (folder / "config.h").write_text("".join(f"#define HAVE_{name} 1\n" for name in _SWAP_H_NEEDS))
    flags = ["-O2", "-w", "-shared", "-fPIC", "-D_GNU_SOURCE", "-DHAVE_CONFIG_H", "-I", str(folder)]
    sources = [str(folder / name) for name in ("sframe.c", "sframe-error.c")]
    subprocess.run(["gcc", *flags, "-o", str(folder / "libsframe.so.3"), *sources], check=True, timeout=_SECONDS)


def _fetch_llvm(folder: Path) -> None:
    unpack(_LLVM_SUITE, ["llvm-23"], folder)
    # The part of 300 MB that one program needs.
    for path in (folder / "root" / _LLVM / "bin").iterdir():
        if path.name != "llvm-readobj":
            path.unlink()
    for name in ("include", "share"):
        shutil.rmtree(folder / "root" / _LLVM / name, ignore_errors=True)
        shutil.rmtree(folder / "root" / "usr" / name, ignore_errors=True)
