"""Sets up the demonstration, the tests and the benchmarks: Debian packages and `.venv`.

It needs only python3 >= 3.9. It prints one line per action, and nothing if there is nothing to do; `make` runs it each
time.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:  # when run as a script
    sys.path.insert(0, str(ROOT))

from tools.ending import exit_with  # noqa: E402

VENV = ROOT / ".venv"
CACHE = ROOT / ".cache"
STAMP = CACHE / "setup.json"

OLDEST_LLDB = CACHE / "lldb-22.1"
"""Separate environment for the oldest LLDB, since one environment can have one version only."""
OLDEST_LLDB_REQUIREMENTS = ("lldb-for-pwndbg==22.1.*",)

APT_SECONDS = 1200
PIP_SECONDS = 900


class SetupError(Exception):
    """The set-up failed; the message is one line, or one line and the end of a tool's output."""


class Package(NamedTuple):
    """A Debian package, the program that it provides, and the purpose that needs it."""

    name: str
    program: str | None
    purpose: str


DEMO_PACKAGES = (
    Package("gcc", "gcc", "compiling the samples"),
    Package("libc6-dev", None, "compiling the samples"),
)
TEST_PACKAGES = (
    *DEMO_PACKAGES,
    Package("g++", "g++", "C++ samples"),
    Package("make", "make", "the Makefile"),
    Package("gdb", "gdb", "the system's own GDB"),
    Package("gdbserver", "gdbserver", "remote targets"),
    Package("lldb", "lldb", "an LLDB that takes no frames from a plugin"),
    Package("gdb-multiarch", "gdb-multiarch", "AArch64 and s390x in the system's GDB"),
    Package("qemu-user", "qemu-aarch64", "AArch64 and s390x"),
    Package("gcc-aarch64-linux-gnu", "aarch64-linux-gnu-gcc", "AArch64"),
    Package("libc6-dev-arm64-cross", None, "AArch64"),
    Package("gcc-s390x-linux-gnu", "s390x-linux-gnu-gcc", "s390x"),
    Package("libc6-dev-s390x-cross", None, "s390x"),
    Package("lld", "ld.lld", "PLTs of other linkers"),
    Package("mold", "ld.mold", "PLTs of other linkers"),
    Package("bolt-16", "llvm-bolt-16", "programs that are rewritten after linking"),
    Package("patchelf", "patchelf", "the copies that convert makes are rewritten"),
    Package("musl-tools", "musl-gcc", "copies of programs of other C libraries"),
    Package("golang-go", "go", "copies of programs of other compilers"),
    Package("libunwind-dev", None, "code registered at run time"),
    Package("xz-utils", "xz", "binaries from Debian's archive"),
    Package("gpgv", "gpgv", "binaries from Debian's archive"),
    Package("debian-archive-keyring", None, "binaries from Debian's archive"),
    Package("libarchive13", None, "surveying packages and archives"),
    Package("chromium", "chromium", "the page that verify writes"),
    Package("zsh", "zsh", "completion in zsh"),
    Package("fish", "fish", "completion in fish"),
    Package("man-db", "man", "the manual page"),
    Package("llvm", "llvm-strip", "the copies that convert makes are stripped"),
    Package("linux-perf", "perf", "recordings"),
    Package("elfutils", "eu-stack", "the stacks that backtrace is compared with"),
    Package("linux-source-6.1", None, "a Linux kernel"),
    Package("flex", "flex", "a Linux kernel"),
    Package("bison", "bison", "a Linux kernel"),
    Package("bc", "bc", "a Linux kernel"),
    Package("libssl-dev", None, "a Linux kernel"),
    Package("libelf-dev", None, "a Linux kernel"),
    Package("cpio", "cpio", "a Linux kernel"),
    Package("qemu-system-arm", "qemu-system-aarch64", "a Linux kernel"),
)


class Interpreter(NamedTuple):
    """A Python that can create the environment."""

    path: str
    version: tuple[int, int]
    prefix: str
    has_venv: bool
    has_library: bool  # the GDB wheel loads libpython, which not every build of Python has

    def needs(self) -> list[Package]:
        """Return the Debian packages of Python's parts that this Python lacks."""
        name = "python{}.{}".format(*self.version)
        parts = []
        if not self.has_venv:
            parts.append(Package(f"{name}-venv", None, "the Python environment"))
        if not self.has_library:
            parts.append(Package(f"lib{name}", None, "GDB from PyPI"))
        return parts


