"""Programs whose `.sframe` was moved after linking, so that it describes other addresses than those of its functions.

lld does not know SFrame, and puts the section before all others.  patchelf moves the sections there to make room.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from sframe_unwind import elf
from tests.elf.objects import run, tools_for
from tests.missing import absent, not_on_this_system, toolchain_needed
from tools.producers import provide

_FUNCTIONS = 200
"""So much code that most of the addresses to which the functions seem to have moved are in it."""


def moved(folder: Path) -> tuple[Path, Path]:
    """Return a program, and the copy that patchelf has made of it: at many addresses of functions, it has another one.

    The test ends if this patchelf moves the section further.
    """
    if shutil.which("patchelf") is None:
        absent("patchelf is not installed: files that it rewrites stay untested")
    lines = ["volatile int sink;"]
    for number in range(_FUNCTIONS):
        inner = f"f{number - 1}(n + 1)" if number else "n"
        room = number % 7 + 2
        lines.append(f"__attribute__((noinline)) int f{number}(int n) {{ volatile int k[{room}]; k[0] = n;")
        lines.append(f"  sink = {inner}; return sink + k[0]; }}")
    lines.append(f"int main(void) {{ return f{_FUNCTIONS - 1}(0); }}")
    source, linked, copy = folder / "many.c", folder / "linked", folder / "moved"
    source.write_text("\n".join(lines), encoding="utf-8")
    with toolchain_needed():
        linker = provide()
    tools = [f"-B{tools_for('amd64', 3)}/", f"-B{linker}/", "-fuse-ld=lld"]
    run("gcc", "-g", "-O1", "-fno-pie", "-no-pie", "-Wa,--gsframe", *tools, source, "-o", linked)
    run("patchelf", "--set-rpath", "/a/folder/that/is/not/there/and/has/a/long/name", linked, "--output", copy)
    with elf.opened(linked) as before, elf.opened(copy) as after:
        (section,), (there,) = before.sframe, after.sframe
        starts = [function.start for function in section.functions()]
        if sum(there.find(start) is not None for start in starts) <= len(starts) // 3:
            not_on_this_system("this patchelf moves .sframe so far that it describes no code of the program")
    return linked, copy
