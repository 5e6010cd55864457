"""The stacks of new recordings, compared with those that perf unwinds from the same samples."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from lab.perf.recordings import END_OF_COPY, KEPT_MAPS, POPPED, compare
from sframe_unwind.arch import ARCHES
from sframe_unwind.perf.judging import Unwound, Verdict
from sframe_unwind.perf.names import Name, Names
from sframe_unwind.perf.spaces import Space
from sframe_unwind.perf.summary import Summary
from sframe_unwind.perf.text import to_text
from sframe_unwind.process.files import Files
from sframe_unwind.sframe.listing import listed_functions
from sframe_unwind.sframe.section import Section
from sframe_unwind.unwind_rule import CFA, UnwindRule
from tests.hanging import HANG
from tests.missing import absent
from tests.perf import programs
from tests.perf.unwinding import stacks_of_perf, unwound
from tests.perf.writer import Event, Writer
from tests.samples.build import build

FP = ("fp", "fp-mended")
"""The methods for which code must keep frame pointers."""


@pytest.mark.parametrize(("source", "dump"), [("sorting.c", 16384), ("threads.cpp", 16384), ("sorting.c", 1024)])
def test_stacks_by_dwarf_are_those_of_perf(tmp_path: Path, source: str, dump: int) -> None:
    path = programs.record(programs.compiled(source, tmp_path), tmp_path, dump=dump)
    compared = compare(path)
    assert compared.samples == len(stacks_of_perf(path)) > 10
    assert set(compared.differences) <= ({END_OF_COPY} if dump == 1024 else set())
    # Before libgcc enters a handler, it overwrites the registers that its own frames have saved.
    verdicts = {one.by_method["dwarf"].verdict for one in unwound(path) if not is_entering_a_handler(one)}
    assert verdicts - {Verdict.COMPLETE} == ({Verdict.CUT} if dump == 1024 else set())


def is_entering_a_handler(one: Unwound) -> bool:
    """Return whether a stack fails at a sample in libgcc's unwinder of exceptions."""
    file, _ = one.space.place(one.sample.ip)
    return one.by_method["dwarf"].verdict is Verdict.FAILED and Path(file).name == "libgcc_s.so.1"


def test_stacks_of_programs_that_a_shell_starts(tmp_path: Path) -> None:
    """The only differences are due to perf, which keeps the mappings of the parent.

    If a sample is in an epilogue, there is the other one that is known.
    """
    program = shlex.quote(str(programs.sorting()))
    compared = compare(programs.record_command(["sh", "-c", f"{program}; {program}"], tmp_path))
    assert compared.samples > 10
    assert set(compared.differences) <= {KEPT_MAPS, POPPED}


def test_a_process_that_is_being_loaded_is_complete_at_the_entry_point(tmp_path: Path) -> None:
    """No CFI covers the code at the entry point of the dynamic linker.

    Samples of code that the dynamic linker has started are left out: constructors and destructors have code of the
    compiler without CFI.
    """
    starts = 0
    for _ in range(50):  # a fast machine loads the program in a few samples, or in none
        for one in unwound(programs.record_command(["/bin/true"], tmp_path, "-F", "20000")):
            judged = one.by_method["dwarf"]
            outermost = judged.stack.pcs[-1]
            if one.space.find_cfi(outermost) is None and Path(one.space.place(outermost)[0]).name.startswith("ld"):
                assert judged.verdict is Verdict.COMPLETE, judged
                starts += 1
        if starts > 5:
            return
    raise AssertionError(f"{starts} samples of a process that is being loaded")


def test_mended_frame_pointers_have_the_caller_of_the_innermost_frame(tmp_path: Path) -> None:
    """The C library keeps no frame pointers, so the frame pointers of a sample in it skip the caller."""
    path = programs.record(programs.sorting(), tmp_path)
    mended = 0
    for one in unwound(path):
        stacks = {name: judged.stack.pcs for name, judged in one.by_method.items()}
        assert stacks["fp-mended"][:2] == stacks["dwarf"][:2]
        mended += stacks["fp"][:2] != stacks["dwarf"][:2]
    assert mended


