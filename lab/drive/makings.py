"""Builds the programs of the corners: a file with all its unwind data, and a copy from which a part is removed."""

from __future__ import annotations

import fcntl
import hashlib
import random
import shutil
import tempfile
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from lab.drive import cutting
from lab.drive.building import CACHE, FOLDER, STANDARDS, run_tool
from lab.drive.dimensions import (
    BOLT,
    COMPACT,
    DEBUG_FRAME,
    GONE,
    LACKING,
    NO_CFI,
    NO_SFRAME,
    OBJCOPY,
    ONE_BOTH,
    ONE_CFI,
    ONE_SFRAME,
    PATCHELF,
    SHALLOW,
    SOME_CFI,
    STRIP,
    Corner,
)
from lab.drive.programs import PROGRAMS, Program
from tests.rewriting.bolt import path as bolt_path
from tests.samples.build import toolchain
from tools.producers import provide as other_linkers

_COMMON = (
    *("-g", "-w", "-Wa,--gsframe", "-fno-stack-protector", "-fno-use-linker-plugin", "-fno-builtin"),
    *("-fcf-protection=full", "-Wl,--build-id"),
)
_UNWIND = {True: ("-fasynchronous-unwind-tables",), False: ("-fno-asynchronous-unwind-tables", "-fno-unwind-tables")}
_PLT = {
    "lazy": ("-Wl,-z,lazy",),
    "now": ("-Wl,-z,now",),
    "ibt": ("-Wl,-z,lazy,-z,ibtplt",),
    "ibt-now": ("-Wl,-z,now,-z,ibtplt",),
    "no-plt": ("-fno-plt",),
}
_POSITION = {
    "pie": ("-fPIE", "-pie"),
    "fixed": ("-fno-pie", "-no-pie"),
    "static": ("-fno-pie", "-static"),
    "static-pie": ("-fPIE", "-static-pie"),
}
_BASE = {"pie": 0x555555554000, "fixed": 0, "static": 0}
"""The address at which Linux loads a program if addresses are not randomised."""
_OUTPUT = {BOLT: ["-o"], OBJCOPY: [], STRIP: ["-o"], PATCHELF: ["--output"]}
"""The option before the name of the file that a rewriting tool writes."""
_KEPT = ("--keep-section=.debug_frame", "--keep-section=.sframe")
"""Options of objcopy and strip, which take `.debug_frame` for debug information; it is CFI."""
_BELOW = "depth.h"
"""The file, in the folder `sources`, with the functions between main and that of the program."""
_RECURSION = ("descend", "hop")
"""These functions."""
_OTHER_NAMES = "other names"
"""Marks a copy with other names in its symbol table, and without debug information."""


@dataclass(frozen=True)
class Making:
    """A program that was built for a corner."""

    program: Program
    """If its functions have no names, it has addresses instead of names for breakpoints, and no calls."""
    file: Path
    """The file for the debugger with the plugin."""
    whole: Path
    """A file with the same code at the same addresses, and all of its CFI; `file` itself if nothing is missing."""
    unknown: tuple[tuple[int, int], ...]
    """Address ranges in the process, start and end (exclusive), of code that has neither CFI nor SFrame in `file`."""


