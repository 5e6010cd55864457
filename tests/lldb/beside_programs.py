"""Programs with one function, without a symbol, that only SFrame describes: after it, LLDB's own stack is wrong."""

from __future__ import annotations

import functools
import random
import subprocess
from pathlib import Path
from typing import Any

from tests.hanging import HANG
from tests.lldb.debuggers import CHECKOUT
from tests.samples.build import toolchain

SOURCES = Path(__file__).parent / "beside"


@functools.cache
def program(level: str, *, cfi: bool = False, place: str = "leaf") -> dict[str, Any]:
    """Return the program in the form of `tests.lldb.programs.program`.

    :param level: optimisation level, such as ``-O2``.
    :param cfi: also build the function with CFI; the code is the same.
    :param place: the function in which it is stopped.
    """
    # Paths of equal length: they are on the stack, above the frames.
    folder = CHECKOUT / ".cache" / "beside" / ("both" if cfi else "only")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"methods{level}"
    sources = sorted(SOURCES.iterdir())
    if not path.exists() or path.stat().st_mtime < max(source.stat().st_mtime for source in sources):
        made = path.with_suffix(f".{random.randrange(1 << 30)}")
        tools = toolchain("amd64", 3)
        relay = (SOURCES / "relay.s").read_text(encoding="ascii")
        relay_object = made.with_suffix(".o")
        assemble = [str(tools / "as"), "-o", str(relay_object), "-"]
        sections = ".sframe, .eh_frame" if cfi else ".sframe"
        subprocess.run(assemble, input=relay.replace("SECTIONS", sections), text=True, check=True, timeout=HANG)
        flags = ["-g", level, "-std=c++17", "-Wa,--gsframe", "-fno-use-linker-plugin", f"-B{tools}/"]
        command = ["g++", *flags, "-o", str(made), str(SOURCES / "methods.cc"), str(relay_object)]
        subprocess.run(command, check=True, timeout=HANG)
        relay_object.unlink()
        made.rename(path)
    return {
        "executable": str(path),
        "arguments": [],
        "emulator": [],
        "sysroot": "",
        "place": place,
        "hits": 1,
        "signals": [],
    }
