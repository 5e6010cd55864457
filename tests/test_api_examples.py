"""The programs of docs/api.md, each extracted, run by itself, and its output compared with what the page shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.hanging import HANG
from tests.missing import toolchain_needed
from tools import binutils

CHECKOUT = Path(__file__).resolve().parents[1]
PAGE = (CHECKOUT / "docs" / "api.md").read_text(encoding="utf-8")
SECONDS = HANG


class Example(NamedTuple):
    """A program on the page and what it prints."""

    title: str
    program: str
    output: str


def examples() -> list[Example]:
    sections = re.split(r"^## (.*)\n", PAGE, flags=re.MULTILINE)[1:]
    found = []
    for title, text in zip(sections[::2], sections[1::2]):
        program, output = re.findall(r"^```(?:python)?\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
        found.append(Example(title, program, output))
    return found


EXAMPLES = examples()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the program that the examples read, made by the commands of the page."""
    found: Path = tmp_path_factory.mktemp("api")
    (source,) = re.findall(r"^```asm\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    (found / "demo.s").write_text(source, encoding="utf-8")
    with toolchain_needed():
        tools = binutils.provide("2.47", "x86_64")
    commands = re.findall(r"^(as|ld) (.*?)(?: +#.*)?$", PAGE, flags=re.MULTILINE)
    assert [name for name, _ in commands] == ["as", "ld"]
    for name, arguments in commands:
        subprocess.run([str(tools / name), *arguments.split()], cwd=found, check=True, timeout=SECONDS)
    return found


def test_the_page_shows_the_six_things() -> None:
    verbs = [example.title.split()[0] for example in EXAMPLES]
    assert verbs == ["List", "Look", "Unwind", "Walk", "Write", "Verify"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)
def test_example_runs(folder: Path, example: Example) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", example.program],
        cwd=folder,
        env={"PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.stdout, done.stderr) == (example.output, "")


def test_examples_use_public_names_only() -> None:
    import sframe_unwind

    for example in EXAMPLES:
        names = set(re.findall(r"\bsf\.(\w+)", example.program))
        assert names
        assert names <= set(sframe_unwind.__all__), example.title
        assert re.findall(r"^(?:import|from) (sframe_unwind\S*)", example.program, re.MULTILINE) == ["sframe_unwind"]


def test_mypy_accepts_the_examples(tmp_path: Path) -> None:
    files = []
    for number, example in enumerate(EXAMPLES):
        files.append(tmp_path / f"example_{number}.py")
        files[-1].write_text(example.program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", tmp_path, *files],
        cwd=tmp_path,
        env={"MYPYPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert [line for line in done.stdout.splitlines() if line.startswith("example_")] == [], done.stdout
