"""The distributions, installed into empty environments of every available Python, and used like by a user."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from sframe_unwind import errors
from tests.elf.objects import ONE, compile_object, tools_for
from tests.hanging import HANG
from tests.missing import absent
from tests.readme import commands
from tests.samples.build import build
from tests.samples.catalogue import ABIS
from tools import latest_python
from tools.debian import FetchError
from tools.latest_python import MINOR as LATEST
from tools.shell_files import MANUAL, PLACES

CHECKOUT = Path(__file__).resolve().parents[2]
PACKAGES = ("sframe_unwind", "gdb_plugin", "lldb_plugin")
SECONDS = HANG
OLDEST, NEWEST = 9, 13
"""Minor versions of Python 3 that a machine for these tests must have.  The latest comes from Debian."""


def run(*command: str | Path, **environment: str) -> str:
    """Return a command's output; it must succeed, and has no access to the checkout or the tests' environment."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        [str(part) for part in command],
        env={**clean, **environment},
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}"
    return done.stdout


def found(minor: int) -> str | None:
    """Return the path of a Python 3; ``None``: it is not installed.  The tests' own always is."""
    if (3, minor) == sys.version_info[:2]:
        return sys.executable
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    # After `su`, both variables can name folders of another user, which are not readable.
    of_pyenv = versions.glob(f"3.{minor}.*/bin") if os.access(versions, os.R_OK | os.X_OK) else ()
    places = [str(folder) for folder in (*of_pyenv, *folders) if "shims" not in folder.parts]
    return shutil.which(f"python3.{minor}", path=os.pathsep.join(places))


def interpreter(minor: int) -> str:
    """Return the path of a Python 3; skip the test without it."""
    why = f"there is no Python 3.{minor}"
    path = found(minor)
    if path is None and minor == LATEST:
        try:
            path = str(latest_python.provide())
        except (FetchError, OSError) as error:
            why = f"Python 3.{minor}: {error}"
    return path or absent(f"{why}: that the wheel runs on it stays untested")


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a folder with the wheel and the source distribution."""
    folder: Path = tmp_path_factory.mktemp("distributions")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=CHECKOUT, check=True, capture_output=True, timeout=SECONDS)
    return folder


def environment(interpreter: str, folder: Path, distribution: Path, *options: str) -> Path:
    """Make an environment with only the distribution and its requirements; return its `bin`."""
    run(interpreter, "-m", "venv", "--without-pip", folder)
    pip = (sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "--quiet")
    run(*pip, *options, distribution)
    return folder / "bin"


def test_the_wheel_has_every_file_of_the_packages(distributions: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *PACKAGES],
        cwd=CHECKOUT,
        check=True,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    ).stdout.split()
    (wheel,) = distributions.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    shared = {name.partition(".data/data/")[2] for name in names if ".data/data/" in name}
    assert shared == {*PLACES.values(), MANUAL}
    shipped = {name for name in names if ".data/" not in name}
    there = {name for name in listed if (CHECKOUT / name).exists()}
    core = {name for name in there if name.startswith("sframe_unwind/")}
    assert shipped == core | {f"sframe_unwind/plugins/{name}" for name in there - core}


@pytest.fixture(scope="module")
def readme(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with the files that the README's commands name."""
    folder: Path = tmp_path_factory.mktemp("readme")
    commands.prepare(folder)
    return folder


@pytest.mark.parametrize("minor", range(OLDEST, LATEST + 1), ids=lambda minor: f"3.{minor}")
def test_the_wheel_runs(tmp_path: Path, distributions: Path, readme: Path, minor: int) -> None:
    (wheel,) = distributions.glob("*.whl")
    programs = environment(interpreter(minor), tmp_path / "environment", wheel)
    check(programs, tmp_path)
    check_every_abi(programs, tmp_path)
    check_readme(programs, readme)


