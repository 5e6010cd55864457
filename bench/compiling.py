"""Compiles the C programs of this folder with SFrame."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from bench.report import Unavailable
from tools.binutils import SFRAME_VERSIONS, ToolchainUnavailable, provide

_TIMEOUT = 120


def compiled(source: str, output: Path, *flags: str, sframe: bool = True) -> Path:
    """Compile a program of this folder for AMD64 at -O2; return the path of the output.

    :param source: its path from this folder.
    :param sframe: with SFrame version 3, or without SFrame.
    :raises Unavailable: the tools cannot be had, or fail.
    """
    release = next(name for name, version in SFRAME_VERSIONS.items() if version == 3)
    try:
        tools = provide(release, "x86_64")
        command = [
            "gcc",
            "-O2",
            "-pthread",
            "-fno-use-linker-plugin",
            f"-B{tools}/",
            *(["-Wa,--gsframe"] if sframe else []),
            *flags,
        ]
        source_path = str(Path(__file__).parent / source)
        subprocess.run([*command, source_path, "-o", str(output)], check=True, timeout=_TIMEOUT)
    except (ToolchainUnavailable, OSError, subprocess.SubprocessError) as error:
        raise Unavailable(str(error)) from error
    return output


def driving_with_libraries(folder: Path, count: int, sframe: bool = True) -> None:
    """Compile ``driving`` and the libraries ``lib0.so`` and so on that it loads, with or without SFrame.

    :raises Unavailable: the tools cannot be had, or fail.
    """
    folder.mkdir(exist_ok=True)
    compiled("driving.c", folder / "driving", "-g", "-ldl", sframe=sframe)
    library = compiled("library.c", folder / "lib0.so", "-shared", "-fPIC", sframe=sframe)
    for number in range(1, count):
        shutil.copy(library, folder / f"lib{number}.so")
