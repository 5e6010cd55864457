#!/usr/bin/env python3
"""Provides the assemblers and linkers for the tests: GNU binutils 2.40, 2.44 and 2.47, which write SFrame 1, 2 and 3.

The tools come from Debian's releases. They are unpacked into the checkout's `.cache` folder and run there with their
own C library, so the system is not changed. `provide` returns a folder for gcc's `-B`.

    python3 tools/binutils.py [--version V ...] [--target T ...]
"""

from __future__ import annotations

import argparse
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
if str(CHECKOUT) not in sys.path:  # when run as a script
    sys.path.insert(0, str(CHECKOUT))

from tools.debian import FetchError, unpack  # noqa: E402
from tools.ending import exit_with  # noqa: E402
from tools.kept import kept  # noqa: E402

SUITES = {"2.40": ("bookworm",), "2.44": ("trixie",), "2.47": ("testing", "sid")}
"""The Debian releases that contain each version. 2.47 stands for 2.47 and later versions."""

SFRAME_VERSIONS = {"2.40": 1, "2.44": 2, "2.47": 3}
"""The SFrame version that each binutils version writes."""

TARGETS = ("x86_64", "aarch64", "s390x")
"""Target machines. aarch64 is used for both byte orders."""

TOOLS = ("as", "ld", "readelf", "objdump", "objcopy", "strip", "nm")

CACHE = CHECKOUT / ".cache" / "binutils"

TIMEOUT = 60
"""Time limit for one run of an assembler, in seconds."""

# $0 contains a slash, since gcc runs the tools by the path that -B gives. The script starts no other process, since a
# build runs it hundreds of times.
WRAPPER = """\
#!/bin/sh
root="${{0%/*}}/../../root"
exec "$root/{loader}" --library-path "{libraries}" "$root/usr/bin/{triplet}-{tool}" {first}"$@"
"""


FIRST = "first.s"
"""Name of the source that an assembler reads before its other files."""

NO_ATTRIBUTES = """\
.macro .aeabi_subsection name:vararg
.endm
.macro .aeabi_attribute tag:vararg
.endm
"""
"""Macros without effect for directives that GCC 16 writes for AArch64, and that assemblers before 2.45 lack.

The directives list the file's pointer authentication and branch targets for the linker; older compilers list nothing.
"""


class ToolchainUnavailable(Exception):  # noqa: N818 - it names a state of the machine
    """A toolchain is not available; the message is one line and says what is not tested without it."""


def provide(version: str, target: str) -> Path:
    """Return the folder with the tools of binutils `version` for `target`; fetch them if necessary.

    `version` is a key of SUITES, `target` one of TARGETS. If the packages are not available, the system's
    assembler is used if it writes the same SFrame version. Raises ToolchainUnavailable if it does not, and ValueError
    for an unknown version or target.
    """
    if version not in SUITES or target not in TARGETS:
        raise ValueError(f"no such toolchain: binutils {version} for {target}")
    reason = _obtain(version)
    if reason is not None:
        return _system_toolchain(version, target, reason)
    return CACHE / version / "bin" / target


