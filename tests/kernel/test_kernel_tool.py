"""The tool that builds the kernel builds it again if, and only if, an input of the build has changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tools import kernel
from tools.packages import TEST_PACKAGES


class Build:
    """Stands for the commands: counts how often they run."""

    def __init__(self) -> None:
        self.count = 0
        self.fails = False

    def __call__(self, _: kernel.Steps, folder: Path) -> None:
        self.count += 1
        (folder / "vmlinux").write_text(str(self.count), encoding="ascii")
        if self.fails:
            raise KeyboardInterrupt


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Build:
    """A build in a temporary folder, with an archive, a compiler and an assembler that the test makes."""
    archive, made = tmp_path / "linux.tar", Build()
    archive.write_bytes(b"source")
    tar = f"tar -xf {archive} --one-top-level=linux"
    steps = kernel.Steps((), (tar, "make CROSS_COMPILE=test- vmlinux"), "", "")
    compiler = tmp_path / "bin/test-gcc"
    compiler.parent.mkdir()
    compiler.write_text("#!/bin/sh\necho version 12", encoding="ascii")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{compiler.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(kernel, "steps", lambda: steps)
    monkeypatch.setattr(kernel, "_assembler", lambda: "assembler 2.47")
    monkeypatch.setattr(kernel, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(kernel, "_build", made)
    return made


def test_it_is_built_once(build: Build) -> None:
    assert kernel.kernel() == kernel.kernel()
    assert build.count == 1


@pytest.mark.usefixtures("build")
def test_other_inputs_make_another_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = [kernel.kernel().vmlinux]
    (tmp_path / "linux.tar").write_bytes(b"another source")
    found.append(kernel.kernel().vmlinux)
    (tmp_path / "bin/test-gcc").write_text("#!/bin/sh\necho version 13", encoding="ascii")
    found.append(kernel.kernel().vmlinux)
    monkeypatch.setattr(kernel, "_assembler", lambda: "assembler 2.48")
    found.append(kernel.kernel().vmlinux)
    assert [path.read_text(encoding="ascii") for path in found] == ["1", "2", "3", "4"]


def test_an_interrupted_build_is_begun_anew(build: Build) -> None:
    build.fails = True
    with pytest.raises(KeyboardInterrupt):
        kernel.kernel()
    build.fails = False
    assert kernel.kernel().vmlinux.read_text(encoding="ascii") == "2"


def test_set_up_installs_its_packages() -> None:
    assert set(kernel.steps().packages) <= {kernel.SOURCE, *(package.name for package in TEST_PACKAGES)}


@pytest.mark.usefixtures("build")
def test_source_that_the_release_does_not_have_is_fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fetched(folder: Path) -> None:
        archive = folder / str(tmp_path / "linux.tar")[1:]
        archive.parent.mkdir(parents=True)
        archive.write_bytes(b"source of another release")

    monkeypatch.setattr(kernel, "CHECKOUT", tmp_path)
    monkeypatch.setattr(kernel, "_fetch_source", fetched)
    (tmp_path / "linux.tar").unlink()
    assert kernel.kernel().vmlinux.exists()