PROBE = """
import importlib.util, json, os, sys, sysconfig
library = sysconfig.get_config_var("INSTSONAME") or ""
folders = [os.path.join(sys.base_exec_prefix, "lib"), sysconfig.get_config_var("LIBDIR") or ""]
print(json.dumps([
    sys.executable, sys.version_info[:2], sys.base_prefix,
    importlib.util.find_spec("ensurepip") is not None,
    ".so" in library and any(os.path.exists(os.path.join(f, library)) for f in folders),
]))
"""


def say(line: str) -> None:
    print(f"set-up: {line}", flush=True)


def run(command: list[str], seconds: float = 60) -> subprocess.CompletedProcess[str]:
    """Run a tool and capture its output. A tool that is missing or exceeds the time limit counts as failed."""
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, f"no answer within {seconds:.0f} s")
    except OSError as error:
        return subprocess.CompletedProcess(command, 127, str(error))


def tail(output: str, lines: int = 8) -> str:
    """Return the end of a tool's output, without the notices that pip prints after the cause."""
    remarks = ("note:", "hint:", "\N{MULTIPLICATION SIGN}", "╰─>", "│", "[end of output]")
    told = [line.strip() for line in output.splitlines() if line.strip() and not line.strip().startswith(remarks)]
    # Without a network pip tells the cause five times per package, before the package that it then does not find.
    retries = [line for line in told if line.startswith("WARNING: Retrying ")]
    told = [line for line in told if line not in retries[1:]]
    return "\n".join("    " + line for line in told[-lines:])


# --- Debian packages


def missing(packages: list[Package]) -> list[Package]:
    if shutil.which("dpkg-query") is None:
        return [p for p in packages if p.program is not None and shutil.which(p.program) is None]
    query = run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *(p.name for p in packages)])
    installed = {line.split()[0] for line in query.stdout.splitlines() if line.endswith(" installed")}
    return [p for p in packages if p.name not in installed]


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
    # One unknown name would make apt install nothing at all.
    shown = run(["apt-cache", "show", "--no-all-versions", *(p.name for p in packages)]).stdout
    known = {line.split()[1] for line in shown.splitlines() if line.startswith("Package: ")}
    names = [p.name for p in packages if p.name in known]
    if not names:
        return tail(update.stdout, 3) if update.returncode else ""
    install = run([*apt, "install", "--no-install-recommends", *names], APT_SECONDS)
    return tail(install.stdout) if install.returncode else ""


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
        names = " ".join(p.name for p in absent)
        output = f"    an administrator installs them: apt-get install --no-install-recommends {names}"
    else:
        say("installing Debian packages: " + " ".join(p.name for p in absent))
        output = apt_install(absent, prefix)
        absent = missing(packages)
        reason = "apt-get could not install them"
    if absent:
        purposes = "; ".join(dict.fromkeys(p.purpose for p in absent))
        say(f"missing ({reason}): {' '.join(p.name for p in absent)}; not available without: {purposes}")
        if output:
            print(output, flush=True)
    return absent


# --- the Python environment


def probe(path: str) -> Interpreter | None:
    result = run([path, "-I", "-c", PROBE])
    try:
        executable, version, prefix, has_venv, has_library = json.loads(result.stdout)
    except ValueError:
        return None
    return Interpreter(executable, (version[0], version[1]), prefix, has_venv, has_library)


def choose_interpreter() -> Interpreter:
    """Return the first Python >= 3.10 that is complete, or that Debian's packages can complete."""
    versioned = [f"python3.{minor}" for minor in range(15, 9, -1)]
    names = [sys.executable, "python3", "/usr/bin/python3", *versioned]
    completable = None
    for path in dict.fromkeys(filter(None, map(shutil.which, names))):
        found = probe(path)
        if found is None or found.version < (3, 10):
            continue
        if not found.needs():
            return found
        if completable is None and found.prefix == "/usr" and shutil.which("apt-get"):
            completable = found
    if completable is None:
        raise SetupError(
            "no Python >= 3.10 with venv and a shared libpython found, which GDB from PyPI needs "
            "(Debian: apt install python3-venv libpython3-dev)"
        )
    lacking = install_packages(completable.needs())
    if lacking:
        raise SetupError(f"{completable.path} lacks " + " and ".join(p.name for p in lacking))
    return completable