def made(corner: Corner, seed: int, is_gdb: bool = True) -> Making:
    """Build the program of a corner.

    :param seed: decides which functions lack something.
    :param is_gdb: for GDB, else for LLDB.
    :raises ToolchainUnavailable: an assembler or a linker is missing.
    :raises ProgramError: the compiler or the linker fails.
    """
    program = PROGRAMS[corner["program"]]
    command, rewriting = _command(corner, program), _rewriting(corner)
    digest = hashlib.sha256(repr([command, *rewriting]).encode())
    for source in (*program.sources, *([_BELOW] if corner["depth"] != SHALLOW else [])):
        digest.update((FOLDER / source).read_bytes())
    digest.update(Path(cutting.__file__).read_bytes())
    folder = CACHE / f"corner-{program.name}-{digest.hexdigest()[:16]}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"corner-{program.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            temporary = Path(tempfile.mkdtemp(dir=CACHE))
            try:
                built = temporary / "built"
                run_tool([*command, *(str(FOLDER / name) for name in program.sources), "-o", str(built)], FOLDER)
                if rewriting:
                    run_tool([*rewriting, str(built), *_OUTPUT[corner["rewritten"]], str(temporary / "new")], FOLDER)
                    (temporary / "new").replace(built)
                temporary.chmod(0o755)
                temporary.rename(folder)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
        return _cut(corner, seed, program, folder, is_gdb)


def _rewriting(corner: Corner) -> list[str]:
    """Return the command that rewrites the linked program, without its files; empty: none does."""
    if corner["rewritten"] == BOLT:
        return [bolt_path() or "llvm-bolt", "-lite=0", "-reorder-blocks=reverse"]
    tools = toolchain("amd64", 3)
    commands = {
        OBJCOPY: [str(tools / "objcopy")],
        STRIP: [str(tools / "strip"), "--strip-debug", _KEPT[0]],
        PATCHELF: ["patchelf", "--set-rpath", "/a/folder/that/is/not/there/and/has/a/long/name"],
    }
    return commands.get(corner["rewritten"], [])


def _command(corner: Corner, program: Program) -> list[str]:
    cxx = program.sources[0].endswith(".cc")
    tools = toolchain("amd64", int(corner["version"]) if corner["version"].isdigit() else 3)
    common = [flag for flag in _COMMON if corner["version"] != NO_SFRAME or "sframe" not in flag]
    linker: tuple[str, ...] = ()
    if corner["linker"] != "ld":
        linker = (f"-B{other_linkers()}/", f"-fuse-ld={corner['linker']}")
    plt: tuple[str, ...] = _PLT[corner["plt"]]
    if corner["linker"] != "ld":  # these linkers make such stubs always, or for marked objects
        plt = tuple(flag.replace(",-z,ibtplt", "") for flag in plt)
    return [
        *("g++" if cxx else "gcc", f"-{corner['level']}", *common, STANDARDS[Path(program.sources[0]).suffix]),
        *((f"-DDEPTH={corner['depth']}", "-include", str(FOLDER / _BELOW)) if corner["depth"] != SHALLOW else ()),
        *(("-fno-exceptions", "-fno-rtti") if cxx and not program.exceptions else ()),
        *_UNWIND[corner["tables"] != DEBUG_FRAME],
        *_POSITION[corner["position"]],
        *plt,
        *linker,
        f"-B{tools}/",
    ]


def _cut(corner: Corner, seed: int, program: Program, folder: Path, is_gdb: bool) -> Making:
    built = folder / "built"
    known = {function.name: function for function in cutting.functions(built)}
    present = [name for name in program.functions if name in known]
    chosen = _chosen(corner["tables"], seed, [*present, *(_RECURSION if corner["depth"] != SHALLOW else ())])
    starts = {known[name].start for name in chosen}
    covered = {} if corner["version"] == NO_SFRAME else cutting.covered(built)
    assert starts <= covered.keys()
    # Names of equal length, because the path is on the stack of the program.
    symbols = _OTHER_NAMES if _needs_symbols(corner, is_gdb) else corner["symbols"]
    whole = _copy(built, folder / _digest("whole", symbols) / program.name, symbols)
    compact = corner["version"] == COMPACT
    words = (corner["tables"], corner["symbols"], *(["compact"] if compact else []), *sorted(chosen))
    file = folder / _digest(*words) / program.name
    if not file.exists():
        temporary = _copy(built, file.with_name("unfinished"), corner["symbols"])
        tables = corner["tables"]
        if tables == GONE:
            cutting.without_any_cfi(temporary)
        elif tables in LACKING:
            cutting.without_cfi(temporary, starts if tables != NO_CFI else covered)
        if tables in (ONE_SFRAME, ONE_BOTH):
            cutting.without_sframe(temporary, starts)
        if compact:
            cutting.compact(temporary)
        if corner["symbols"] == "headless":
            cutting.without_section_headers(temporary)
        temporary.rename(file)
    if corner["symbols"] != "all":
        base = _BASE[corner["position"]]
        places = tuple(f"*{base + known[name].start:#x}" for name in (*present, "main"))
        program = replace(program, functions=places, calls=())
    elif len(present) != len(program.functions):  # the others were inlined
        program = replace(program, functions=tuple(present))
    lacks = _lacks(corner) or _needs_symbols(corner, is_gdb)
    return Making(program, file, whole if lacks else file, _unknown(corner, file, covered, starts))


def _unknown(
    corner: Corner, file: Path, covered: Mapping[int, int], starts: Container[int]
) -> tuple[tuple[int, int], ...]:
    """Return the code that is left without any unwind data.

    :param starts: the functions that lack something.
    """
    base, tables = _BASE.get(corner["position"], 0), corner["tables"]
    if tables != GONE and corner["symbols"] != "headless":
        lost = [start for start in covered if start in starts] if tables == ONE_BOTH else []
        return tuple((base + start, base + start + covered[start]) for start in lost)
    first, end = cutting.extent(file)
    found = []
    for start, size in sorted(covered.items()):
        if tables not in (ONE_SFRAME, ONE_BOTH) or start not in starts:
            found.append((base + first, base + start))
            first = start + size
    return (*found, (base + first, base + end))


def _lacks(corner: Corner) -> bool:
    """Return whether the debugger alone lacks CFI that the whole program has."""
    return corner["tables"] in LACKING or corner["symbols"] == "headless"


def _needs_symbols(corner: Corner, is_gdb: bool) -> bool:
    """Return whether the debugger alone does not use the CFI because symbols are missing.

    LLDB uses `.debug_frame` only for functions that have a symbol.
    """
    return not is_gdb and corner["tables"] == DEBUG_FRAME and corner["symbols"] != "all"


def _chosen(tables: str, seed: int, names: list[str]) -> list[str]:
    """Return the functions that lack something."""
    rng = random.Random(f"cut {seed}")
    if tables in (ONE_CFI, ONE_SFRAME, ONE_BOTH):
        return rng.sample(names, 1)
    return rng.sample(names, (len(names) + 1) // 2) if tables == SOME_CFI else []


def _digest(*words: str) -> str:
    return hashlib.sha256(repr(words).encode()).hexdigest()[:10]


def _copy(built: Path, copy: Path, symbols: str) -> Path:
    """Copy a program if the copy does not exist yet.

    :param symbols: a value of the dimension (unless it is "all", the copy has no symbols), or `_OTHER_NAMES`.
    """
    copy.parent.mkdir(exist_ok=True)
    if copy.exists():
        return copy
    shutil.copy(built, copy)
    if symbols != "all":
        # In both copies of a program, nothing is found by a name.
        what = ("--strip-debug", "--prefix-symbols=hidden_") if symbols == _OTHER_NAMES else ("--strip-all",)
        run_tool(["objcopy", *what, *_KEPT, str(copy)], FOLDER)
    return copy
