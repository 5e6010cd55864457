#!/usr/bin/env python3
"""Builds the Linux kernel with SFrame that tests boot, by the commands of docs/kernel.md.

    python3 tools/kernel.py

It is kept in `.cache/kernel` of the checkout.  A change of an input makes another kernel there.  The inputs are the
commands, the files of the guest, the source of Linux, the compiler and the assembler.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).resolve().parents[1]
if str(CHECKOUT) not in sys.path:  # when run as a script
    sys.path.insert(0, str(CHECKOUT))

from tools.binutils import ToolchainUnavailable, describe, provide  # noqa: E402
from tools.debian import FetchError, download  # noqa: E402
from tools.ending import exit_with  # noqa: E402
from tools.kept import kept  # noqa: E402
from tools.packages import TEST_PACKAGES, install_packages  # noqa: E402

CACHE = CHECKOUT / ".cache" / "kernel"
PAGE = CHECKOUT / "docs" / "kernel.md"
GUEST = CHECKOUT / "lab" / "kernel" / "guest"
_MAKE = """\
make -s -C linux ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu- LD=$PWD/.cache/binutils/2.47/bin/aarch64/ld \
KCFLAGS="-B$PWD/.cache/binutils/2.47/bin/aarch64/ -Wa,--gsframe" KBUILD_MODPOST_WARN=1"""
MODULE = f"{_MAKE} modules_prepare scripts_gdb && cp -r lab/kernel/guest/probe linux && {_MAKE} M=probe modules"
"""Builds two modules, and the commands that Linux has for GDB (``lx-symbols``)."""
SOURCE = "linux-source-6.1"
"""The package with the source.  Debian 12 alone has it; elsewhere its file is fetched from there."""
SUITE = "bookworm"
TREE = "linux"
"""The folder that the commands make in the current one."""
TIMEOUT = 3600
"""Time limit for one command, in seconds: the kernel takes three minutes of one processor that does nothing else."""


class KernelUnavailable(Exception):  # noqa: N818 - it names a state of the machine
    """The kernel cannot be built; the message is one line."""


class Steps(NamedTuple):
    """The commands of the page."""

    packages: tuple[str, ...]
    build: tuple[str, ...]
    boot: str
    debug: str


class Built(NamedTuple):
    """The files that a session needs."""

    vmlinux: Path
    image: Path
    initrd: Path
    folder: Path
    """For AArch64 with the modules of the guest (``.ko``), and Linux's commands for GDB, ``vmlinux-gdb.py``."""


def steps() -> Steps:
    """Return the commands of the page: packages, set-up, building, booting, debugging."""
    block = re.search(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    if block is None:
        raise KernelUnavailable(f"{PAGE}: no commands")
    packages, _, *build, boot, debug = block[1].splitlines()
    return Steps(tuple(packages.split()[2:]), tuple(build), boot, debug)


def kernel() -> Built:
    """Return the kernel; build it if necessary.

    :raises KernelUnavailable: a package is missing, or a command fails.
    """
    found = steps()
    missing = install_packages([package for package in TEST_PACKAGES if package.name in found.packages])
    if missing:
        raise KernelUnavailable(f"missing packages: {' '.join(package.name for package in missing)}")
    found = _with_source(found)
    inputs = (*found.build, MODULE, _assembler(), _compiler(found), _source(found))
    digest = hashlib.sha256("\n".join(inputs).encode())
    for path in sorted(path for path in GUEST.rglob("*") if path.is_file()):
        digest.update(path.read_bytes())
    folder = kept(CACHE / f"arm64-{digest.hexdigest()[:12]}", lambda folder: _build(found, folder))
    return Built(folder / "vmlinux", folder / "Image", folder / "initrd", folder)


def _with_source(found: Steps) -> Steps:
    """Return the commands with the path of an archive of the source that is there; fetch it if necessary."""
    archive = _archive(found)
    if Path(archive).exists():
        return found
    try:
        fetched = kept(CHECKOUT / ".cache" / SOURCE, _fetch_source) / archive[1:]
    except (FetchError, subprocess.SubprocessError) as error:
        raise KernelUnavailable(f"{SOURCE} of {SUITE}: {error}") from error
    return found._replace(build=tuple(line.replace(archive, shlex.quote(str(fetched))) for line in found.build))


def _fetch_source(folder: Path) -> None:
    """Unpack the package of the source into a folder."""
    (package,) = download(SUITE, "amd64", lambda _: [SOURCE], folder)
    subprocess.run(["dpkg-deb", "--extract", str(package), str(folder)], check=True, timeout=TIMEOUT)
    package.unlink()


def _archive(found: Steps) -> str:
    """Return the path of the archive of the source in the commands."""
    (unpacking,) = (line for line in found.build if line.startswith("tar "))
    return shlex.split(unpacking)[2]


def _assembler() -> str:
    """Return the version of the assembler; fetch it if necessary."""
    try:
        return describe(provide("2.47", "aarch64"))
    except ToolchainUnavailable as error:
        raise KernelUnavailable(str(error)) from error


def _compiler(found: Steps) -> str:
    """Return the version of the compiler of the commands, in the compiler's words."""
    (program,) = {f"{prefix}gcc" for command in found.build for prefix in re.findall(r"CROSS_COMPILE=(\S+)", command)}
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True, timeout=60).stdout


def _source(found: Steps) -> str:
    """Return what tells versions of the kernel's source apart: size and time of its archive."""
    archive = _archive(found)
    status = Path(archive).stat()
    return f"{archive} {status.st_size} {status.st_mtime_ns}"


def _build(found: Steps, folder: Path) -> None:
    # Linux's make refuses a path with a space or a colon.
    with tempfile.TemporaryDirectory(dir=None if re.search(r"[\s:]", str(folder)) else folder) as temporary:
        here = Path(temporary)
        for name in ("lab", ".cache"):  # the commands are for the checkout
            (here / name).symlink_to(CHECKOUT / name)
        for command in (*found.build, MODULE):
            print(f"kernel: {command}", flush=True)
            _run(command, here)
        tree = here / TREE
        modules = (tree / "probe").glob("*.ko")
        for path in (tree / "vmlinux", tree / "arch/arm64/boot/Image", tree / "initrd", *modules):
            shutil.copyfile(path, folder / path.name)
        shutil.copytree(tree / "scripts/gdb", folder / "scripts/gdb", symlinks=False)
        shutil.copyfile(tree / "scripts/gdb/vmlinux-gdb.py", folder / "vmlinux-gdb.py")


def _run(command: str, folder: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise KernelUnavailable(f"{command}: {lines[-1]}")


def main() -> int:
    """Build the kernel; return exit status 1 if that is not possible."""
    try:
        print("\n".join(map(str, kernel())))
    except (KernelUnavailable, subprocess.SubprocessError, OSError) as error:
        print(f"kernel: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    exit_with(main)
