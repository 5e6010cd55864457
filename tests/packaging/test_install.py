"""The distributions, installed into empty environments of every available Python, and used as by a user."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.samples.build import build

CHECKOUT = Path(__file__).resolve().parents[2]
PACKAGES = ("sframe_unwind", "gdb_plugin", "lldb_plugin")
SECONDS = 110
OLDEST, NEWEST = (3, 9), (3, 13)


def run(*command: str | Path, **environment: str) -> str:
    """What a command prints; it must succeed, and does not see the checkout or the environment of the tests."""
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


def interpreters() -> Iterator[str]:
    """The Pythons that the project is for, as far as they are here; the tests' own always is."""
    yield sys.executable
    own = sys.version_info[:2]
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    for minor in range(OLDEST[1], NEWEST[1] + 1):
        if (3, minor) != own:
            versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
            found = [*versions.glob(f"3.{minor}.*/bin"), *folders]
            candidates = (folder / f"python3.{minor}" for folder in found if "shims" not in folder.parts)
            yield from (str(path) for path in [next(filter(Path.exists, candidates), None)] if path)


def version_of(interpreter: str) -> str:
    return run(interpreter, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution."""
    folder: Path = tmp_path_factory.mktemp("distributions")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=CHECKOUT, check=True, capture_output=True, timeout=SECONDS)
    return folder


def environment(interpreter: str, folder: Path, distribution: Path, *options: str) -> Path:
    """An environment with nothing but the distribution and what it asks for; returns its `bin`."""
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
        shipped = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert shipped == {name for name in listed if (CHECKOUT / name).exists()}


@pytest.mark.parametrize("interpreter", list(interpreters()), ids=version_of)
def test_the_wheel_runs(tmp_path: Path, distributions: Path, interpreter: str) -> None:
    (wheel,) = distributions.glob("*.whl")
    programs = environment(interpreter, tmp_path / "environment", wheel)
    check(programs, tmp_path)


def test_the_source_distribution_runs(tmp_path: Path, distributions: Path) -> None:
    (source,) = distributions.glob("*.tar.gz")
    check(environment(sys.executable, tmp_path / "environment", source), tmp_path)


def check(programs: Path, home: Path) -> None:
    """Use what is installed: the command line, and the plugin in the system's GDB by the line printed for it."""
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
    # As the README has it: `sframe-unwind plugin gdb >> ~/.gdbinit`, then a session.
    (home / ".gdbinit").write_text(run(command, "plugin", "gdb"), encoding="utf-8")
    gdb = shutil.which("gdb", path="/usr/bin:/usr/local/bin")
    assert gdb is not None, "the tests' set-up brings the system's GDB"
    typed = [part for line in ("break sample_stop", "run", "bt", "sframe bt") for part in ("-ex", line)]
    shown = run(gdb, "-batch", *typed, program, HOME=str(home))
    assert "stack frames are unwound from SFrame" in shown
    assert re.search(r"^#\d+ .* in main ", shown, re.MULTILINE), shown
    assert re.search(r"^#\d+ +0x\w+ +main \(.*\) +sframe$", shown, re.MULTILINE), shown
