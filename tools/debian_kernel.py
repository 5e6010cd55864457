#!/usr/bin/env python3
"""Fetches kernels of Debian with their debug information, and for AMD64 objtool, which decodes ORC.

    python3 tools/debian_kernel.py [SUITE/ARCHITECTURE...]

They are kept in the checkout's `.cache/debian-kernel`.
"""

from __future__ import annotations

import lzma
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).resolve().parents[1]
if str(CHECKOUT) not in sys.path:  # when run as a script
    sys.path.insert(0, str(CHECKOUT))

from tools.debian import FetchError, download, unpack  # noqa: E402
from tools.ending import exit_with  # noqa: E402
from tools.kept import kept  # noqa: E402
from tools.packages import Package, install_packages  # noqa: E402

CACHE = CHECKOUT / ".cache" / "debian-kernel"
TESTED = ("bookworm/amd64", "trixie/amd64", "bookworm/s390x")
"""Linux 6.1, and 6.12, whose ORC has another layout."""
_FLAVOURS = {"amd64": "cloud-amd64", "s390x": "s390x"}
"""By architecture.  The kernel for virtual machines is a third of the other one."""
_IMAGE = r"linux-image-((\d+\.\d+)[-.+\w]*)-{}-dbg"
_OTHERS = {
    "amd64": (
        *("linux-image-{version}-cloud-amd64-unsigned", "linux-binary-unsigned-{version}-cloud-amd64"),
        *("linux-modules-{version}-cloud-amd64", "linux-kbuild-{version}", "linux-kbuild-{series}"),
    ),
    "s390x": ("linux-image-{version}-s390x",),
}
"""The other packages, of which a release has some."""
_FILES = {
    "-dbg_": ("*/vmlinux*", "./usr/lib/debug/lib/modules/*/kernel/fs/*"),
    "-kbuild-": ("*/objtool*",),
    "": ("*/vmlinuz*", "*/modules/*/kernel/drivers/firmware/qemu_fw_cfg.ko*"),
}
"""What is unpacked of each package, by a part of its file's name."""
_MODULE = "lib/modules/*/kernel/drivers/firmware/qemu_fw_cfg.ko"
_PACKAGES = {
    "amd64": ("qemu-system-x86", "cpio", "makedumpfile"),
    "s390x": ("qemu-system-misc", "cpio", "gcc-s390x-linux-gnu", "libc6-dev-s390x-cross"),
}
"""What booting the kernel needs."""
TIMEOUT = 600
"""Time limit for unpacking a package, in seconds."""


class DebianKernel(NamedTuple):
    """The files."""

    vmlinux: Path
    """With debug information."""
    image: Path
    """The kernel that boots."""
    folder: Path
    """Where the packages are unpacked."""

    @property
    def vmcoreinfo_module(self) -> Path:
        """The module that tells QEMU where the kernel's VMCOREINFO is."""
        return _the(self.folder, _MODULE)

    @property
    def modules(self) -> list[Path]:
        """Modules with debug information, those of file systems."""
        return sorted(self.folder.glob("usr/lib/debug/lib/modules/*/kernel/fs/**/*.ko"))

    @property
    def objtool(self) -> list[str]:
        """The command that runs it with the libraries of its release."""
        loader = _the(self.folder, "root/**/ld-linux-x86-64.so.2")
        folders = {str(path.parent) for path in self.folder.glob("root/**/*.so.*")}
        program = max(self.folder.glob("usr/lib/linux-kbuild-*/tools/objtool/objtool*"))  # the other one is a script
        return [str(loader), "--library-path", ":".join(folders), str(program)]


def debian_kernel(name: str = TESTED[0]) -> DebianKernel:
    """Return the newest kernel of a release for an architecture; fetch it if there is none yet.

    :param name: both, as in :data:`TESTED`.
    :raises FetchError: a package is not available or fails verification.
    """
    suite, _, architecture = name.partition("/")
    missing = install_packages([Package(one, None, "Debian's kernel") for one in _PACKAGES[architecture]])
    if missing:
        raise FetchError(f"missing packages: {' '.join(package.name for package in missing)}")
    folder = kept(CACHE / f"{suite}-{architecture}", lambda folder: _fetch(suite, architecture, folder))
    return DebianKernel(_the(folder, "usr/lib/debug/**/vmlinux*"), _the(folder, "**/vmlinuz*"), folder)


def _the(folder: Path, pattern: str) -> Path:
    return next(path for path in folder.glob(pattern) if path.is_file())


def _fetch(suite: str, architecture: str, folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        for package in download(suite, architecture, partial(_chosen, suite, architecture), Path(temporary)):
            patterns = next(patterns for part, patterns in _FILES.items() if part in package.name)
            _unpack(package, folder, patterns)
            package.unlink()
    for found in folder.glob(f"**/{_MODULE}.xz"):
        target = folder / found.relative_to(folder / "usr" if "usr" in found.parts else folder).with_suffix("")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(lzma.decompress(found.read_bytes()))
    if architecture == "amd64":
        unpack(suite, ["libelf1"], folder)


def _unpack(package: Path, folder: Path, patterns: Sequence[str]) -> None:
    command = 'dpkg-deb --fsys-tarfile "$0" | tar --extract --wildcards --directory "$@"'
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command, str(package), str(folder), *patterns],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    missing = [line for line in done.stderr.splitlines() if "Not found in archive" in line]
    if done.returncode and not missing:
        raise FetchError(f"{package.name}: {done.stderr.strip()}")


def _chosen(suite: str, architecture: str, index: Sequence[Mapping[str, str]]) -> Sequence[str]:
    names = {entry["Package"] for entry in index}
    pattern = _IMAGE.format(_FLAVOURS[architecture])
    found = [match for name in names if (match := re.fullmatch(pattern, name))]
    if not found:
        raise FetchError(f"{suite} has no kernel with debug information for {architecture}")
    newest = max(found, key=lambda match: [int(number) for number in re.findall(r"\d+", match[1])])
    others = [name.format(version=newest[1], series=newest[2]) for name in _OTHERS[architecture]]
    return [newest[0], *(name for name in others if name in names)]


def main() -> int:
    """Fetch the kernels; return exit status 1 if that is not possible."""
    try:
        for name in sys.argv[1:] or TESTED:
            print(debian_kernel(name).folder)
    except (FetchError, subprocess.SubprocessError, OSError) as error:
        print(f"kernel: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    exit_with(main)
