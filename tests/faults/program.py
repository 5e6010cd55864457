"""The program of `hostile.c`."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.hanging import HANG
from tests.samples.build import COMMON_FLAGS, toolchain

SOURCE = Path(__file__).with_name("hostile.c")
SECONDS = HANG


def hostile(folder: Path) -> Path:
    """Compile it, with frame pointers, which it damages."""
    executable = folder / SOURCE.stem
    flags = [*COMMON_FLAGS, "-O0", "-fno-omit-frame-pointer", "-pthread", f"-B{toolchain('amd64', 3)}/"]
    subprocess.run(["gcc", *flags, str(SOURCE), "-o", str(executable)], check=True, timeout=SECONDS)
    return executable
