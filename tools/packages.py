"""The Debian packages that the demonstration and the tests use: finds those that are missing, and installs them.

It needs only Python, since set-up runs it before there is an environment.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

from tools.running import run, say, tail

ROOT = Path(__file__).resolve().parent.parent

APT_SECONDS = 1200


class Package(NamedTuple):
    """A Debian package, what it provides, and the purpose that needs it."""

    name: str
    provides: str | None
    """A command, a header (``.h``), a library (``.so``), or the path of a file; ``None``: only dpkg knows."""
    purpose: str
    others: tuple[str, ...] = ()
    """The package's names in other releases of Debian, and packages that serve as well."""


DEMO_PACKAGES = (
    Package("gcc", "gcc", "compiling the samples"),
    Package("libc6-dev", "stdio.h", "compiling the samples"),
)
TEST_PACKAGES = (
    *DEMO_PACKAGES,
    Package("g++", "g++", "C++ samples"),
    Package("make", "make", "the Makefile"),
    Package("gdb", "gdb", "the system's own GDB"),
    Package("gdbserver", "gdbserver", "remote targets"),
    Package("lldb", "lldb", "the system's own LLDB"),
    Package("gdb-multiarch", "gdb-multiarch", "AArch64 and s390x in the system's GDB"),
    Package("qemu-user", "qemu-aarch64", "AArch64 and s390x"),
    Package("gcc-aarch64-linux-gnu", "aarch64-linux-gnu-gcc", "AArch64"),
    Package("libc6-dev-arm64-cross", "/usr/aarch64-linux-gnu/include/stdio.h", "AArch64"),
    Package("gcc-s390x-linux-gnu", "s390x-linux-gnu-gcc", "s390x"),
    Package("libc6-dev-s390x-cross", "/usr/s390x-linux-gnu/include/stdio.h", "s390x"),
    Package("lld", "ld.lld", "PLTs of other linkers"),
    Package("mold", "ld.mold", "PLTs of other linkers"),
    # BOLT 17 crashes when it reads static programs of glibc 2.41.
    Package(
        "bolt-16",
        "llvm-bolt-16",
        "programs that are rewritten after linking",
        tuple(f"bolt-{version}" for version in range(19, 24)),
    ),
    # In Debian 12, binutils contains it.
    Package("binutils-gold", "ld.gold", "copies of programs of other linkers"),
    Package("patchelf", "patchelf", "the copies that convert makes are rewritten"),
    Package("musl-tools", "musl-gcc", "copies of programs of other C libraries"),
    Package("golang-go", "go", "copies of programs of other compilers"),
    Package("libunwind-dev", "libunwind-dynamic.h", "code registered at run time"),
    Package("xz-utils", "xz", "binaries from Debian's archive"),
    Package("zstd", "zstd", "sections that are compressed by Zstandard"),
    Package("patch", "patch", "patches of sources by annotate"),
    Package("gpgv", "gpgv", "binaries from Debian's archive", ("sqv",)),
    Package(
        "debian-archive-keyring", "/usr/share/keyrings/debian-archive-keyring.gpg", "binaries from Debian's archive"
    ),
    Package("libarchive13", "libarchive.so.13", "surveying packages and archives", ("libarchive13t64",)),
    Package("chromium", "chromium", "the page that verify writes"),
    Package("zsh", "zsh", "completion in zsh"),
    Package("fish", "fish", "completion in fish"),
    Package("man-db", "man", "the manual page"),
    Package("llvm", "llvm-strip", "the copies that convert makes are stripped"),
    Package("linux-perf", "perf", "recordings"),
    Package("elfutils", "eu-stack", "the stacks that backtrace is compared with"),
    Package("flex", "flex", "a Linux kernel"),
    Package("bison", "bison", "a Linux kernel"),
    Package("bc", "bc", "a Linux kernel"),
    Package("libssl-dev", "openssl/ssl.h", "a Linux kernel"),
    Package("libelf-dev", "libelf.h", "a Linux kernel"),
    Package("cpio", "cpio", "a Linux kernel"),
    Package("qemu-system-arm", "qemu-system-aarch64", "a Linux kernel"),
)


