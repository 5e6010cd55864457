"""Verifies programs of Debian, built from source with SFrame for several ABIs.

    python -m lab.real_programs [--abi ABI ...] [NAME ...]

Sources and builds are kept in the checkout's `.cache/real-programs`. The output is the table in
`docs/verify-evidence.md`, followed by each disagreement with the producer that is wrong.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from sframe_unwind.verify.inputs import Failure, answer, inputs
from sframe_unwind.verify.verdict import Disagreement, Outcome, Verdict
from tests.hanging import hang_after
from tests.verify.producers import explained
from tools.binutils import SFRAME_VERSIONS, ToolchainUnavailable, describe, provide
from tools.debian import FetchError, fetch_sources
from tools.ending import exit_with

CHECKOUT = Path(__file__).resolve().parents[1]
CACHE = CHECKOUT / ".cache" / "real-programs"
SUITE = "bookworm"
BINUTILS = "2.47"
VERSION = SFRAME_VERSIONS[BINUTILS]
VERSION_FILE = "DEBIAN-VERSION"
"""Name of the file with the version of the source package, in the folder of the sources."""
TIMEOUT = hang_after(10)
"""Time limit for one run of a compiler or of a program's own build, in seconds."""

COMPILERS = {
    "amd64": ("gcc", "x86_64"),
    "aarch64": ("aarch64-linux-gnu-gcc", "aarch64"),
    "s390x": ("s390x-linux-gnu-gcc", "s390x"),
}
"""The compiler, and the name of the target in binutils."""
FLAGS = ("-O2", "-w", "-fPIE", "-fasynchronous-unwind-tables", "-Wa,--gsframe", "-fno-use-linker-plugin")


class Program(NamedTuple):
    """How to build a program without its own build system, which would not use our assembler."""

    name: str
    package: str
    """Debian's name of the source package."""
    sources: tuple[str, ...]
    """Patterns for the paths of its source files, relative to the folder of the package."""
    left_out: tuple[str, ...] = ()
    """Names of source files that fit a pattern, but are not compiled."""
    flags: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    generate: tuple[tuple[str, ...], ...] = ()
    """Commands that make sources."""
    needs: str = ""
    """A program that those commands run."""


PROGRAMS = {
    program.name: program
    for program in (
        Program(
            name="lua",
            package="lua5.4",
            sources=("src/*.c",),
            left_out=("luac.c",),
            flags=("-DLUA_USE_LINUX",),
            libraries=("-lm", "-ldl"),
        ),
        Program("minigzip", "zlib", ("*.c", "test/minigzip.c"), flags=("-DHAVE_UNISTD_H", "-I.")),
        Program(
            "redis",
            "redis",
            (
                *("src/*.c", "deps/lua/src/*.c", "deps/hdr_histogram/hdr_histogram.c"),
                *("deps/hiredis/alloc.c", "deps/hiredis/async.c", "deps/hiredis/hiredis.c", "deps/hiredis/net.c"),
                *("deps/hiredis/read.c", "deps/hiredis/sds.c", "deps/hiredis/sockcompat.c"),
            ),
            (
                *("redis-cli.c", "redis-benchmark.c", "cli_common.c", "lua.c", "luac.c", "print.c"),
                "redisassert.c",  # for the tests of single files
                *("ae_epoll.c", "ae_evport.c", "ae_kqueue.c", "ae_select.c"),  # ae.c includes one of them
            ),
            flags=(
                *("-Ideps/hiredis", "-Ideps/lua/src", "-Ideps/hdr_histogram", "-Ideps/linenoise"),
                *("-DREDIS_STATIC=", "-DENABLE_CJSON_GLOBAL", "-DLUA_USE_MKSTEMP"),
                '-DHDR_MALLOC_INCLUDE="hdr_redis_malloc.h"',
            ),
            libraries=("-lpthread", "-ldl", "-lm"),
            generate=(("sh", "-c", "cd src && sh mkreleasehdr.sh"),),
        ),
        Program(
            "sqlite3",
            "sqlite3",
            ("sqlite3.c", "shell.c"),
            flags=("-DSQLITE_ENABLE_FTS5",),
            libraries=("-lpthread", "-ldl", "-lm"),
            generate=(("./configure", "--disable-tcl", "--disable-readline"), ("make", "sqlite3.c", "shell.c")),
            needs="tclsh",
        ),
        Program(
            "zstd",
            "libzstd",
            ("lib/common/*.c", "lib/compress/*.c", "lib/decompress/*.[cS]", "lib/dictBuilder/*.c", "programs/*.c"),
            flags=("-DZSTD_MULTITHREAD", "-Ilib", "-Ilib/common"),
            libraries=("-lpthread",),
        ),
    )
}


