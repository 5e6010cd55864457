"""The samples have the properties that the catalogue claims, according to readelf, and they run."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.hanging import HANG
from tests.missing import toolchain_needed
from tests.samples import readelf
from tests.samples.build import build, run_command, toolchain
from tests.samples.catalogue import ABIS, SAMPLES
from tests.samples.readelf import Function, Row, SFrame, Symbol

RUN_TIMEOUT = HANG
"""Seconds that a sample may run, under an emulator too."""

SIGNALS = ("raise", "kill", "fault", "altstack", "above", "entry")

ABI_VERSIONS = [(abi.name, version) for abi in ABIS.values() for version in abi.versions]
LIBC_VERSIONS = [(name, version) for name, version in ABI_VERSIONS if ABIS[name].has_libc]
SIGNING = [(name, version) for name, version in ABI_VERSIONS if ABIS[name].signs]
AMD64 = [("amd64", version) for version in (1, 2, 3)]


@dataclass(frozen=True)
class Built:
    """A sample, with readelf's output about it."""

    path: Path
    tools: Path
    sframe: SFrame
    symbols: dict[str, Symbol]

    def function(self, name: str) -> Function:
        """Return the FDE of a function; fail the test if there is none."""
        found = self.sframe.at(self.symbols[name].address)
        assert found is not None, f"{self.path}: no FDE for {name}"
        return found

    def rows(self, name: str) -> tuple[Row, ...]:
        return self.function(name).rows


def built(name: str, abi: str, version: int, variant: str = "O2", pie: bool = True) -> Built:
    """Build a sample; skip the test where there is no toolchain for it."""
    with toolchain_needed():
        path = build(name, abi, version, variant, pie)
        tools = toolchain(abi, version)
    return Built(path, tools, readelf.read_sframe(tools, path), readelf.read_symbols(tools, path))


def run(path: Path, abi: str, *arguments: str) -> str:
    """Return the output of a sample; fail the test unless it ends with status 0 in time."""
    with toolchain_needed():
        command = run_command(path, abi, *arguments)
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_TIMEOUT, check=False)
    assert done.returncode == 0, f"{command}: exit status {done.returncode}: {done.stderr}"
    return done.stdout


def sample_builds() -> Iterator[tuple[str, str, int, str]]:
    """Yield every sample for every ABI and version, in one of its variants."""
    for name, sample in SAMPLES.items():
        for abi in sample.abis:
            for version in ABIS[abi].versions:
                yield name, abi, version, "O2"


@pytest.mark.parametrize(("name", "abi", "version", "variant"), list(sample_builds()))
def test_runs_and_has_its_version(name: str, abi: str, version: int, variant: str) -> None:
    sample = built(name, abi, version, variant)
    assert sample.sframe.version == version
    assert sample.sframe.functions
    output = run(sample.path, abi)
    assert output.count("\n") == 1
    assert output.startswith(Path(SAMPLES[name].sources[0]).stem)


@pytest.mark.parametrize("variant", ["O0", "Os", "fp"])
@pytest.mark.parametrize("abi", ABIS)
def test_variants_and_fixed_addresses_run(abi: str, variant: str) -> None:
    name = "stepper" if ABIS[abi].has_libc else "free_walk"
    sample = built(name, abi, 3, variant, pie=False)
    # A program at a fixed address has no symbol below the page zero and those that follow.
    assert sample.symbols["sample_stop"].address > 0x10000
    run(sample.path, abi)


@pytest.mark.parametrize(("abi", "version"), ABI_VERSIONS)
def test_stop_is_described_wherever_it_is_called(abi: str, version: int) -> None:
    name = "recursion" if ABIS[abi].has_libc else "free_walk"
    assert built(name, abi, version).rows("sample_stop")


@pytest.mark.parametrize(("abi", "version"), LIBC_VERSIONS)
def test_leaf_has_one_row(abi: str, version: int) -> None:
    (row,) = built("leaf", abi, version).rows("leaf_without_stack")
    assert row.cfa == {"amd64": "sp+8", "aarch64": "sp+0", "s390x": "sp+160"}[abi]
    assert row.fp == "u"


@pytest.mark.parametrize(("abi", "version"), LIBC_VERSIONS)
def test_recursion_is_as_deep_as_asked(abi: str, version: int) -> None:
    sample = built("recursion", abi, version)
    assert run(sample.path, abi, "20000") == "recursion 1\n"


