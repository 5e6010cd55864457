"""`gdb` and `lldb`: the program that they start, its arguments, and its state."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from sframe_unwind.cli import debugger
from sframe_unwind.errors import FileError
from sframe_unwind.machine.personality import lldb_settings
from tests.hanging import HANG
from tests.lldb.debuggers import find_without_provider
from tests.missing import absent

CHECKOUT = Path(__file__).resolve().parents[2]
TIMEOUT = HANG
"""Time limit for a debugger, in seconds."""

FAKE = """\
#!/bin/sh
for argument; do echo "<$argument>"; done
grep SigIgn /proc/self/status
exit 7
"""

LOADED = {
    "gdb": ["<-iex>", f"<source {CHECKOUT}/gdb_plugin/sframe_gdb.py>"],
    "lldb": [
        word
        for line in (*lldb_settings(), f'command script import "{CHECKOUT}/lldb_plugin/sframe_lldb.py"')
        for word in ("<--one-line-before-file>", f"<{line}>")
    ],
}


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in another process."""
    return subprocess.run(
        [sys.executable, "-m", "sframe_unwind", *arguments],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    """Write a debugger that prints its arguments and the signals that it ignores, and ends with status 7."""
    program = tmp_path / "a debugger"
    program.write_text(FAKE)
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("name", ["gdb", "lldb"])
@pytest.mark.parametrize(
    "arguments", [[], ["--args", "program", "-x", "two words"], ["-h", "x"], ["--", "program"], ["--version"]]
)
def test_arguments_and_status_are_the_debuggers(fake: Path, name: str, arguments: list[str]) -> None:
    done = run(name, *arguments, **{f"SFRAME_UNWIND_{name.upper()}": str(fake)})
    *said, ignored = done.stdout.splitlines()
    assert said == [*LOADED[name], *(f"<{argument}>" for argument in arguments)]
    assert done.returncode == 7
    # Python ignores signal 13, SIGPIPE; the debugger and its programs must not.
    assert not int(ignored.split()[1], 16) & 1 << 12


@pytest.mark.parametrize("name", ["gdb", "lldb"])
def test_debugger_that_is_not_there(name: str) -> None:
    variable = f"SFRAME_UNWIND_{name.upper()}"
    done = run(name, **{variable: "/nonexistent/debugger"})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"sframe-unwind: /nonexistent/debugger: no such debugger ({variable} names it)\n"


def test_debugger_that_cannot_start(fake: Path) -> None:
    fake.write_text(f"#!{fake.parent}/no-interpreter\n")
    done = run("gdb", SFRAME_UNWIND_GDB=str(fake))
    assert done.returncode == 2
    assert done.stderr == f"sframe-unwind: {fake}: cannot start: No such file or directory\n"


def test_no_debugger_at_all(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    monkeypatch.delenv("SFRAME_UNWIND_GDB", raising=False)
    assert debugger.start(debugger.GDB, []) == 2
    assert capsys.readouterr().err == (
        "sframe-unwind: gdb: no such debugger (pip install gdb-for-pwndbg installs it)\n"
    )


def test_plugin_that_is_not_there() -> None:
    with pytest.raises(FileError, match=r"gdb_plugin/absent\.py: the plugin is not installed"):
        debugger.start(debugger.GDB._replace(plugin="gdb_plugin/absent.py"), [])


@pytest.mark.parametrize("name", ["gdb", "lldb"])
def test_line_for_the_init_file(name: str) -> None:
    done = run("plugin", name)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"<{done.stdout.strip()}>" == LOADED[name][-1]


def test_debugger_of_this_environment_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started = []
    monkeypatch.setattr(os, "execve", lambda path, arguments, _: started.append((path, arguments)))
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.delenv("SFRAME_UNWIND_GDB", raising=False)
    for folder in ("environment/bin", "path"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "gdb").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    for prefix, expected in (("environment", "environment/bin/gdb"), ("elsewhere", "path/gdb")):
        monkeypatch.setattr(sys, "prefix", str(tmp_path / prefix))
        monkeypatch.setattr(sys, "base_prefix", "/usr")
        debugger.start(debugger.GDB, ["x"])
        path = str(tmp_path / expected)
        line = f"source {CHECKOUT}/gdb_plugin/sframe_gdb.py"
        assert started.pop() == (path, [path, "-iex", line, "x"])


def test_real_gdb() -> None:
    if shutil.which("gdb", path=str(Path(sys.prefix) / "bin")) is None and shutil.which("gdb") is None:
        absent("there is no gdb: that it takes these arguments stays untested")
    done = run("gdb", "-nx", "-batch", "-ex", "show args", "-ex", "help sframe", "--args", sys.executable, "-x", "y z")
    assert done.returncode == 0
    assert 'is "-x y\\ z".' in done.stdout
    assert "sframe status" in done.stdout, done.stderr


def test_lldb_of_debian_finds_its_own_python_module() -> None:
    """Without its module, LLDB 14 of Debian 12 prints tracebacks instead of loading a script."""
    lldb = ("lldb", "--no-lldbinit", "--batch", "-o", "sframe status")
    done = run(*lldb, SFRAME_UNWIND_LLDB=find_without_provider(), PYTHONPATH="")
    assert (done.returncode, done.stderr) == (0, "")
    assert "this LLDB has no scripted frame provider" in done.stdout


def test_lldb_of_debian_in_an_activated_virtual_environment(tmp_path: Path) -> None:
    """LLDB's Python then has the packages of that environment, and not those of Debian, which LLDB's package needs."""
    venv.create(tmp_path, symlinks=True)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    lldb = ("lldb", "--no-lldbinit", "--batch", "-o", "sframe status")
    done = run(*lldb, SFRAME_UNWIND_LLDB=find_without_provider(), PYTHONPATH="", PATH=path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "this LLDB has no scripted frame provider" in done.stdout


def test_python_modules_that_the_user_asks_for_stay(tmp_path: Path) -> None:
    program, package = tmp_path / "bin" / "lldb", tmp_path / "lib" / "python3.9" / "dist-packages" / "lldb"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$PYTHONPATH"\n')
    program.chmod(0o755)
    assert run("lldb", SFRAME_UNWIND_LLDB=str(program), PYTHONPATH=str(CHECKOUT)).stdout == f"{CHECKOUT}\n"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    done = run("lldb", SFRAME_UNWIND_LLDB=str(program), PYTHONPATH=str(CHECKOUT))
    assert done.stdout == f"{package.parent}:{CHECKOUT}:/usr/lib/python3/dist-packages\n"