class ProgramError(Exception):
    """A program cannot be fetched or built; the message is one line."""


def sources(program: Program) -> Path:
    """Return the folder with the sources of a program; fetch and prepare them if necessary."""
    folder = CACHE / "sources" / program.name
    if folder.exists():
        return folder
    if program.needs and shutil.which(program.needs) is None:
        raise ProgramError(f"{program.name}: {program.needs} is not installed")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as temporary:
        base = Path(temporary)
        fetch_sources(SUITE, [program.package], base)
        tarballs = [path for path in base.glob("*.orig.tar.*") if path.suffix != ".asc"]
        if len(tarballs) != 1:
            raise ProgramError(f"{program.package}: expected one original tarball, found {len(tarballs)}")
        (base / "unpacked").mkdir()
        with tarfile.open(tarballs[0]) as tarball:
            tarball.extractall(base / "unpacked")  # apt has verified it
        (unpacked,) = (base / "unpacked").iterdir()
        for command in program.generate:
            run(command, unpacked)
        (unpacked / VERSION_FILE).write_text(next(base.glob("*.dsc")).stem.partition("_")[2])
        unpacked.rename(folder)
    return folder


class Built(NamedTuple):
    """The builds of one program for one ABI."""

    objects: Path
    """The folder of the object files."""
    combined: Path
    """The output of ``ld -r`` for the object files."""
    executable: Path


def tools_for(abi: str) -> Path:
    """Return the folder with the assembler and linker for an ABI."""
    return provide(BINUTILS, COMPILERS[abi][1])


def compiled(program: Program, abi: str, folder: Path, flags: Sequence[str] = ()) -> tuple[list[str], Path]:
    """Build a program from scratch in an empty folder, and return its object files and the executable.

    :param flags: more options of the compiler.
    """
    source = sources(program)
    shutil.rmtree(folder, ignore_errors=True)
    found = [path for pattern in program.sources for path in sorted(source.glob(pattern))]
    kept = [path for path in found if path.name not in program.left_out]
    (folder / "objects").mkdir(parents=True)
    objects = [folder / "objects" / f"{'-'.join(path.relative_to(source).with_suffix('').parts)}.o" for path in kept]
    command = [COMPILERS[abi][0], f"-B{tools_for(abi)}/", *FLAGS, *flags, *program.flags]

    def compile_one(pair: tuple[Path, Path]) -> None:
        run([*command, "-c", str(pair[0]), "-o", str(pair[1])], source)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(compile_one, zip(kept, objects)))
    names, executable = [str(path) for path in objects], folder / program.name
    run([*command, "-pie", *names, *program.libraries, "-o", str(executable)], source)
    return names, executable


def build(program: Program, abi: str) -> Built:
    """Build a program from scratch."""
    folder = CACHE / "built" / f"{program.name}-{abi}"
    objects, executable = compiled(program, abi, folder)
    combined = folder / f"{program.name}-combined.o"
    run([str(tools_for(abi) / "ld"), "-r", *objects, "-o", str(combined)], sources(program))
    return Built(folder / "objects", combined, executable)