def fingerprint() -> str:
    """Return a description of an environment's inputs. It includes the path, since environments cannot be moved."""
    digest = hashlib.sha256(str(ROOT).encode())
    for path in (ROOT / "pyproject.toml", Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def installed_extras() -> set[str]:
    """Return the extras that are installed in `.venv`; none if its inputs have changed."""
    try:
        stamp = json.loads(STAMP.read_text())
        if stamp["made_from"] == fingerprint() and (VENV / "bin" / "python").exists():
            return set(stamp["extras"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return set()


def was_moved() -> bool:
    """Return whether `.venv` was made somewhere else: its programs start the Python that is there, or none."""
    try:
        activate = (VENV / "bin" / "activate").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return True
    return str(VENV) not in activate


def make_environment(extras: set[str]) -> None:
    """Create `.venv` with these extras and those that it already has."""
    present = installed_extras()
    if extras <= present:
        return
    extras = extras | present
    STAMP.unlink(missing_ok=True)
    python = VENV / "bin" / "python"
    if was_moved() or run([str(python), "-m", "pip", "--version"]).returncode:
        interpreter = choose_interpreter()
        say("making .venv with {} ({}.{})".format(interpreter.path, *interpreter.version))
        make_venv(interpreter.path, VENV)
    wanted = ",".join(sorted(extras))
    say(f"installing sframe-unwind[{wanted}] into .venv")
    pip_install(python, "--editable", f"{ROOT}[{wanted}]")
    for debugger in sorted(extras & {"gdb", "lldb"}):
        check_debugger(VENV / "bin" / debugger)
    # Written last, so that an interrupted set-up is repeated.
    STAMP.write_text(json.dumps({"made_from": fingerprint(), "extras": sorted(extras)}))


def make_oldest_lldb() -> None:
    """Install the oldest LLDB that takes frames from a plugin."""
    wanted = " ".join(OLDEST_LLDB_REQUIREMENTS)
    made_from = f"{ROOT}\n{wanted}\n"
    stamp, python = OLDEST_LLDB / "made-from", OLDEST_LLDB / "bin" / "python"
    if python.exists() and stamp.exists() and stamp.read_text() == made_from:
        return
    say(f"installing {wanted} into {OLDEST_LLDB.relative_to(ROOT)}")
    make_venv(str(VENV / "bin" / "python"), OLDEST_LLDB)
    pip_install(python, *OLDEST_LLDB_REQUIREMENTS)
    check_debugger(OLDEST_LLDB / "bin" / "lldb")
    stamp.write_text(made_from)  # written last, so that an interrupted set-up is repeated


def make_venv(python: str, folder: Path) -> None:
    """Create an empty environment, replacing an existing one."""
    made = run([python, "-m", "venv", "--clear", str(folder)], 120)
    if made.returncode:
        raise SetupError(f"could not make {folder.relative_to(ROOT)}:\n" + tail(made.stdout))


def pip_install(python: Path, *what: str) -> None:
    """Install into the environment of a Python."""
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    installed = run([*pip, *what], PIP_SECONDS)
    if installed.returncode:
        raise SetupError("pip could not install it:\n" + tail(installed.stdout))


def check_debugger(path: Path) -> None:
    """Start GDB once. The first start links libpython into the environment; parallel first starts would conflict."""
    started = run([str(path), "--version"])
    if started.returncode:
        raise SetupError(f"{path.relative_to(ROOT)} does not start:\n" + tail(started.stdout))
    say(f"{path.relative_to(ROOT)} is {started.stdout.splitlines()[0]}")


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Wait for another set-up of this checkout: two parallel runs of make would both write .venv."""
    CACHE.mkdir(exist_ok=True)
    # Not for writing: a checkout that is set up can be used by somebody who may only read it.
    lock = os.open(CACHE / "setup.lock", os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--for", dest="purpose", choices=("demo", "test"), default="test")
    for_test = parser.parse_args().purpose == "test"
    try:
        with one_at_a_time():
            install_packages(list(TEST_PACKAGES if for_test else DEMO_PACKAGES))
            make_environment(
                {"gdb", "lldb", "code", "survey", "cluster", "perf", "kernel", "test"} if for_test else {"gdb", "lldb"}
            )
            if for_test:
                make_oldest_lldb()
    except SetupError as error:
        say(str(error))
        return 1
    except OSError as error:  # mostly because root has set it up
        say(f"{error.filename}: {error.strerror}; does it belong to another user?")
        return 1
    return 0


if __name__ == "__main__":
    exit_with(main)
