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
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:  # when run as a script
    sys.path.insert(0, str(ROOT))

from tools.ending import exit_with  # noqa: E402
from tools.packages import DEMO_PACKAGES, TEST_PACKAGES, Package, install_packages  # noqa: E402
from tools.running import run, say, tail  # noqa: E402

VENV = ROOT / ".venv"
CACHE = ROOT / ".cache"
STAMP = CACHE / "setup.json"

OLDEST_LLDB = CACHE / "lldb-22.1"
"""Separate environment for the oldest LLDB, since one environment can have one version only."""
OLDEST_LLDB_REQUIREMENTS = ("lldb-for-pwndbg==22.1.*",)

DEMO_EXTRAS = ("gdb", "lldb")
TEST_EXTRAS = (*DEMO_EXTRAS, "code", "survey", "cluster", "perf", "kernel", "test", "lint")

PIP_SECONDS = 900


_ENVIRONMENT, _DEBUGGERS = "the Python environment", "GDB and LLDB from PyPI"
"""What the parts of Python are needed for."""


class SetupError(Exception):
    """The set-up failed; the message is one line, or one line and the end of a tool's output."""


class Interpreter(NamedTuple):
    """A Python that can create the environment."""

    path: str
    version: tuple[int, int]
    prefix: str
    has_venv: bool
    has_library: bool  # the wheels' debuggers load libpython, which not every build of Python has

    def needs(self) -> list[Package]:
        """Return the Debian packages of Python's parts that this Python lacks."""
        name = "python{}.{}".format(*self.version)
        parts = []
        if not self.has_venv:
            parts.append(Package(f"{name}-venv", None, _ENVIRONMENT))
        if not self.has_library:
            parts.append(Package(f"lib{name}", None, _DEBUGGERS))
        return parts

    def without(self, lacking: set[str]) -> Interpreter:
        """Return this Python after an installation of what it needs, which left out these packages."""
        left = {package.purpose for package in self.needs() if package.name in lacking}
        return self._replace(has_venv=_ENVIRONMENT not in left, has_library=_DEBUGGERS not in left)


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


def probe(path: str) -> Interpreter | None:
    result = run([path, "-I", "-c", PROBE])
    try:
        executable, version, prefix, has_venv, has_library = json.loads(result.stdout)
    except ValueError:
        return None
    return Interpreter(executable, (version[0], version[1]), prefix, has_venv, has_library)


def choose_interpreter() -> Interpreter:
    """Return the first Python >= 3.10 that is complete, or that Debian's packages complete; else one without libpython.

    :raises SetupError: no Python can make an environment.
    """
    versioned = [f"python3.{minor}" for minor in range(15, 9, -1)]
    names = [sys.executable, "python3", "/usr/bin/python3", *versioned]
    found = [probe(path) for path in dict.fromkeys(filter(None, map(shutil.which, names)))]
    usable = [python for python in found if python is not None and python.version >= (3, 10)]
    for python in usable:
        if not python.needs():
            return python
    if shutil.which("apt-get"):
        for python in usable:
            if python.prefix == "/usr":
                lacking = {package.name for package in install_packages(python.needs())}
                usable.insert(0, python.without(lacking))
                break
    for python in usable:
        if python.has_venv:
            return python
    raise SetupError("no Python >= 3.10 with venv found (Debian: apt install python3-venv libpython3-dev)")


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
    """Create `.venv` with these extras and those that it already has; without debuggers if they cannot start."""
    present = installed_extras()
    if extras <= present:
        return
    interpreter = choose_interpreter()
    if not interpreter.has_library:
        say("no GDB and LLDB from PyPI without a shared libpython; those of the system are used, if there are any")
        extras = extras.difference(DEMO_EXTRAS)
        if extras <= present:
            return
    extras = extras | present
    STAMP.unlink(missing_ok=True)
    python = VENV / "bin" / "python"
    if was_moved() or run([str(python), "-m", "pip", "--version"]).returncode:
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
            make_environment(set(TEST_EXTRAS if for_test else DEMO_EXTRAS))
            if for_test and "lldb" in installed_extras():
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
