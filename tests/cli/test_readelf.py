"""`dump` of real programs, as text and as JSON, equals the output of the readelf of their assembler."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sframe_unwind.cli import main
from tests.cli.text import as_in_2_40, comparable
from tests.hanging import HANG
from tests.missing import toolchain_needed
from tests.pairing import paired
from tests.samples.build import build, toolchain
from tests.samples.catalogue import ABIS, PLAIN_VARIANTS, SAMPLES
from tests.samples.readelf import read_sframe

TIMEOUT = HANG
"""Time limit for a tool, in seconds."""

ASSEMBLY = """\
        .cfi_sections .sframe
        .globl  one, two
        .section .text.one,"ax"
one:    .cfi_startproc
        .long   0, 0, 0
        .cfi_def_cfa_offset {offset}
        .long   0, 0, 0
        .cfi_endproc
        .text
        .skip   32
two:    .cfi_startproc
        .long   0
        .cfi_endproc
three:  .cfi_startproc
        .long   0
        .cfi_def_cfa_offset {offset}
        .long   0
        .cfi_endproc
"""


def sample_builds() -> Iterator[tuple[str, str, int, str]]:
    """Yield all builds for amd64; for the others, every sample in one variant, and the variants that differ in kind.

    These are signed return addresses, and for s390x no optimisation, where functions save registers in registers.
    """
    for name, sample in SAMPLES.items():
        for abi in sample.abis:
            for variant in sample.variants_for(abi):
                if (
                    variant == "O2"
                    or (abi == "amd64" and variant in PLAIN_VARIANTS)
                    or (variant in ("pac", "pacb") and name in ("free_walk", "signals"))
                    or (variant == "O0" and (abi, name) == ("s390x", "stepper"))
                ):
                    for version in ABIS[abi].versions:
                        yield name, abi, version, variant


@pytest.mark.parametrize(("name", "abi", "version", "variant"), list(sample_builds()))
def test_sample(capsys: pytest.CaptureFixture[str], name: str, abi: str, version: int, variant: str) -> None:
    with toolchain_needed():
        executable = build(name, abi, version, variant)
        tools = toolchain(abi, version)
    for file in (executable, *sorted(executable.parent.glob("*.so"))):
        compare(capsys, tools, file, abi, version)


@pytest.mark.parametrize(("abi", "version"), [(abi.name, version) for abi in ABIS.values() for version in abi.versions])
def test_object_file(capsys: pytest.CaptureFixture[str], tmp_path: Path, abi: str, version: int) -> None:
    """Relocations give the starts of its functions."""
    with toolchain_needed():
        tools = toolchain(abi, version)
    file = tmp_path / "object.o"
    flags = ["-EB"] if abi == "aarch64_be" else []
    assembly = ASSEMBLY.format(offset=320 if abi == "s390x" else 16)
    command = [str(tools / "as"), "--gsframe", *flags, "-o", str(file), "-"]
    subprocess.run(command, input=assembly, text=True, check=True, timeout=TIMEOUT)
    if version == 3:
        compare(capsys, tools, file, abi, version)
    # Older versions print every function of an object file as if it started at 0, but they print the relocations.
    found = re.findall(r" \.text\S* \+ (\w+)$", readelf(tools, "-r", "-W", file), re.MULTILINE)
    starts = [int(addend, 16) for addend in found]
    assert main(["dump", "--json", str(file)]) == 0
    (section,) = json.loads(capsys.readouterr().out)["sections"]
    assert [function["start"] for function in section["functions"]] == starts == [0, 32, 36]
    for ours, function in paired(section["functions"], read_sframe(tools, file).functions):
        assert ours["size"] == function.size
        assert [(row["start"] - ours["start"], row["cfa"]) for row in ours["rows"]] == [
            (row.start - function.start, row.cfa) for row in function.rows
        ]


def readelf(tools: Path, *arguments: str | Path) -> str:
    """Return the output of readelf."""
    command = [str(tools / "readelf"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT).stdout


def compare(capsys: pytest.CaptureFixture[str], tools: Path, file: Path, abi: str, version: int) -> None:
    """Compare both forms of the dump of a file with readelf."""
    printed = readelf(tools, "--sframe", file)
    assert main(["dump", str(file)]) == 0
    ours = capsys.readouterr().out
    assert f"    ABI: {abi}\n" in ours
    assert comparable(as_in_2_40(ours) if version == 1 else ours) == comparable(printed)
    assert main(["dump", "--json", str(file)]) == 0
    compare_json(json.loads(capsys.readouterr().out), tools, file, version)


def compare_json(said: dict[str, object], tools: Path, file: Path, version: int) -> None:
    """Compare the JSON with readelf's values."""
    expected = read_sframe(tools, file)
    assert said["file"] == str(file)
    sections = said["sections"]
    assert isinstance(sections, list)
    (section,) = sections
    assert section["version"] == expected.version == version
    assert set(section["flags"]) == expected.flags
    assert len(section["functions"]) == len(expected.functions)
    for ours, function in zip(section["functions"], expected.functions):
        assert (ours["start"], ours["size"]) == (function.start, function.size)
        assert ours["type"] == ("flex" if function.flexible else "default")
        assert ours["pc_type"] == ("mask" if function.mask else "inc")
        # GNU ld 2.44 also gives the first entry of a PLT a repetition size, although its rows do not repeat.
        assert ours["repetition_size"] > 0 or not function.mask
        assert not ours["signal"]
        assert ours["pauth_key"] == ("b" if "B key" in function.attributes else "a")
        assert [row["start"] for row in ours["rows"]] == [row.start for row in function.rows]
        for row, printed in zip(ours["rows"], function.rows):
            ra = "u" if version == 1 and row["ra"] == "f" else row["ra"]  # see as_in_2_40
            assert (row["cfa"], row["fp"], ra) == (printed.cfa, printed.fp, printed.ra)
            assert row["ra_signed"] == row["ra"].endswith("[s]")
            assert row["ra_undefined"] == (row["ra"] == "RA undefined")