def run(command: tuple[str, ...] | list[str], folder: Path) -> None:
    """Run a tool; raises ProgramError with the end of its output if it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise ProgramError(f"{' '.join(command)}: {lines[-1]}")


def verified(path: Path) -> list[Verdict]:
    """Return the verdict on a file, or on each file in a folder; raises ProgramError if one cannot be verified."""
    verdicts = []
    for found in map(answer, inputs([str(path)])):
        if isinstance(found, Failure):
            raise ProgramError(str(found))
        verdicts.append(found)
    return verdicts


class Sum(NamedTuple):
    """The result for one build of a program: numbers of functions, of addresses and of disagreements, and bytes."""

    both: int
    sframe_only: int
    dwarf_only: int
    not_expressible: int
    addresses: int
    disagreements: int
    sframe: int
    eh_frame: int


def total(verdicts: list[Verdict]) -> Sum:
    """Return the sum over the files of a build."""
    return Sum(
        both=sum(verdict.both for verdict in verdicts),
        sframe_only=sum(verdict.sframe_only for verdict in verdicts),
        dwarf_only=sum(verdict.count(Outcome.DWARF_ONLY) for verdict in verdicts),
        not_expressible=sum(verdict.count(Outcome.NOT_EXPRESSIBLE) for verdict in verdicts),
        addresses=sum(verdict.addresses_compared for verdict in verdicts),
        disagreements=sum(len(verdict.disagreements) for verdict in verdicts),
        sframe=sum(verdict.sizes.sframe for verdict in verdicts),
        eh_frame=sum(verdict.sizes.eh_frame + verdict.sizes.eh_frame_hdr for verdict in verdicts),
    )


def table(rows: list[tuple[str, str, str, Sum]]) -> Iterator[str]:
    """Yield the lines of the table in Markdown."""
    head = ["program", "ABI", "form", "in both", "SFrame only", "DWARF only", "not expressible"]
    head += ["addresses", "disagreements", "`.sframe`", "`.eh_frame` + hdr"]
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * 3}{'--:|' * (len(head) - 3)}"
    for name, abi, form, found in rows:
        yield f"| {' | '.join((name, abi, form, *(f'{number:,}' for number in found)))} |"


def main() -> int:
    """Print the table; return exit status 1 if there is an unknown disagreement, 2 if something is not available."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PROGRAMS)}; default: all")
    parser.add_argument("--abi", action="append", choices=list(COMPILERS), help="default: all")
    options = parser.parse_args()
    if unknown := set(options.names) - set(PROGRAMS):
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    rows: list[tuple[str, str, str, Sum]] = []
    found: list[str] = []
    unexplained = 0
    try:
        for program in (PROGRAMS[name] for name in options.names or PROGRAMS):
            version = (sources(program) / VERSION_FILE).read_text()
            for abi in options.abi or COMPILERS:
                print(f"building {program.name} {version} for {abi}", file=sys.stderr, flush=True)
                built = build(program, abi)
                for form, path in zip(("objects", "`ld -r`", "linked"), built):
                    verdicts = verified(path)
                    rows.append((f"{program.name} {version}", abi, form, total(verdicts)))
                    for verdict in verdicts:
                        for entry in verdict.disagreements:
                            reason = explained(tools_for(abi), Path(verdict.file), abi, VERSION, entry)
                            unexplained += not reason
                            found.append(f"{program.name} {abi} {form}: {words(entry)}: {reason or 'NOT EXPLAINED'}")
    except (ProgramError, FetchError, ToolchainUnavailable, subprocess.SubprocessError, OSError) as error:
        print(f"real-programs: {error}", file=sys.stderr)
        return 2
    print("\n".join([*table(rows), "", *found]))
    for abi in options.abi or COMPILERS:
        compiler = subprocess.run([COMPILERS[abi][0], "--version"], capture_output=True, text=True, check=True)
        print(f"{abi}: {compiler.stdout.splitlines()[0]}; {describe(tools_for(abi))}")
    return 1 if unexplained else 0


def words(entry: Disagreement) -> str:
    """Return a disagreement as one line."""
    return f"{entry.spot} {entry.spot.section}: {entry.what}: SFrame {entry.sframe}; DWARF {entry.dwarf}"


if __name__ == "__main__":
    exit_with(main)