def missing(packages: list[Package]) -> list[Package]:
    """Return the packages that dpkg has not installed and that nothing else on this machine replaces."""
    names = [name for package in packages for name in (package.name, *package.others)]
    installed = set()
    if shutil.which("dpkg-query"):
        query = run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *names])
        installed = {line.split()[0] for line in query.stdout.splitlines() if line.endswith(" installed")}
    else:
        packages = [package for package in packages if package.provides]
    return [
        package
        for package in packages
        if not installed.intersection((package.name, *package.others))
        and not (package.provides and _is_there(package.provides))
    ]


def _is_there(what: str) -> bool:
    """Return whether a command, header, library or path is there; the environment in `.venv` does not count."""
    if what.startswith("/"):
        return Path(what).exists()
    if what.endswith(".h"):
        return _is_in(("/usr/include",), what)
    if ".so" in what:
        return _is_in(("/usr/lib", "/usr/lib64"), what)
    own = str(ROOT / ".venv" / "bin")
    folders = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder != own]
    return shutil.which(what, path=os.pathsep.join(folders)) is not None


def _is_in(folders: tuple[str, ...], name: str) -> bool:
    """Return whether a file is in one of the folders, or in the folder that one of them has for a machine."""
    return any(path for folder in folders for pattern in (name, f"*/{name}") for path in Path(folder).glob(pattern))


def as_root() -> list[str] | None:
    """Return the prefix that runs a command as root, or None if that is not possible."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") is None:
        return None
    # Without a terminal, nobody can enter a password: fail immediately.
    sudo = ["sudo"] if sys.stdin.isatty() else ["sudo", "-n"]
    return sudo if run([*sudo, "true"], 120).returncode == 0 else None


def apt_install(packages: list[Package], prefix: list[str]) -> str:
    """Install those packages that apt knows; return the end of apt's output if that fails."""
    # `env` because sudo drops the variable; the lock may be held by another run of apt.
    apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-yq", "-oDPkg::Lock::Timeout=300"]
    update = run([*apt, "update"], APT_SECONDS)
    names = known_to_apt(packages)
    if not names:
        return tail(update.stdout, 3) if update.returncode else ""
    install = run([*apt, "install", "--no-install-recommends", *names], APT_SECONDS)
    return tail(install.stdout) if install.returncode else ""


def known_to_apt(packages: list[Package]) -> list[str]:
    """Return the first name of each package that apt knows: one unknown name would make apt install nothing at all."""
    names = [name for package in packages for name in (package.name, *package.others)]
    shown = run(["apt-cache", "show", "--no-all-versions", *names]).stdout
    known = {line.split()[1] for line in shown.splitlines() if line.startswith("Package: ")}
    choices = ([name for name in (package.name, *package.others) if name in known] for package in packages)
    return [choice[0] for choice in choices if choice]


def install_packages(packages: list[Package]) -> list[Package]:
    """Install the missing packages; print and return those that are still missing."""
    absent = missing(packages)
    if not absent:
        return []
    prefix = as_root()
    output = ""
    if shutil.which("apt-get") is None:
        reason = "no apt-get"
    elif prefix is None:
        reason = "neither root nor sudo"
        names = " ".join(known_to_apt(absent) or [package.name for package in absent])
        output = f"    an administrator installs them: apt-get install --no-install-recommends {names}"
    else:
        say("installing Debian packages: " + " ".join(package.name for package in absent))
        output = apt_install(absent, prefix)
        absent = missing(packages)
        reason = "apt-get could not install them"
    if absent:
        say(f"missing ({reason}), by what it is needed for:")
        for line in (*_by_purpose(absent), *([output] if output else [])):
            print(line, flush=True)
    return absent


def _by_purpose(packages: list[Package]) -> list[str]:
    """Return a line for each purpose, with the commands and files that it lacks, since other systems name packages
    differently."""
    lines = []
    for purpose in dict.fromkeys(package.purpose for package in packages):
        needed = [package.provides or package.name for package in packages if package.purpose == purpose]
        lines.append(f"    {purpose}: {', '.join(needed)}")
    return lines
