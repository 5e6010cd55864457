"""Builds the samples, once each, into the checkout's `.cache` folder.

python3 -m tests.samples.build [--all] [--abi ABI] [--version N] [--variant V] [--jobs N] [NAME ...]
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SAMPLES_FOLDER = Path(__file__).resolve().parent
CHECKOUT = SAMPLES_FOLDER.parents[1]
if str(CHECKOUT) not in sys.path:  # when run or imported by its path
    sys.path.insert(0, str(CHECKOUT))

from tests.hanging import HANG  # noqa: E402
from tests.samples.catalogue import ABIS, SAMPLES, VARIANTS, Abi, Build, Library, Sample, all_builds  # noqa: E402
from tools.binutils import SFRAME_VERSIONS, ToolchainUnavailable, describe, provide  # noqa: E402
from tools.ending import exit_with  # noqa: E402
from tools.kept import kept  # noqa: E402

CACHE = CHECKOUT / ".cache" / "samples"

TIMEOUT = HANG
"""Seconds that one run of the compiler may take."""

COMMON_FLAGS = (
    "-g",
    "-Wall",
    "-Wextra",
    "-Wa,--gsframe",
    # Without .cfi directives the assembler has nothing to make SFrame from.
    "-fasynchronous-unwind-tables",
    # Some distributions switch it on, and then every frame with an array looks different.
    "-fno-stack-protector",
    # The plugin is the system's, and may want a newer C library than the linker runs with.
    "-fno-use-linker-plugin",
)


class BuildError(Exception):
    """A sample cannot be built; the message names the command and has the compiler's output."""


def build(name: str, abi: str = "amd64", version: int = 3, variant: str = "O2", pie: bool = True) -> Path:
    """Return the path of a sample's executable, and build it where it is missing; its libraries are beside it.

    `name` is a key of SAMPLES, `abi` of ABIS, `variant` of VARIANTS; `version` is that of SFrame. `pie` makes
    no difference to freestanding samples, which never are position-independent. Raises ValueError
    for a build that the catalogue does not have, ToolchainUnavailable where compiler or assembler is missing, and
    BuildError when they fail.
    """
    sample = SAMPLES.get(name)
    if sample is None:
        raise ValueError(f"no such sample: {name}")
    wanted = Build(name, abi, version, variant, pie and not sample.freestanding)
    if abi not in sample.abis or version not in ABIS[abi].versions or variant not in sample.variants_for(abi):
        raise ValueError(f"the catalogue has no such build: {wanted}")
    tools = toolchain(abi, version)
    flags = _flags(ABIS[abi], wanted, tools)
    position = "pie" if wanted.pie else "nopie"
    key = _key(sample, ABIS[abi], flags, describe_cached(tools))
    folder = CACHE / f"{name}-{abi}-v{version}-{variant}-{position}-{key}"

    def make(temporary: Path) -> None:
        for library in sample.libraries:
            _build_library(library, ABIS[abi], flags, temporary)
        _build_executable(sample, ABIS[abi], flags, tools, temporary)

    # The workers of a test run begin with the same samples.
    return kept(folder, make) / name


def toolchain(abi: str, version: int) -> Path:
    """Return the folder with the assembler, linker and readelf for a version of SFrame.

    Raises ToolchainUnavailable if it, or the compiler, cannot be had.
    """
    if shutil.which(ABIS[abi].compiler) is None:
        raise ToolchainUnavailable(
            f"{ABIS[abi].compiler} is not installed (Debian: {ABIS[abi].package}): {abi} stays untested"
        )
    release = next(name for name, written in SFRAME_VERSIONS.items() if written == version)
    return provide(release, ABIS[abi].target)


def run_command(executable: Path, abi: str, *arguments: str) -> list[str]:
    """Return the command that runs a sample: through an emulator where the sample is for another machine.

    Raises ToolchainUnavailable where the emulator is missing.
    """
    emulator = ABIS[abi].emulator
    if emulator and shutil.which(emulator[0]) is None:
        raise ToolchainUnavailable(f"{emulator[0]} is not installed (Debian: qemu-user): {abi} stays untested")
    return [*emulator, str(executable), *arguments]


@functools.cache
def describe_cached(tools: Path) -> str:
    """Return the assembler's description of itself, which is asked for once."""
    return describe(tools)


@functools.cache
def _compiler_version(compiler: str) -> str:
    return _run([compiler, "--version"]).splitlines()[0]


def _flags(abi: Abi, wanted: Build, tools: Path) -> list[str]:
    """Return the flags for every run of the compiler, for compiling and for linking."""
    flags = [*COMMON_FLAGS, *VARIANTS[wanted.variant], *abi.flags]
    if SAMPLES[wanted.name].freestanding:
        flags += ["-ffreestanding", "-nostdlib", "-static"]
    flags += ["-fPIE", "-pie"] if wanted.pie else ["-fno-pie", "-no-pie"]
    return [*flags, f"-B{tools}/"]


