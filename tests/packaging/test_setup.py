"""The messages of set-up if it cannot do its work, and the files that it does not keep."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tools import setup


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
    monkeypatch.setattr(setup, "missing", lambda packages: packages)
    monkeypatch.setattr(setup, "as_root", lambda: None)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    absent = setup.install_packages(list(setup.DEMO_PACKAGES))
    assert absent == list(setup.DEMO_PACKAGES)
    assert capsys.readouterr().out.splitlines() == [
        "set-up: missing (neither root nor sudo): gcc libc6-dev; not available without: compiling the samples",
        "    an administrator installs them: apt-get install --no-install-recommends gcc libc6-dev",
    ]


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


def test_pip_without_a_network_tells_the_cause_once() -> None:
    retries = [f"WARNING: Retrying (Retry(total={left})) after 'name resolution'" for left in (4, 3, 2, 1, 0)]
    output = "\n".join([*retries, "ERROR: No matching distribution found for hatchling", "note: this is from pip"])
    assert setup.tail(output).splitlines() == [f"    {retries[0]}", f"    {output.splitlines()[-2]}"]
