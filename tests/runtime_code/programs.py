"""The programs of these tests, which generate code.  Each is compiled once, into the checkout's `.cache` folder.

On AMD64, they register the code with Debian's libunwind.  Debian has no libunwind for the cross compilers of the other
machines, so the program keeps the list itself there (`registry.c`).  AMD64 also has such a build, because libunwind's
list has no symbol.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.hanging import HANG
from tests.missing import toolchain_needed
from tests.samples.build import toolchain
from tests.samples.catalogue import ABIS
from tools.binutils import ToolchainUnavailable

FOLDER = Path(__file__).resolve().parent
CACHE = FOLDER.parents[1] / ".cache" / "runtime_code"
SECONDS = HANG

_SFRAME = ("-Wa,--gsframe", "-fasynchronous-unwind-tables")
OWN, LIBUNWIND = "own", "libunwind"
"""The lists that code can be registered in: the program's own, or libunwind's."""

FUNCTIONS = ("spills", "frame_pointer", "in_register", "two_exits", "shared_short", "shared_long")
COPIES = ("alias", "table", "remote_table")
EVERYWHERE = (*FUNCTIONS, *COPIES)
"""The functions that are generated on every ABI."""
ON_AMD64 = (*EVERYWHERE, "nested", "unordered", "outlined", "alias_prologue", "alias_outlined")
IN_GDB = (*ON_AMD64, "other_pointer")
"""These have a CFA from a register that only GDB knows in frames other than the innermost one."""
PARTS = {"outlined": "outlined_cold", "alias_outlined": "alias_cold"}
"""Procedures that a function jumps to."""


def build_generated(abi: str, registry: str, sframe: bool = False) -> Path:
    """Return the path of the program whose code is described to libunwind.

    :param sframe: whether its C code has SFrame; its copied code always has it.

    Raises ToolchainUnavailable if it cannot be built here.
    """
    if registry == LIBUNWIND and not any(Path("/usr/include").glob("**/libunwind.h")):
        raise ToolchainUnavailable("libunwind.h is not installed (Debian: libunwind-dev): its list stays untested")
    own = ["-DOWN_REGISTRY", "registry.c"] if registry == OWN else ["-lunwind"]
    flags = [*_SFRAME, *own] if sframe else own
    return _built(abi, f"generated-{registry}", ["generated.c", f"original_{abi}.S"], flags)


def generated(abi: str, registry: str, sframe: bool = False) -> Path:
    """Return the same; skip the test where the program cannot be built."""
    with toolchain_needed():
        return build_generated(abi, registry, sframe)


def program(abi: str, executable: Path, *arguments: str) -> dict[str, Any]:
    """Return the settings with which `tests.gdb.inside.program` starts a program."""
    return {
        "executable": str(executable),
        "arguments": list(arguments),
        "emulator": list(ABIS[abi].emulator),
        "place": "sample_stop",
        "signals": [],
    }


def jit(abi: str, sframe: bool = False) -> tuple[Path, Path, Path]:
    """Return the paths of the program that loads object files, and of two for it; skip the test where that fails."""
    with toolchain_needed():
        first, second = (_built(abi, f"jitted-{room}", ["jitted.c"], [f"-DROOM={room}", "-c"]) for room in (4, 40))
        loader = _built(abi, "jit", ["jit.c"], [*_SFRAME] if sframe else [])
    return loader, first, second


def _built(abi: str, name: str, sources: list[str], flags: list[str]) -> Path:
    """Return the path of the compiler's output; unwind data of an object file goes to `.sframe` alone."""
    tools = toolchain(abi, 3)
    described = ABIS[abi]
    # Addresses in the copied code are absolute, so the program lies at a fixed place.
    static = ["-static"] if described.emulator else []
    command = [described.compiler, "-g", "-O2", "-Wall", "-Wextra", "-fno-pie", "-no-pie", "-fno-use-linker-plugin"]
    command += [f"-B{tools}/"]
    digest = hashlib.sha256(repr([command, static, sources, flags]).encode())
    for source in sorted(path for path in FOLDER.iterdir() if path.suffix in (".c", ".h", ".S")):
        digest.update(source.read_bytes())
    path = CACHE / f"{name}-{abi}-{digest.hexdigest()[:12]}"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            fresh, assembly = Path(folder) / name, Path(folder) / "assembly.s"
            if "-c" in flags:
                _run([*command, *flags[:-1], "-fno-stack-protector", "-S", *sources, "-o", str(assembly)])
                directives = ".cfi_sections .sframe\n" + assembly.read_text(encoding="utf-8")
                assembly.write_text(directives, encoding="utf-8")
                _run([*command, "-c", str(assembly), "-o", str(fresh)])
            else:
                _run([*command, *static, *sources, *flags, "-o", str(fresh)])
            fresh.rename(path)
    return path


def _run(command: list[str]) -> None:
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