def test_sframe_made_from_cfi_gives_the_same_stacks(tmp_path: Path) -> None:
    path = programs.record(programs.sorting(), tmp_path)
    as_it_is, converted = unwound(path), unwound(path, convert=True)
    for one in converted:
        assert one.by_method["sframe"].stack.pcs == one.by_method["dwarf"].stack.pcs
        assert one.by_method["sframe-linux"].verdict is Verdict.COMPLETE
        assert one.by_method["sframe+dwarf"].verdict is Verdict.COMPLETE
    # The program has SFrame; the system's C library, which sorts, has none.
    reasons = {one.by_method["sframe"].reason for one in as_it_is}
    assert reasons == {"the module has no SFrame section"}


def has_sframe(path: Path) -> bool:
    with path.open("rb") as file:
        return ELFFile(file).get_section_by_name(".sframe") is not None


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "sframe_unwind", "perf", *arguments]
    return subprocess.run(line, capture_output=True, text=True, timeout=HANG, check=False)


def test_the_command(tmp_path: Path) -> None:
    path = str(programs.record(programs.sorting(), tmp_path))
    folded, speedscope = tmp_path / "folded", tmp_path / "speedscope"
    done = command(path, "--json", "--method", "sframe,dwarf", "--folded", str(folded), "--speedscope", str(speedscope))
    assert (done.returncode, done.stderr) == (0, "")
    printed = json.loads(done.stdout)
    assert set(printed) == {"event", "samples", "user_samples", "methods", "frames", "frames_by_cfi", "blockers"}
    assert list(printed["methods"]) == ["sframe", "dwarf"]
    count = printed["user_samples"]
    assert printed["methods"]["dwarf"] == {"complete": count, "cut": 0, "failed": 0, "wrong": 0}
    assert 0 < printed["frames"]["sframe"] < printed["frames"]["dwarf"] == printed["frames_by_cfi"]
    failed = sum(one["samples"] for one in printed["blockers"] if one["method"] == "sframe")
    assert failed == count - printed["methods"]["sframe"]["complete"]
    (module,) = {one["module"] for one in printed["blockers"]}
    assert Path(module).name == "libc.so.6"
    assert not has_sframe(Path(module))
    lines = folded.read_text().splitlines()
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == 2 * count
    assert any(line.startswith("dwarf;sorting;_start;") for line in lines)
    profiles = json.loads(speedscope.read_text())["profiles"]
    assert [(one["name"], one["endValue"]) for one in profiles] == [("sframe", count), ("dwarf", count)]
    text = command(path, "--convert").stdout
    assert text.startswith(f"SFrame gives complete stacks for 100.0% of {count} samples (DWARF 100.0%, frame pointers ")


NUMBERS = {"amd64": (8, 7), "aarch64": (32, 31), "s390x": (33, 15)}
"""The kernel's numbers of pc and SP (``asm/perf_regs.h``)."""


def is_in_memory(rule: UnwindRule, sp: int) -> bool:
    return rule.cfa is not None and rule.cfa.base == sp and rule.ra is not None and rule.ra.base == CFA


@pytest.mark.parametrize("abi", NUMBERS)
def test_a_recording_of_another_machine(tmp_path: Path, abi: str) -> None:
    """One sample for each row with the return address in memory.  The memory is zero, so each stack has one frame."""
    program = build("recursion", abi, 3, pie=False)
    (arch,) = (arch for arch in ARCHES if arch.name == abi)
    pc, sp = NUMBERS[abi]
    mask = sum(1 << number for number in range(34))
    writer = Writer(arch.byteorder, arch.uname, [Event(regs_user=mask)])
    elf = Files([""], [], (arch.elf_machine, arch.byteorder), lambda _: None).given(str(program))
    code = next(load for load in elf.loads if load.address <= elf.sections[".text"][0] < load.end)
    writer.mmap2(1, code.address & -4096, 0x100000, code.offset & -4096, str(program))
    address, size = elf.sections[".sframe"]
    start = next(load for load in elf.loads if load.address <= address < load.end)
    section = Section(elf.read(start.offset + address - start.address, size), address)
    expected: list[int] = []
    for function in listed_functions([section]):
        for offset, rule in function.rows():
            if not is_in_memory(rule, arch.sp):
                continue
            writer.sample(1, 0, {pc: function.start + offset, sp: 0x7F0000}, bytes(4096), time=len(expected))
            expected.append(function.start + offset)
    assert len(expected) > 2
    path = tmp_path / "perf.data"
    path.write_bytes(writer.file())
    found = unwound(path)
    assert [one.by_method["sframe"].stack.pcs for one in found] == [(at,) for at in expected]
    verdicts = {judged.verdict for one in found for name, judged in one.by_method.items() if name not in FP}
    assert verdicts == {Verdict.COMPLETE}


