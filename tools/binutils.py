#!/usr/bin/env python3
"""The assemblers and linkers that the tests compare against: GNU binutils 2.40, 2.44 and 2.47.

Each writes another version of SFrame: 1, 2 and 3. They come from Debian's releases, are unpacked into the
checkout's `.cache` folder, and run there with the C library that they were built with; the system stays as it
is. `provide` gives a folder for gcc's `-B`.

    python3 tools/binutils.py [--version V ...] [--target T ...]
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
if str(CHECKOUT) not in sys.path:  # when run as a script
    sys.path.insert(0, str(CHECKOUT))

from tools.debian import FetchError, unpack  # noqa: E402

SUITES = {"2.40": ("bookworm",), "2.44": ("trixie",), "2.47": ("testing", "sid")}
"""The Debian releases that carry each version; 2.47 stands for itself and whatever follows it there."""

SFRAME_VERSIONS = {"2.40": 1, "2.44": 2, "2.47": 3}
"""The version of SFrame that each version of binutils writes."""

TARGETS = ("x86_64", "aarch64", "s390x")
"""Target machines; aarch64 serves both byte orders."""

TOOLS = ("as", "ld", "readelf", "objdump", "objcopy", "strip", "nm")

CACHE = CHECKOUT / ".cache" / "binutils"

STAMP = "complete"
"""A file that a toolchain's folder gets last, when every assembler in it has run."""

TIMEOUT = 60
"""Seconds that one run of an assembler may take."""

# $0 is absolute or has a slash, since gcc runs the tools by the path that -B gave. Nothing is forked here: a build
# runs these scripts by the hundred.
WRAPPER = """\
#!/bin/sh
root="${{0%/*}}/../../root"
exec "$root/{loader}" --library-path "{libraries}" "$root/usr/bin/{triplet}-{tool}" "$@"
"""


class ToolchainUnavailable(Exception):  # noqa: N818 - it names a state of the machine
    """A toolchain cannot be had here; the message is one line and says what stays untested."""


def provide(version: str, target: str) -> Path:
    """The folder with the tools of binutils `version` for `target`, fetched if it is not there yet.

    `version` is a key of SUITES, `target` one of TARGETS. Where the packages cannot be had, the system's own
    assembler serves if it writes the same version of SFrame. Raises ToolchainUnavailable if it does not, and
    ValueError for a version or target that is none.
    """
    if version not in SUITES or target not in TARGETS:
        raise ValueError(f"no such toolchain: binutils {version} for {target}")
    reason = _obtain(version)
    if reason is not None:
        return _system_toolchain(version, target, reason)
    return CACHE / version / "bin" / target


def describe(directory: Path) -> str:
    """What the assembler in a toolchain's directory says it is, in one line; OSError if it does not run."""
    done = subprocess.run(
        [str(directory / "as"), "--version"], capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    if done.returncode != 0:
        raise OSError(f"{directory / 'as'}: exit status {done.returncode}: {done.stderr.strip()}")
    return done.stdout.splitlines()[0]


def sframe_version(assembler: Path) -> int | None:
    """The version of SFrame that an assembler writes, found by trying it; None if it writes none."""
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
    """Have a version in the cache; the reason if that cannot be.

    Asked once, since without a network each answer takes its time, and a run of the tests asks hundreds of times.
    """
    stamp = CACHE / version / STAMP
    try:
        if not stamp.exists():
            with _lock(version):
                if not stamp.exists():
                    _fetch(version)
    except (FetchError, OSError) as error:
        return str(error)
    return None


@contextlib.contextmanager
def _lock(version: str) -> Iterator[None]:
    """Held by one process at a time; the others wait and then find the finished toolchain."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{version}.lock").open("w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch(version: str) -> None:
    """Put the toolchains of one version, for all targets, into the cache; FetchError if no release has them."""
    # The lock is ours: what lies here is left over from a process that was killed.
    for leftover in CACHE.glob(f"{version}.partial-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    reasons = []
    for suite in SUITES[version]:
        temporary = Path(tempfile.mkdtemp(prefix=f"{version}.partial-", dir=CACHE))
        temporary.chmod(0o755)
        try:
            _build(version, suite, temporary)
            shutil.rmtree(CACHE / version, ignore_errors=True)
            temporary.rename(CACHE / version)
            return
        except FetchError as error:
            reasons.append(f"{suite}: {error}")
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    raise FetchError("; ".join(reasons))


def _build(version: str, suite: str, folder: Path) -> None:
    """Unpack one release's toolchains into `folder`, wrap, try and stamp them; FetchError if they are not right."""
    unpack(suite, [f"binutils-{_triplet(target).replace('_', '-')}" for target in TARGETS], folder)
    for target in TARGETS:
        directory = folder / "bin" / target
        _write_wrappers(folder / "root", target, directory)
        try:
            found = describe(directory)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise FetchError(str(error)) from error
        if not _is_wanted(found.split()[-1], version):
            raise FetchError(f"the release has {found}, not {version}")
    _flush(folder)
    with (folder / STAMP).open("w", encoding="ascii") as file:
        file.write(f"{suite}: {describe(folder / 'bin' / TARGETS[0])}\n")
        file.flush()
        os.fsync(file.fileno())


def _is_wanted(found: str, version: str) -> bool:
    """Whether a release's version will do: 2.40 and 2.44 must be met, 2.47 is the least that writes version 3."""
    upstream = [int(part) for part in found.split(".")[:2]]
    wanted = [int(part) for part in version.split(".")]
    return upstream >= wanted if SFRAME_VERSIONS[version] == 3 else upstream == wanted


def _write_wrappers(root: Path, target: str, directory: Path) -> None:
    """Scripts that run the tools below `root` with its own loader and libraries; FetchError if one is missing."""
    # Releases before 13 keep the C library in /lib, later ones in /usr/lib.
    libraries = [part for part in ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu") if (root / part).is_dir()]
    loaders = [f"{part}/ld-linux-x86-64.so.2" for part in libraries]
    loader = next((path for path in loaders if (root / path).exists()), None)
    if loader is None:
        raise FetchError("the packages have no x86-64 loader")
    directory.mkdir(parents=True)
    for tool in TOOLS:
        if not (root / "usr/bin" / f"{_triplet(target)}-{tool}").exists():
            raise FetchError(f"the packages have no {_triplet(target)}-{tool}")
        script = directory / tool
        path = ":".join(f"$root/{part}" for part in libraries)
        script.write_text(WRAPPER.format(loader=loader, libraries=path, triplet=_triplet(target), tool=tool))
        script.chmod(0o755)


def _flush(folder: Path) -> None:
    """Have everything below `folder` on the disk, so that the stamp cannot outlive what it vouches for."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                os.fsync(file.fileno())


def _system_toolchain(version: str, target: str, reason: str) -> Path:
    """The system's own tools, if its assembler writes the SFrame version of binutils `version`.

    Raises ToolchainUnavailable, naming `reason`, what the system's assembler writes, and what stays untested.
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
    """Provide the toolchains asked for; exit status 1 when one of them is not to be had."""
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
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
