"""Compiles the programs of these tests like the samples."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.hanging import HANG
from tests.missing import toolchain_needed
from tests.samples.build import COMMON_FLAGS, toolchain
from tests.samples.catalogue import ABIS

FOLDER = Path(__file__).resolve().parent
SECONDS = HANG
PRESERVED_FLAGS = ("-g", "-O2", "-static", "-fno-ipa-ra", "-fno-stack-protector", "-fasynchronous-unwind-tables")


def tools_for(version: int, abi: str = "amd64") -> Path:
    """Return the assembler for a version of SFrame; skip the test if it is not available."""
    with toolchain_needed():
        return toolchain(abi, version)


def compiled(source: str, folder: Path, *flags: str, version: int = 3, sframe: bool = True) -> Path:
    """Return the path of a program made from one source of this folder."""
    executable = folder / Path(source).stem
    _run(["gcc", *_flags(version, sframe), *flags, str(FOLDER / source), "-o", str(executable)])
    return executable


def compiled_with_threads(source: Path, folder: Path, *flags: str) -> Path:
    """Return the path of a program in C or C++ with SFrame, threads and a build ID."""
    folder.mkdir(parents=True, exist_ok=True)
    executable = folder / source.stem
    compiler = "g++" if source.suffix == ".cpp" else "gcc"
    _run([compiler, *_flags(3, True), "-pthread", "-Wl,--build-id", *flags, str(source), "-o", str(executable)])
    return executable


def mixed(folder: Path, version: int, abi: str = "amd64", flags: Sequence[str] = (), with_both: bool = True) -> Path:
    """Compile `mixed.c`: `with_cfi` calls `without_cfi`, which calls `with_cfi`, and so on, seven deep.

    :param with_both: whether `with_cfi` also has SFrame.
    """
    command = [ABIS[abi].compiler, *_flags(version, True, abi), *flags]
    plain = [part for part in command if with_both or "sframe" not in part]
    with_cfi = ["-DMIXED=with_cfi", "-DNEXT=without_cfi", "-DMIXED_ROOM=10", "-DMIXED_MAIN"]
    without = ["-DMIXED=without_cfi", "-DNEXT=with_cfi", "-DMIXED_ROOM=30"]
    source, assembly, executable = str(FOLDER / "mixed.c"), folder / "without.s", folder / "mixed"
    _run([*command, *without, "-S", source, "-o", str(assembly)])
    assembly.write_text(".cfi_sections .sframe\n" + assembly.read_text(encoding="utf-8"), encoding="utf-8")
    _run([*plain, *with_cfi, "-c", source, "-o", str(folder / "with.o")])
    _run([*command, str(folder / "with.o"), str(assembly), "-o", str(executable)])
    return executable


def with_and_without_cfi(folder: Path, abi: str = "amd64") -> tuple[Path, Path]:
    """Compile `preserved.c` with CFI, and a copy in which only SFrame describes its own functions."""
    tools = tools_for(3, abi)
    with_cfi, without = folder / "1" / "program", folder / "2" / "program"
    for path in (with_cfi, without):
        path.parent.mkdir()
    command = [ABIS[abi].compiler, f"-B{tools}/", *PRESERVED_FLAGS, "-Wa,--gsframe", str(FOLDER / "preserved.c")]
    _run([*command, "-o", str(with_cfi)])
    removed = ("--remove-section=.eh_frame", "--remove-section=.eh_frame_hdr", "--remove-section=.debug_frame")
    _run([str(tools / "objcopy"), *removed, str(with_cfi), str(without)])
    return with_cfi, without


def _flags(version: int, sframe: bool, abi: str = "amd64") -> list[str]:
    flags = COMMON_FLAGS if sframe else tuple(flag for flag in COMMON_FLAGS if "sframe" not in flag)
    return [*flags, "-O2", f"-B{tools_for(version, abi)}/"]


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, timeout=SECONDS)
