"""Copies of programs without unwind data, and without symbols."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.hanging import HANG
from tests.missing import toolchain_needed
from tests.samples.build import toolchain

REMOVED = (".eh_frame", ".eh_frame_hdr", ".debug_frame", ".sframe")


def undescribed(program: Path, abi: str, copy: Path, with_symbols: bool = True) -> Path:
    """Copy a program without unwind data.

    :param with_symbols: ``False``: without symbols, too.
    """
    with toolchain_needed():
        objcopy = toolchain(abi, 3) / "objcopy"
    copy.parent.mkdir(parents=True, exist_ok=True)
    options = [f"--remove-section={name}" for name in REMOVED]
    if not with_symbols:
        options.append("--strip-all")
    subprocess.run([str(objcopy), *options, str(program), str(copy)], check=True, timeout=HANG)
    return copy
