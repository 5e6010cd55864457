"""SFrame made from DWARF CFI and from other versions, compared with readelf and `verify`; the results are also run."""

from __future__ import annotations

import subprocess
from itertools import islice
from pathlib import Path

import pytest

from lab.convert.libraries import can_load, convert, system_files
from lab.convert.samples import account, total
from sframe_unwind import elf
from sframe_unwind.cli import main
from sframe_unwind.consumers import CONSUMERS
from sframe_unwind.convert.consumers import READERS, target_for
from sframe_unwind.convert.kinds import DWARF, SFRAME
from sframe_unwind.convert.to_sframe import OBJECT, SECTION, Wanted, convert_to_sframe
from sframe_unwind.errors import EncodeError
from sframe_unwind.lint.profiles import PROFILES
from sframe_unwind.sframe.constants import FdeType, PcType
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Function
from sframe_unwind.verify import verify
from tests.hanging import HANG
from tests.samples import readelf
from tests.samples.build import build, run_command, toolchain
from tests.samples.catalogue import ABIS, SAMPLES, all_builds

CELLS = [(abi, version) for abi in ABIS for version in ABIS[abi].versions]
SECONDS = HANG


def functions(path: Path) -> list[Function]:
    return [function for section in elf.load(path, lazy=False) for function in section.functions()]


@pytest.mark.parametrize(("abi", "version"), CELLS)
def test_samples_there_and_back(abi: str, version: int) -> None:
    builds = [
        wanted
        for wanted in all_builds()
        if (wanted.abi, wanted.version) == (abi, version)
        and wanted.variant in ("O2", "pac")
        and (wanted.pie or SAMPLES[wanted.name].freestanding)
    ]
    whole = total(list(map(account, builds)))
    assert whole.errors == []
    assert whole.compared > 80
    reasons = {reason.partition(": ")[2] for reason in whole.losses}
    known = {
        "amd64": {"CFA r10+0, expected SP or FP plus an offset"},
        "s390x": {"a signal trampoline, which version 2 cannot mark"},
    }
    undefined = "the return address is undefined, for which version 2 has no row"
    assert reasons - known.get(abi, set()) <= {undefined}


@pytest.mark.parametrize("abi", list(ABIS))
def test_readelf_reads_the_copy_and_it_runs(tmp_path: Path, abi: str) -> None:
    name = "callback" if ABIS[abi].has_libc else "free_walk"
    program, copy = build(name, abi, 3, "O2"), tmp_path / "copy"
    convert_to_sframe(program, copy, Wanted(source=DWARF))
    shown, ours = readelf.read_sframe(toolchain(abi, 3), copy), functions(copy)
    assert shown.version == 3
    assert shown.flags == {"FDE_SORTED", "FDE_FUNC_START_PCREL"}
    assert [(one.start, one.size, len(one.rows)) for one in shown.functions] == [
        (one.start, one.fde.size, one.fde.num_rows) for one in ours
    ]
    runs = [
        subprocess.run(run_command(path, abi), capture_output=True, timeout=SECONDS, check=False)
        for path in (program, copy)
    ]
    assert (runs[0].returncode, runs[0].stdout) == (runs[1].returncode, runs[1].stdout)
    assert verify(copy).dwarf_only == 0


def test_plt_takes_one_mask_fde(tmp_path: Path) -> None:
    program, copy = build("plt", "amd64", 3), tmp_path / "copy"
    sections = readelf.read_sections(toolchain("amd64", 3), program)
    convert_to_sframe(program, copy, Wanted(source=DWARF))
    (mask,) = (one for one in functions(copy) if one.fde.pc_type is PcType.MASK)
    plt = sections[".plt"]
    assert (mask.start, mask.end, mask.fde.repetition_size) == (plt.address + 16, plt.address + plt.size, 16)


