"""Builds each of the driven programs once, with the newest assembler, in the checkout's `.cache` folder."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lab.drive.programs import Build
from lab.real_programs import Program as Package
from lab.real_programs import ProgramError
from lab.real_programs import sources as unpacked
from tests.hanging import hang_after
from tests.samples.build import build as build_sample
from tests.samples.build import describe_cached, toolchain

FOLDER = Path(__file__).resolve().parent / "sources"
CACHE = Path(__file__).resolve().parents[2] / ".cache" / "drive"
SECONDS = hang_after(10)
"""Time limit for a compiler, in seconds."""

FLAGS = (
    *("-g", "-w", "-Wa,--gsframe", "-fasynchronous-unwind-tables", "-fno-stack-protector", "-fno-use-linker-plugin"),
    *("-fPIE", "-pie", "-pthread"),
)
"""No stack protector: its canary differs in each process, and appears in uninitialised variables."""
COMPILERS = {"amd64": "", "aarch64": "aarch64-linux-gnu-", "s390x": "s390x-linux-gnu-"}
STANDARDS = {".c": "-std=gnu11", ".cc": "-std=c++17"}


def built(build: Build) -> Path:
    """Return the path of a program's executable.

    :raises ToolchainUnavailable: there is no assembler for the machine.
    :raises ProgramError: a package is not available, or the compiler fails.
    """
    program = build.program
    if program.sample:
        return build_sample(program.sample, build.abi, 3, build.level)
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{program.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        compiler = COMPILERS[build.abi] + ("g++" if program.sources and program.sources[0].endswith(".cc") else "gcc")
        tools = toolchain(build.abi, 3)
        command = [compiler, f"-{build.level}", *FLAGS, *program.flags]
        # The debug information has the path of the sources.
        digest = hashlib.sha256(repr((command, program.package, describe_cached(tools), str(FOLDER))).encode())
        command.append(f"-B{tools}/")
        for source in (*program.sources, *program.libraries):
            digest.update((FOLDER / source).read_bytes())
        folder = CACHE / f"{build.name}-{digest.hexdigest()[:12]}"
        if not folder.exists():
            temporary = Path(tempfile.mkdtemp(dir=CACHE))
            try:
                if program.package is not None:
                    _build_package(program.package, command, temporary / program.name)
                else:
                    _build_sources(program.sources, command, temporary / program.name)
                for source in program.libraries:
                    shared = [*command, "-fPIC", "-shared"]
                    _build_sources((source,), shared, (temporary / source).with_suffix(".so"))
                temporary.chmod(0o755)
                temporary.rename(folder)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
        return folder / program.name


def _build_sources(sources: tuple[str, ...], command: list[str], executable: Path) -> None:
    standard = STANDARDS[Path(sources[0]).suffix]
    run_tool([*command, standard, *(str(FOLDER / source) for source in sources), "-o", str(executable)], FOLDER)


def _build_package(package: Package, command: list[str], executable: Path) -> None:
    source = unpacked(package)
    found = [path for pattern in package.sources for path in sorted(source.glob(pattern))]
    kept = [path for path in found if path.name not in package.left_out]
    objects = [executable.with_name(f"{path.stem}.o") for path in kept]

    def compile_one(pair: tuple[Path, Path]) -> None:
        run_tool([*command, *package.flags, "-c", str(pair[0]), "-o", str(pair[1])], source)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(compile_one, zip(kept, objects)))
    run_tool([*command, *map(str, objects), *package.libraries, "-o", str(executable)], source)
    for path in objects:
        path.unlink()


def run_tool(command: list[str], folder: Path) -> None:
    """Run a compiler or another tool in a folder.

    :raises ProgramError: it fails, or takes more than `SECONDS`.
    """
    try:
        done = subprocess.run(
            command, cwd=folder, timeout=SECONDS, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ProgramError(f"{command[0]} in {folder.name} takes more than {error.timeout:.0f} s") from None
    if done.returncode:
        raise ProgramError(f"{command[0]} in {folder.name}: {done.stderr.strip()[-300:]}")