def _key(sample: Sample, abi: Abi, flags: list[str], assembler: str) -> str:
    """Return a digest of all inputs of a build."""
    digest = hashlib.sha256()
    # The folder's name is in the debugging information, and this file says how things are run.
    described = [str(SAMPLES_FOLDER), repr(sample), flags, assembler, _compiler_version(abi.compiler)]
    digest.update(json.dumps(described).encode())
    libraries = [source for library in sample.libraries for source in library.sources]
    headers = sorted(path.name for path in SAMPLES_FOLDER.glob("*.h"))
    for source in [*sample.sources, *libraries, *headers, Path(__file__).name]:
        content = (SAMPLES_FOLDER / source).read_bytes()
        digest.update(f"{source} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:12]


def _build_library(library: Library, abi: Abi, flags: list[str], folder: Path) -> None:
    shared = ["-fPIC", "-shared", f"-Wl,-soname,{library.file}"]
    others = [flag for flag in flags if flag not in ("-pie", "-no-pie", "-fPIE", "-fno-pie")]
    _run([abi.compiler, *others, *shared, *library.flags, *library.sources, "-o", str(folder / library.file)])


def _build_executable(sample: Sample, abi: Abi, flags: list[str], tools: Path, folder: Path) -> None:
    sources = list(sample.sources)
    if sample.sframe_only:
        sources = [_without_dwarf_unwinding(source, sample, abi, flags, folder) for source in sources]
    linked = [str(folder / file) for file in sample.linked_libraries]
    link_flags = [*linked, "-Wl,-rpath,$ORIGIN", "-Wl,--build-id", *sample.link_flags]
    if sample.stripped:
        link_flags.append("-Wl,--export-dynamic-symbol=sample_stop")
    executable = str(folder / sample.name)
    _run([abi.compiler, *flags, *sample.compile_flags, *sources, *link_flags, "-o", executable])
    if sample.stripped:
        _run([str(tools / "strip"), executable])


def _without_dwarf_unwinding(source: str, sample: Sample, abi: Abi, flags: list[str], folder: Path) -> str:
    """Return the path of a source as assembly, where the unwind directives go to `.sframe` alone.

    Assembly sources see to that themselves.
    """
    if not source.endswith(".c"):
        return source
    assembly = folder / Path(source).with_suffix(".s").name
    _run([abi.compiler, *flags, *sample.compile_flags, "-S", source, "-o", str(assembly)])
    assembly.write_text(".cfi_sections .sframe\n" + assembly.read_text(encoding="utf-8"), encoding="utf-8")
    return str(assembly)


def _run(command: list[str]) -> str:
    """Return the standard output of a command that is run beside the sources; BuildError if it fails."""
    try:
        done = subprocess.run(command, cwd=SAMPLES_FOLDER, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{' '.join(command)}: {error}") from error
    if done.returncode != 0:
        raise BuildError(f"{' '.join(command)}: exit status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def _report(wanted: Build) -> tuple[bool, str]:
    """Return whether a build succeeded, and its line in the table."""
    kind = "fixed" if not wanted.pie else "pie"
    line = f"{wanted.name:22}{wanted.abi:11}v{wanted.version} {wanted.variant:5}{kind:6}"
    try:
        path = build(wanted.name, wanted.abi, wanted.version, wanted.variant, wanted.pie)
    except (BuildError, ToolchainUnavailable, OSError) as error:
        return False, f"{line}failed: {error}"
    return True, f"{line}{path.relative_to(CHECKOUT)}"


def main() -> int:
    """Build the samples that are asked for, and print a table; the exit status is 1 if one could not be built."""
    parser = argparse.ArgumentParser(description="Build the sample programs.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a sample; default: all, with --all")
    parser.add_argument("--all", action="store_true", help="every sample in every way")
    parser.add_argument("--abi", choices=list(ABIS), help="for this ABI only")
    parser.add_argument("--version", type=int, choices=(1, 2, 3), help="with this version of SFrame only")
    parser.add_argument("--variant", choices=list(VARIANTS), help="in this variant only")
    parser.add_argument("--jobs", type=int, default=2, help="builds at the same time (default: 2)")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in SAMPLES]
    if unknown or not (options.names or options.all):
        samples = f"the samples are {', '.join(SAMPLES)}"
        parser.error(f"no such sample: {unknown[0]}; {samples}" if unknown else f"name some, or --all; {samples}")
    wanted = [
        build
        for build in all_builds()
        if (options.all or build.name in options.names)
        and options.abi in (None, build.abi)
        and options.version in (None, build.version)
        and options.variant in (None, build.variant)
    ]
    started = time.monotonic()
    failures = 0
    with ThreadPoolExecutor(max_workers=options.jobs) as pool:
        for succeeded, line in pool.map(_report, wanted):
            print(line, flush=True)
            failures += not succeeded
    print(f"{len(wanted)} builds, {failures} failed, {time.monotonic() - started:.1f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    exit_with(main)