def test_flexible_rows_where_they_are_needed_and_not_for_who_refuses_them(tmp_path: Path) -> None:
    program, output = build("realign", "amd64", 2), tmp_path / "copy"
    whole = convert_to_sframe(program, output, Wanted(source=DWARF))
    assert whole.is_whole
    assert any(one.fde.fde_type is FdeType.FLEX for one in functions(output))
    report = convert_to_sframe(program, output, Wanted(source=DWARF, consumers=("linux-kernel",)))
    assert all(one.fde.fde_type is FdeType.DEFAULT for one in functions(output))
    assert [named.loss.reason.partition(": ")[2] for named in report.losses] == [
        "CFA r10+0, expected SP or FP plus an offset; it takes flexible rows"
    ] * len(report.losses)
    assert whole.functions - report.functions == len(report.losses) > 0
    with pytest.raises(EncodeError, match="linux-user does not read version 2, but 3"):
        convert_to_sframe(program, output, Wanted(version=2, consumers=("linux-user",)))
    with pytest.raises(EncodeError, match="no version of SFrame is read by linux-user and glibc alike"):
        convert_to_sframe(program, output, Wanted(consumers=("linux-user", "glibc")))
    assert "SFrame version 2" in convert_to_sframe(program, output, Wanted(consumers=("spec", "glibc"))).made


def test_readers_are_those_that_lint_knows() -> None:
    assert [profile.consumer for profile in PROFILES.values()] == list(CONSUMERS.values())
    assert set(CONSUMERS) - set(READERS) == {"libsframe-2.40", "libsframe-2.44"}
    for name, reader in READERS.items():
        for version in reader.versions:
            if version > 1:
                assert target_for([name], version).version == version


@pytest.mark.parametrize("version", [2, 3])
def test_section_and_object_file(tmp_path: Path, version: int) -> None:
    program = build("stepper", "amd64", 3)
    section, objects = tmp_path / "section", tmp_path / "stepper.o"
    report = convert_to_sframe(program, section, Wanted(version, form=SECTION, source=SFRAME, address=0x8000))
    assert convert_to_sframe(program, objects, Wanted(version, form=OBJECT, source=SFRAME, address=0x8000)).is_whole
    assert report.is_whole == (version == 3 or not report.losses)
    decoded = Section(section.read_bytes(), 0x8000)
    assert [one.rows() for one in decoded.functions()] == [one.rows() for one in functions(objects)]
    assert {one.start for one in decoded.functions()} <= {one.start for one in functions(program)}
    if version == 3:  # binutils 2.44 does not know the flag of errata 1, and 2.47 reads version 3 only
        shown = readelf.read_sframe(toolchain("amd64", 3), objects)
        assert [one.start for one in shown.functions] == [one.start for one in decoded.functions()]


def test_sframe_in_a_section_of_another_name_stays(tmp_path: Path) -> None:
    """Kernels have a second section, for initial code."""
    program, renamed, copy = build("callback", "amd64", 3, "O2"), tmp_path / "renamed", tmp_path / "copy"
    objcopy = toolchain("amd64", 3) / "objcopy"
    command = [str(objcopy), "--rename-section=.sframe=.init.sframe", str(program), str(renamed)]
    subprocess.run(command, check=True, timeout=HANG)
    report = convert_to_sframe(renamed, copy, Wanted(source=DWARF))
    old, new = sorted(elf.load(copy), key=lambda section: section.address == report.address)
    assert old.address == elf.load(program)[0].address
    assert {one.start for one in old.functions()} <= {one.start for one in new.functions()}


def test_libraries_of_the_system(tmp_path: Path) -> None:
    for path in islice(system_files(1), 3):
        done = convert(path)
        assert done.is_right, str(done)
        assert done.report.losses == ()
    # The dynamic linker takes the C library's copy in place of the original.
    library = next(system_files(1))
    convert_to_sframe(library, tmp_path / "libc.so.6", Wanted())
    assert can_load(tmp_path / "libc.so.6")
    environment = {"LD_LIBRARY_PATH": str(tmp_path)}
    shown = subprocess.run(
        ["/bin/cat", "/proc/self/maps"], env=environment, capture_output=True, text=True, timeout=SECONDS, check=True
    )
    assert str(tmp_path / "libc.so.6") in shown.stdout


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, output = build("realign", "amd64", 3), tmp_path / "copy"
    assert main(["convert", str(program), "-o", str(output)]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{output}: SFrame version 3 from version 3: ")
    made, source = (readelf.read_sections(toolchain("amd64", 3), file)[".sframe"] for file in (output, program))
    assert first.endswith(f"; a section of {made.size} bytes at {made.address:#x}, from {source.size} bytes")
    assert second.startswith("  proved: the same CFA, return address and frame pointer at each of ")
    assert main(["convert", "--version", "2", str(program), "-o", str(output)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any("left out: 0x" in line and "CFA r10+0, expected SP or FP plus an offset" in line for line in lines)