def test_the_advice_helps(tmp_path: Path) -> None:
    """With the copies that the advice requests, no stack is cut; the files without SFrame are named."""
    dump = 1024
    for _ in range(6):
        path = str(programs.record(programs.sorting(), tmp_path, dump=dump))
        printed = command(path).stdout
        asked = re.search(
            r"cut at the end of the copy, ([\d,]+) bytes .* --call-graph dwarf,(\d+)$", printed, re.MULTILINE
        )
        if not asked:
            break
        assert int(asked[1].replace(",", "")) <= dump < int(asked[2])
        dump = int(asked[2])
    assert dump > 1024
    assert all(not counts["cut"] for counts in json.loads(command(path, "--json").stdout)["methods"].values())
    assert re.search(r"^\d+ stacks end by SFrame at a file without it: \S*/libc\.so\.6 ", printed, re.MULTILINE)
    assert "file without it" not in command(path, "--convert").stdout


class LongNames(Names):
    """Names as long as those of C++ templates; the sampled functions are random."""

    def find(self, space: Space, lookup: int, pid: int = 0) -> Name:
        found = super().find(space, lookup, pid)
        return found._replace(function=f"{found.function}<{', '.join(['std::basic_string<char>'] * 9)}>")


def test_text_fits_the_terminal(tmp_path: Path) -> None:
    """Only the names of functions are cut."""
    path = programs.record(programs.compiled("threads.cpp", tmp_path), tmp_path)
    summary = Summary(("sframe", "dwarf"), LongNames())
    for one in unwound(path):
        both = {method: one.by_method[method] for method in summary.methods}
        summary.add(one._replace(by_method=both), "threads")
    whole, cut = list(to_text(summary)), list(to_text(summary, 150))
    assert len(whole) == len(cut)
    assert max(map(len, whole)) > 200
    assert max(map(len, cut[1:])) <= 150  # a terminal wraps the sentence
    assert any("..." in line for line in cut)
    # The columns before the names, and all other lines, are the same.
    assert all(line == other or line.startswith(other.partition("...")[0]) for line, other in zip(whole, cut))


def test_segments_that_share_a_page_of_the_file(tmp_path: Path) -> None:
    """LLD puts code at other addresses than the read-only data before it, in the same page of the file."""
    program = tmp_path / "shared_page"
    if shutil.which("ld.lld") is None:
        absent("lld is not installed: its layout of files stays untested")
    options = ["-fuse-ld=lld", "-nostdlib", "-static"]
    subprocess.run(["gcc", *options, programs.FOLDER / "shared_page.s", "-o", program], check=True, timeout=HANG)
    with program.open("rb") as stream:
        elf = ELFFile(stream)
        code = next(segment for segment in elf.iter_segments("PT_LOAD") if segment["p_flags"] & 1)
        start, offset = code["p_vaddr"] & -4096, code["p_offset"] & -4096
        called = elf.get_section_by_name(".symtab").get_symbol_by_name("called")[0]["st_value"]
    assert offset == 0
    writer = Writer("little", "x86_64", [Event(regs_user=0b111000000)])
    writer.mmap2(1, start, 0x1000, offset, str(program))
    stack = b"".join(word.to_bytes(8, "little") for word in (7, called - 2, 0))
    writer.sample(1, 0, {8: called + 1, 7: 0x7F0000, 6: 0}, stack, size=64)
    path = tmp_path / "perf.data"
    path.write_bytes(writer.file())
    (one,) = unwound(path)
    assert one.by_method["dwarf"].stack.pcs == (called + 1, called - 2)
    assert one.by_method["dwarf"].verdict is Verdict.COMPLETE
    assert Names().find(one.space, called).function == "called"