@pytest.mark.parametrize("function", ["with_alloca", "with_vla"])
@pytest.mark.parametrize(("abi", "version"), LIBC_VERSIONS)
def test_dynamic_frames_are_found_from_fp(abi: str, version: int, function: str) -> None:
    rows = built("dynamic", abi, version).rows(function)
    assert any(row.cfa.startswith("fp+") for row in rows)


@pytest.mark.parametrize(("abi", "version"), LIBC_VERSIONS)
def test_offsets_take_one_two_and_four_bytes(abi: str, version: int) -> None:
    sample = built("offsets", abi, version)
    scale = 8 if abi == "s390x" else 1
    largest = {
        function: max(abs(number) for row in sample.rows(function) for number in row.offsets) // scale
        for function in ("small_frame", "medium_frame", "large_frame")
    }
    assert largest["small_frame"] <= 127
    assert largest["medium_frame"] in range(128, 32768)
    assert largest["large_frame"] > 32767


@pytest.mark.parametrize(("abi", "version"), LIBC_VERSIONS)
def test_row_addresses_take_one_two_and_four_bytes(abi: str, version: int) -> None:
    sample = built("sizes", abi, version)
    last = {
        name: sample.rows(name)[-1].start - sample.function(name).start
        for name in ("short_function", "long_function", "huge_function")
    }
    assert last["short_function"] < 256
    assert last["long_function"] in range(256, 65536)
    assert last["huge_function"] >= 65536


@pytest.mark.parametrize(("abi", "version"), LIBC_VERSIONS)
def test_last_call_ends_where_its_neighbour_starts(abi: str, version: int) -> None:
    sample = built("noreturn", abi, version)
    last_call = sample.symbols["last_call"]
    neighbour = sample.symbols["neighbour"].address
    # GCC 16 aligns the functions of s390x to 8 bytes, whatever the options are.
    alignment = 8 if abi == "s390x" and neighbour % 8 == 0 else 1
    assert 0 <= neighbour - (last_call.address + last_call.size) < alignment
    assert sample.rows("last_call")[-1].cfa != sample.rows("neighbour")[0].cfa
    objdump = subprocess.run(
        [str(sample.tools / "objdump"), "-d", "-j", ".text", "--disassemble=last_call", str(sample.path)],
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT,
        check=True,
    ).stdout
    assert re.search(r"\b(call|bl|brasl)\b.*<leave>$", objdump.strip()), objdump


@pytest.mark.parametrize("how", SIGNALS)
@pytest.mark.parametrize(("abi", "version"), [("amd64", 3), ("aarch64", 3), ("s390x", 3)])
def test_signals_come_every_way(abi: str, version: int, how: str) -> None:
    assert run(built("signals", abi, version).path, abi, how) == f"signals {how} 4\n"


@pytest.mark.parametrize(("abi", "version"), AMD64)
def test_plt_repeats_every_entry(abi: str, version: int) -> None:
    sample = built("plt", abi, version)
    plt = readelf.read_sections(sample.tools, sample.path)[".plt"]
    first, others = sample.sframe.at(plt.address), sample.sframe.at(plt.address + 16)
    assert first is not None
    assert others is not None
    assert [row.cfa for row in first.rows] == ["sp+16", "sp+24"]
    assert not first.mask
    assert others.mask
    assert [(row.start, row.cfa) for row in others.rows] == [(0, "sp+8"), (11, "sp+16")]


@pytest.mark.parametrize(("abi", "version"), AMD64)
@pytest.mark.parametrize("name", ["plt", "plt_ibt"])
def test_function_called_and_taken_is_in_plt_got(name: str, abi: str, version: int) -> None:
    sample = built(name, abi, version)
    stubs = readelf.read_sections(sample.tools, sample.path)[".plt.got"]
    found = sample.sframe.at(stubs.address)
    if version == 1:
        assert found is None
    else:
        # The stub is a bare jump, where the CFA is sp+8: the linker is wrong.
        assert found is not None
        assert found.mask
        assert [row.cfa for row in found.rows] == ["sp+16"]


@pytest.mark.parametrize(("abi", "version"), AMD64)
def test_plt_sec(abi: str, version: int) -> None:
    sample = built("plt_ibt", abi, version)
    sections = readelf.read_sections(sample.tools, sample.path)
    found = sample.sframe.at(sections[".plt.sec"].address)
    assert found is not None
    if version == 1:
        # binutils 2.40 takes the first stub for the one that calls the dynamic linker: the linker is wrong.
        assert not found.mask
        assert [row.cfa for row in found.rows] == ["sp+16", "sp+24"]
    else:
        assert found.mask
        assert [row.cfa for row in found.rows] == ["sp+8"]


