"""The messages of set-up if it cannot do its work, and the files that it does not keep."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tools import packages, setup
from tools.packages import Package
from tools.running import tail


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an empty folder that set-up takes for the checkout."""
    for name, value in (("ROOT", "."), ("VENV", ".venv"), ("CACHE", ".cache"), ("STAMP", ".cache/setup.json")):
        monkeypatch.setattr(setup, name, tmp_path / value)
    monkeypatch.setattr(sys, "argv", ["setup.py"])
    return tmp_path


def test_without_root_it_says_what_an_administrator_installs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(packages, "missing", lambda packages: packages)
    monkeypatch.setattr(packages, "as_root", lambda: None)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    needed = [*packages.DEMO_PACKAGES, Package("no-such-package", "tool", "comparing")]
    monkeypatch.setattr(packages, "known_to_apt", lambda packages: [package.name for package in packages])
    assert packages.install_packages(needed) == needed
    assert capsys.readouterr().out.splitlines() == [
        "set-up: missing (neither root nor sudo), by what it is needed for:",
        "    compiling the samples: gcc, stdio.h",
        "    comparing: tool",
        "    an administrator installs them: apt-get install --no-install-recommends gcc libc6-dev no-such-package",
    ]


def test_without_apt_what_is_missing_is_found_by_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No package is known to be installed there; headers, libraries and files are looked for in their folders."""
    (tmp_path / "cc").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    there, absent = Package("compiler", "cc", ""), Package("debugger", "no-such-command", "")
    files = [Package("file", str(tmp_path / "cc"), ""), Package("no-file", str(tmp_path / "ld"), "")]
    unknown = Package("python-part", None, "")
    header, library = Package("no-header", "no-such.h", ""), Package("no-library", "libno-such.so.1", "")
    found = packages.missing([there, absent, *files, unknown, header, library])
    assert [package.name for package in found] == ["debugger", "no-file", "no-header", "no-library"]


def test_environment_of_the_checkout_is_not_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / ".venv" / "bin"
    folder.mkdir(parents=True)
    (folder / "gdb").touch(0o755)
    monkeypatch.setattr(packages, "ROOT", tmp_path)
    monkeypatch.setenv("PATH", str(folder))
    assert packages.missing([Package("gdb", "gdb", "")])


def test_package_with_another_name_in_another_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Debian 13 has libarchive13t64 in place of libarchive13, and apt checks signatures with sqv there."""
    for command, says in (("dpkg-query", "sqv installed\n"), ("apt-cache", "Package: new\nVersion: 1\n")):
        (tmp_path / command).write_text(f"#!/bin/sh\ncat <<.\n{says}.\n", encoding="ascii")
        (tmp_path / command).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    renamed = Package("old", "no-such-command", "", ("new",))
    checking = Package("gpgv", "no-such-command", "", ("sqv",))
    assert packages.missing([renamed, checking]) == [renamed]
    assert packages.known_to_apt([renamed]) == ["new"]


def test_checkout_that_cannot_be_written_is_one_line(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / ".cache").touch()  # so that not even root can make a folder there
    assert setup.main() == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert line == f"set-up: {checkout / '.cache'}: File exists; does it belong to another user?"


def test_lock_of_another_user_is_no_obstacle(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (checkout / ".cache").mkdir()
    (checkout / ".cache" / "setup.lock").touch(0o444)
    for name in ("install_packages", "make_environment", "make_oldest_lldb"):
        monkeypatch.setattr(setup, name, lambda *_: None)
    assert setup.main() == 0


def test_environment_is_not_kept_where_the_tree_was_moved(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert setup.was_moved()
    activate = checkout / ".venv" / "bin" / "activate"
    activate.parent.mkdir(parents=True)
    activate.write_text(f'VIRTUAL_ENV="{checkout}/.venv"\n')
    assert not setup.was_moved()
    moved = checkout.rename(checkout.with_name("moved"))
    monkeypatch.setattr(setup, "VENV", moved / ".venv")
    assert setup.was_moved()


def test_python_without_its_library_gets_what_needs_no_debugger(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A minimal Debian 13 has no libpython, which the debuggers of PyPI load; an ordinary user cannot install it."""
    python = setup.probe(sys.executable)
    assert python is not None
    lacking = python._replace(prefix="/usr", has_library=False)
    installed: list[str] = []
    monkeypatch.setattr(setup, "probe", lambda _: lacking)
    monkeypatch.setattr(setup, "install_packages", list)
    monkeypatch.setattr(setup, "make_venv", lambda *_: None)
    monkeypatch.setattr(setup, "pip_install", lambda *words: installed.append(words[-1]))
    (checkout / ".cache").mkdir()
    (checkout / "pyproject.toml").touch()
    setup.make_environment(set(setup.TEST_EXTRAS))
    extras = installed[0].partition("[")[2].rstrip("]").split(",")
    assert sorted({*extras, "gdb", "lldb"}) == sorted(setup.TEST_EXTRAS)
    assert "without a shared libpython" in capsys.readouterr().out


def test_pip_without_a_network_tells_the_cause_once() -> None:
    retries = [f"WARNING: Retrying (Retry(total={left})) after 'name resolution'" for left in (4, 3, 2, 1, 0)]
    output = "\n".join([*retries, "ERROR: No matching distribution found for hatchling", "note: this is from pip"])
    assert tail(output).splitlines() == [f"    {retries[0]}", f"    {output.splitlines()[-2]}"]
