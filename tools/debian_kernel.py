#!/usr/bin/env python3
"""Fetches a kernel of Debian for AMD64 with its debug information, and objtool, which decodes ORC.

    python3 tools/debian_kernel.py

They are kept in the checkout's `.cache/debian-kernel`. The packages have 310 MB, and what is kept 840 MB.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).resolve().parents[1]
if str(CHECKOUT) not in sys.path:  # when run as a script
    sys.path.insert(0, str(CHECKOUT))

from tools.debian import FetchError, download  # noqa: E402
from tools.kept import kept  # noqa: E402
from tools.setup import Package, install_packages  # noqa: E402

CACHE = CHECKOUT / ".cache" / "debian-kernel"
SUITE = "bookworm"
_IMAGE = re.compile(r"linux-image-(6\.1\.0-(\d+)-cloud-amd64)-dbg")
"""The kernel for virtual machines: it is a fifth of the other one."""
_FILES = {
    "dbg": ("./usr/lib/debug/boot/vmlinux-*", "./usr/lib/debug/lib/modules/*/kernel/fs/*"),
    "unsigned": ("./boot/vmlinuz-*", "./lib/modules/*/kernel/drivers/firmware/qemu_fw_cfg.ko"),
    "kbuild": ("./usr/lib/linux-kbuild-*/tools/objtool/objtool",),
}
"""What is unpacked of each package, by a part of its name."""
_PACKAGES = ("qemu-system-x86", "cpio", "libelf1")
"""What booting the kernel and objtool need."""
TIMEOUT = 600
"""Time limit for unpacking a package, in seconds."""


class DebianKernel(NamedTuple):
    """The files."""

    vmlinux: Path
    """With debug information."""
    image: Path
    """The kernel that boots."""
    objtool: Path
    folder: Path
    """Where the packages are unpacked."""

    @property
    def vmcoreinfo_module(self) -> Path:
        """The module that tells QEMU where the kernel's VMCOREINFO is."""
        return next(self.folder.glob("lib/modules/*/kernel/drivers/firmware/qemu_fw_cfg.ko"))

    @property
    def modules(self) -> list[Path]:
        """Modules with debug information, those of file systems."""
        return sorted(self.folder.glob("usr/lib/debug/lib/modules/*/kernel/fs/**/*.ko"))


def debian_kernel() -> DebianKernel:
    """Return the newest kernel of the release; fetch it if there is none yet.

    :raises FetchError: a package is not available or fails verification.
    """
    missing = install_packages([Package(name, None, "Debian's kernel") for name in _PACKAGES])
    if missing:
        raise FetchError(f"missing packages: {' '.join(package.name for package in missing)}")
    folder = kept(CACHE / SUITE, _fetch)

    def the(pattern: str) -> Path:
        return next(folder.glob(pattern))

    objtool = the("usr/lib/linux-kbuild-*/tools/objtool/objtool")
    return DebianKernel(the("usr/lib/debug/boot/vmlinux-*"), the("boot/vmlinuz-*"), objtool, folder)


def _fetch(folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        for package in download(SUITE, "amd64", _chosen, Path(temporary)):
            patterns = next(patterns for part, patterns in _FILES.items() if part in package.name)
            unpack = 'dpkg-deb --fsys-tarfile "$0" | tar --extract --wildcards --directory "$@"'
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", unpack, str(package), str(folder), *patterns],
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
            )
            if done.returncode:
                raise FetchError(f"{package.name}: {done.stderr.strip()}")
            package.unlink()


def _chosen(index: Sequence[Mapping[str, str]]) -> Sequence[str]:
    found = [match for entry in index if (match := _IMAGE.fullmatch(entry["Package"]))]
    if not found:
        raise FetchError(f"{SUITE} has no kernel with debug information")
    version = max(found, key=lambda match: int(match[2]))[1]
    return [f"linux-image-{version}-dbg", f"linux-image-{version}-unsigned", "linux-kbuild-6.1"]


def main() -> int:
    """Fetch the kernel; return exit status 1 if that is not possible."""
    try:
        print("\n".join(map(str, debian_kernel())))
    except (FetchError, subprocess.SubprocessError, OSError) as error:
        print(f"kernel: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