@pytest.mark.parametrize("library", ["libplugin_one.so", "libplugin_two.so"])
@pytest.mark.parametrize(("abi", "version"), LIBC_VERSIONS)
def test_plugins_have_their_functions_in_one_place(abi: str, version: int, library: str) -> None:
    sample = built("dlopen", abi, version)
    path = sample.path.with_name(library)
    address = readelf.read_symbols(sample.tools, path, dynamic=True)["plugin_run"].address
    other = readelf.read_symbols(sample.tools, sample.path.with_name("libplugin_one.so"), dynamic=True)
    assert address == other["plugin_run"].address
    function = readelf.read_sframe(sample.tools, path).at(address)
    assert function is not None
    assert max(number for row in function.rows for number in row.offsets) >= {"amd64": 48}.get(abi, 64)


@pytest.mark.parametrize("variant", ["O2", "Os"])
def test_tail_calls_are_in_the_debugging_information(variant: str) -> None:
    sample = built("tail_inline", "amd64", 3, variant)
    text = subprocess.run(
        [str(sample.tools / "readelf"), "--debug-dump=info", str(sample.path)],
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT,
        check=True,
    ).stdout
    assert "DW_AT_call_tail_call" in text
    assert "DW_TAG_inlined_subroutine" in text


@pytest.mark.parametrize("function", ["aligned_local", "aligned_entry"])
@pytest.mark.parametrize(("abi", "version"), AMD64)
def test_realigned_frames_are_flexible_or_missing(abi: str, version: int, function: str) -> None:
    sample = built("realign", abi, version)
    found = sample.sframe.at(sample.symbols[function].address)
    if version < 3:
        assert found is None
    else:
        assert found is not None
        assert found.flexible
        assert "r10+0" in [row.cfa for row in found.rows]
        assert any(row.cfa.startswith("(fp-") for row in found.rows)


@pytest.mark.parametrize(("abi", "version"), LIBC_VERSIONS)
def test_sframe_is_the_only_unwind_data(abi: str, version: int) -> None:
    sample = built("sframe_only", abi, version)
    ranges = readelf.read_dwarf_ranges(sample.tools, sample.path)
    for name in ("sample_stop", "compare", "innermost", "with_alloca", "descend", "main"):
        assert sample.rows(name)
        assert not any(sample.symbols[name].address in covered for covered in ranges)


@pytest.mark.parametrize(("abi", "version"), LIBC_VERSIONS)
def test_stripped_sample_keeps_its_stop(abi: str, version: int) -> None:
    sample = built("sframe_only_stripped", abi, version)
    assert "innermost" not in sample.symbols
    dynamic = readelf.read_symbols(sample.tools, sample.path, dynamic=True)
    assert sample.sframe.at(dynamic["sample_stop"].address) is not None
    sections = readelf.read_sections(sample.tools, sample.path)
    assert ".sframe" in sections
    assert not {".symtab", ".debug_info", ".debug_frame"} & set(sections)


@pytest.mark.parametrize(("abi", "version"), ABI_VERSIONS)
def test_freestanding_has_no_dwarf_unwind_section(abi: str, version: int) -> None:
    sample = built("free_sframe_only", abi, version)
    assert not {".eh_frame", ".debug_frame"} & set(readelf.read_sections(sample.tools, sample.path))


@pytest.mark.parametrize(("abi", "version"), ABI_VERSIONS)
def test_outermost_frame(abi: str, version: int) -> None:
    (row,) = built("free_walk", abi, version).rows("_start")
    # Earlier assemblers ignore .cfi_undefined.
    assert (row.ra == "RA undefined") == (version == 3)


@pytest.mark.parametrize("variant", ["pac", "pacb"])
@pytest.mark.parametrize(("abi", "version"), SIGNING)
def test_return_addresses_are_signed(abi: str, version: int, variant: str) -> None:
    sample = built("free_walk", abi, version, variant)
    function = sample.function("descend")
    assert any(row.ra.endswith("[s]") for row in function.rows)
    assert ("B key" in function.attributes) == (variant == "pacb")
    run(sample.path, abi)


@pytest.mark.parametrize("variant", ["O2", "Os"])
def test_s390x_leaf_saves_in_floating_point_registers(variant: str) -> None:
    sample = built("free_leaf", "s390x", 3, variant)
    function = sample.function("busy_leaf")
    assert function.flexible
    inside = sample.symbols["sample_in_leaf"].address
    row = next(row for row in reversed(function.rows) if row.start <= inside)
    # DWARF registers 16 to 31 are the floating-point registers.
    assert (row.cfa, row.fp, row.ra) == ("sp+160", "r17+0", "r16+0")