def check_readme(programs: Path, folder: Path) -> None:
    """Run each command of the README; starting debuggers is checked with the plugin above."""
    with commands.environment(folder, programs) as variables:
        for line in commands.shell_commands():
            if line.split()[1] not in ("gdb", "lldb"):
                commands.run_command(line, folder, variables)


@pytest.mark.parametrize("minor", [OLDEST, NEWEST], ids=lambda minor: f"3.{minor}")
def test_the_wheel_runs_with_the_oldest_pyelftools(tmp_path: Path, distributions: Path, minor: int) -> None:
    """This is the minimum version that the wheel requires; otherwise the index chooses the version."""
    (wheel,) = distributions.glob("*.whl")
    metadata = (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
    (oldest,) = re.findall(r'^dependencies = \["pyelftools>=([\d.]+)"\]$', metadata, re.MULTILINE)
    programs = environment(interpreter(minor), tmp_path / "environment", wheel, f"pyelftools=={oldest}")
    shown = run(programs / "python", "-c", "import elftools; print(elftools.__version__)")
    assert shown == f"{oldest}\n"
    check_every_abi(programs, tmp_path)


def check_every_abi(programs: Path, folder: Path) -> None:
    """Read a linked file and an object file of every ABI: sections, symbols, relocations and CFI."""
    for abi in ABIS:
        program = build("free_walk", abi, 3, "O2")
        made = compile_object(tools_for(abi, 3), abi, ONE, folder / f"{abi}.o")
        shown = run(programs / "sframe-unwind", "verify", program, made).splitlines()
        assert len(shown) == 2
        assert all("0 in DWARF only" in line and line.endswith("no disagreements") for line in shown), shown
        assert "0x" in run(programs / "sframe-unwind", "lookup", program, "sample_stop")


def test_the_source_distribution_runs(tmp_path: Path, distributions: Path) -> None:
    (source,) = distributions.glob("*.tar.gz")
    check(environment(sys.executable, tmp_path / "environment", source), tmp_path)


def check(programs: Path, home: Path) -> None:
    """Use the installed package: the command line, and the plugin in the system's GDB by the line that it prints."""
    program = build("sframe_only", "amd64", 3, "O0")
    command = programs / "sframe-unwind"
    assert re.fullmatch(r"sframe-unwind \d+\.\d+\.\d+\n", run(command, "--version"))
    assert "func idx [0]" in run(command, "dump", program)
    assert "no disagreements" in run(command, "verify", build("free_walk", "amd64", 3, "O2"))
    for debugger in ("gdb", "lldb"):
        line = run(command, "plugin", debugger).strip()
        script = Path(line.split(" ", 3 if debugger == "lldb" else 1)[-1].strip('"'))
        assert script.is_file()
        assert script.is_relative_to(programs.parent)
    # As in the README: `sframe-unwind plugin gdb >> ~/.gdbinit`, then a session.
    (home / ".gdbinit").write_text(run(command, "plugin", "gdb"), encoding="utf-8")
    gdb = shutil.which("gdb", path="/usr/bin:/usr/local/bin")
    assert gdb is not None, "the tests' set-up brings the system's GDB"
    typed = [part for line in ("break sample_stop", "run", "bt", "sframe bt") for part in ("-ex", line)]
    shown = run(gdb, "-batch", *typed, program, HOME=str(home))
    assert re.search(r"^#\d+ .* in main ", shown, re.MULTILINE), shown
    assert re.search(r"^#\d+ +0x\w+ +main \(.*\) +sframe$", shown, re.MULTILINE), shown


def test_advice_names_the_packages_of_each_extra() -> None:
    metadata = (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
    for extra, packages in errors.PACKAGES.items():
        wanted = re.search(rf"^{extra} = \[(.*?)\]$", metadata, re.MULTILINE | re.DOTALL)
        assert wanted is not None
        names = re.findall(r'^ *"([a-z-]+)', wanted[1].replace(", ", "\n"), re.MULTILINE)
        assert {re.split("[<>]", package.strip("'"))[0] for package in packages.split()} == set(names)