def describe(directory: Path) -> str:
    """Return the version line of the assembler in a folder; raises OSError if it does not run."""
    done = subprocess.run(
        [str(directory / "as"), "--version"], capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    if done.returncode != 0:
        raise OSError(f"{directory / 'as'}: exit status {done.returncode}: {done.stderr.strip()}")
    return done.stdout.splitlines()[0]


def sframe_version(assembler: Path) -> int | None:
    """Return the SFrame version that an assembler writes, found by a trial run; None if it writes no SFrame."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "probe.o"
        try:
            done = subprocess.run(
                [str(assembler), "--gsframe", "-o", str(result), "-"],
                input=b".cfi_startproc\nnop\n.cfi_endproc\n",
                capture_output=True,
                timeout=TIMEOUT,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        content = result.read_bytes() if done.returncode == 0 else b""
    for magic in (b"\xe2\xde", b"\xde\xe2"):
        for version in SFRAME_VERSIONS.values():
            if magic + bytes([version]) in content:
                return version
    return None


def _triplet(target: str) -> str:
    return f"{target}-linux-gnu"


@functools.cache
def _obtain(version: str) -> str | None:
    """Fetch a version into the cache; return the reason if that fails.

    The result is cached: without a network each attempt is slow, and a test run makes hundreds of them.
    """
    reasons = []
    for suite in SUITES[version]:
        try:
            kept(CACHE / version, functools.partial(_build, version, suite))
            return None
        except FetchError as error:
            reasons.append(f"{suite}: {error}")
        except OSError as error:
            return str(error)
    return "; ".join(reasons)


def _build(version: str, suite: str, folder: Path) -> None:
    """Unpack the toolchains of one release into `folder`, and try them; raises FetchError if they are unsuitable."""
    unpack(suite, [f"binutils-{_triplet(target).replace('_', '-')}" for target in TARGETS], folder)
    for target in TARGETS:
        directory = folder / "bin" / target
        lacks_attributes = target == "aarch64" and SFRAME_VERSIONS[version] < 3
        _write_wrappers(folder / "root", target, directory, NO_ATTRIBUTES if lacks_attributes else "")
        try:
            found = describe(directory)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise FetchError(str(error)) from error
        if not _is_wanted(found.split()[-1], version):
            raise FetchError(f"the release has {found}, not {version}")
    _flush(folder)


def _is_wanted(found: str, version: str) -> bool:
    """Return whether a version is suitable: exactly 2.40 or 2.44, or at least 2.47."""
    upstream = [int(part) for part in found.split(".")[:2]]
    wanted = [int(part) for part in version.split(".")]
    return upstream >= wanted if SFRAME_VERSIONS[version] == 3 else upstream == wanted


def _write_wrappers(root: Path, target: str, directory: Path, source: str) -> None:
    """Write scripts that run the tools below `root` with its loader and libraries; FetchError if one is missing.

    :param source: what the assembler reads before its other files.
    """
    # Releases before 13 keep the C library in /lib, later ones in /usr/lib.
    libraries = [part for part in ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu") if (root / part).is_dir()]
    loaders = [f"{part}/ld-linux-x86-64.so.2" for part in libraries]
    loader = next((path for path in loaders if (root / path).exists()), None)
    if loader is None:
        raise FetchError("the packages have no x86-64 loader")
    directory.mkdir(parents=True)
    if source:
        (directory / FIRST).write_text(source)
    for tool in TOOLS:
        if not (root / "usr/bin" / f"{_triplet(target)}-{tool}").exists():
            raise FetchError(f"the packages have no {_triplet(target)}-{tool}")
        script = directory / tool
        path = ":".join(f"$root/{part}" for part in libraries)
        first = f'"${{0%/*}}/{FIRST}" ' if source and tool == "as" else ""
        names = {"loader": loader, "libraries": path, "triplet": _triplet(target), "tool": tool, "first": first}
        script.write_text(WRAPPER.format(**names))
        script.chmod(0o755)


def _flush(folder: Path) -> None:
    """Flush everything below `folder` to disk before the marker file is written."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                os.fsync(file.fileno())


def _system_toolchain(version: str, target: str, reason: str) -> Path:
    """Return the system's tools, if the assembler writes the SFrame version of binutils `version`.

    Raises ToolchainUnavailable with `reason`, the SFrame version of the system's assembler, and what is not tested.
    """
    wanted = SFRAME_VERSIONS[version]
    assembler = shutil.which(f"{_triplet(target)}-as") or (shutil.which("as") if _is_native(target) else None)
    written = sframe_version(Path(assembler)) if assembler else None
    if assembler is None or written != wanted:
        has = "there is no assembler" if assembler is None else f"{assembler} writes {_name(written)}"
        raise ToolchainUnavailable(
            f"binutils {version} for {target}: {reason}; {has}: SFrame version {wanted} stays untested"
        )
    directory = CACHE / "system" / target
    directory.mkdir(parents=True, exist_ok=True)
    for tool in TOOLS:
        found = shutil.which(str(Path(assembler).with_name(Path(assembler).name[: -len("as")] + tool)))
        temporary = directory / f".{tool}.{os.getpid()}"
        if found is not None:
            temporary.symlink_to(found)
            temporary.replace(directory / tool)
    return directory


def _is_native(target: str) -> bool:
    return os.uname().machine == target


def _name(version: int | None) -> str:
    return "no SFrame" if version is None else f"SFrame version {version}"


def main() -> int:
    """Provide the requested toolchains; return exit status 1 if one of them is not available."""
    parser = argparse.ArgumentParser(description="Provide the assemblers that write the versions of SFrame.")
    parser.add_argument("--version", action="append", choices=list(SUITES), help="default: all")
    parser.add_argument("--target", action="append", choices=TARGETS, help="default: all")
    options = parser.parse_args()
    status = 0
    for version in options.version or SUITES:
        for target in options.target or TARGETS:
            try:
                directory = provide(version, target)
                print(f"{version} {target:8} {directory}  {describe(directory)}", flush=True)
            except (ToolchainUnavailable, OSError, subprocess.TimeoutExpired) as error:
                print(f"{version} {target:8} unavailable: {error}", file=sys.stderr, flush=True)
                status = 1
    return status


if __name__ == "__main__":
    exit_with(main)
