"""Rows of PLT stubs compared with the instructions of the stubs, for the output of real linkers."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest

from sframe_unwind import elf
from sframe_unwind.arch import BY_NAME, Arch
from sframe_unwind.convert.to_sframe import USUAL_ROWS, Wanted, convert_to_sframe
from sframe_unwind.elf.constants import SHF_EXECINSTR
from sframe_unwind.elf.plt import stubs
from sframe_unwind.errors import MemoryReadError
from sframe_unwind.sframe.constants import ARCH_BY_ABI, AbiNumber, PcType
from sframe_unwind.sframe.encode import FunctionSpec, SectionSpec, encode, usual_table
from sframe_unwind.sframe.encode_rule import function
from sframe_unwind.sframe.section import Section
from sframe_unwind.unwind.modules import Found, Module, Modules
from sframe_unwind.unwind.stub_rows import wrong_rows
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule, saved_at_cfa
from tests.hanging import HANG
from tests.missing import absent, toolchain_needed
from tests.samples.build import build, toolchain
from tests.samples.catalogue import ABIS, SAMPLES

AMD64 = AbiNumber.AMD64_ENDIAN_LITTLE
SECONDS = HANG


class Code:
    """The code of a linked file.

    :param path: the file.
    :param tools: folder of an objdump for its machine.
    """

    def __init__(self, path: Path, tools: Path) -> None:
        with elf.opened(path) as binary:
            self._parts = [
                (section.address, binary.contents(section), section.name)
                for section in binary.sections
                if section.flags & SHF_EXECINSTR
            ]
        self.path, self._tools = path, tools

    def read(self, address: int, size: int) -> bytes:
        """Return bytes as they are in the memory of a process."""
        for start, contents, _ in self._parts:
            if start <= address < start + len(contents):
                # A section is followed in memory by other sections, or zeros.
                return bytes(contents[address - start : address - start + size]).ljust(size, b"\0")
        raise MemoryReadError(address, size)

    def spans(self) -> list[tuple[int, int]]:
        """Return start and end address of each section of a PLT."""
        return [(start, start + len(contents)) for start, contents, name in self._parts if "plt" in name]

    def instructions(self) -> list[tuple[str, int, str]]:
        """Return section, address and text of each instruction of the PLT, as objdump decodes them."""
        command = [str(self._tools / "objdump"), "-d", "--no-show-raw-insn", str(self.path)]
        text = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True).stdout
        found, section = [], ""
        for line in text.splitlines():
            head = re.match(r"Disassembly of section (\S+):", line)
            section = head[1] if head else section
            one = re.match(r" +([0-9a-f]+):\s+(.*)$", line)
            if one and "plt" in section:
                found.append((section, int(one[1], 16), one[2]))
        return found

    def truth(self, arch: Arch) -> dict[int, tuple[str, int]]:
        """Return section and offset of the CFA from SP at each instruction that can be executed.

        Stubs are entered as functions are, but for AMD64's first one, which the others enter with a word pushed.
        """
        entry = (8 if arch.ra is None else 0) - arch.sp_from_cfa
        offset: int | None = entry
        offsets = {}
        for section, address, text in self.instructions():
            if offset is None:
                if re.match(r"nop|xchg|nopr|int3|cs nop|data16", text):
                    continue
                offset = entry
            if text.startswith("push") and "(%rip)" in text and offset == entry:
                offset += 8
            offsets[address] = section, offset
            offset += 8 * text.startswith("push") + 16 * text.startswith("stp\tx16, x30")
            # The lazy part after an entry's first jump is entered by that jump.
            if re.match(r"(bnd )?jmp +[0-9a-f]|br|jg|retab", text) or (
                text.startswith(("jmp", "bnd jmp")) and "*" in text
            ):
                offset = None
        return offsets


BUILDS = [
    (abi, version, name, variant)
    for abi in ("amd64", "aarch64", "s390x")
    for version in ABIS[abi].versions
    for name in ("plt", "plt_now", "plt_ibt")
    if abi in SAMPLES[name].abis
    for variant in ("O2", *(("pac",) if "pac" in SAMPLES[name].variants_for(abi) else ()))
]


def loaded(abi: str, version: int, name: str, variant: str) -> tuple[Code, Section, Arch]:
    """Build a sample; return its code, its SFrame and its architecture."""
    with toolchain_needed():
        path, tools = build(name, abi, version, variant), toolchain(abi, version)
    (section,) = elf.load(path)
    return Code(path, tools), section, BY_NAME[abi]


@pytest.mark.parametrize(("abi", "version", "name", "variant"), BUILDS)
def test_item_31_used_rule_is_what_the_instructions_do(abi: str, version: int, name: str, variant: str) -> None:
    code, section, arch = loaded(abi, version, name, variant)
    refuted, judged = check_used_rules(code, section, arch)
    # GNU ld describes the PLT of AMD64 alone; see docs/edge-cases.md.
    assert bool(judged) == (abi == "amd64")
    expected = set()
    if abi == "amd64":
        expected = {".plt.got"} if version > 1 else {".plt", ".plt.sec"} if name == "plt_ibt" else set()
    assert refuted == expected
    wrong = wrong_rows(section, arch, code.read)
    assert bool(wrong) == bool(expected)
    assert all(one.row.cfa != one.code.cfa for one in wrong)


@pytest.mark.parametrize("rows", [None, USUAL_ROWS], ids=["plain", "compact"])
@pytest.mark.parametrize("target", [2, 3])
@pytest.mark.parametrize(("version", "name"), [(version, name) for abi, version, name, _ in BUILDS if abi == "amd64"])
def test_item_31_plts_are_known_in_converted_files(
    version: int, name: str, target: int, rows: int | None, tmp_path: Path
) -> None:
    """In a converted file the same rules are used, and the same rows are found wrong, as in the original."""
    code, section, arch = loaded("amd64", version, name, "O2")
    copy = tmp_path / "copy"
    report = convert_to_sframe(code.path, copy, Wanted(target, source="sframe", max_rows=rows))
    assert not report.losses
    (converted,) = elf.load(copy)
    assert check_used_rules(code, converted, arch) == check_used_rules(code, section, arch)
    places = [[one.address for one in wrong_rows(made, arch, code.read)] for made in (section, converted)]
    assert places[0] == places[1]


def check_used_rules(code: Code, section: Section, arch: Arch) -> tuple[set[str], int]:
    """Check the rule for each instruction of the PLTs; return where the rows are refuted, and how many have a rule."""
    modules = Modules(arch, [Module("module", code.spans(), lambda: section)], read=code.read)
    refuted, judged = set(), 0
    for pc, (where, offset) in code.truth(arch).items():
        found = modules.results[pc]
        if isinstance(found, Found):
            judged += 1
            assert found.rule.cfa == RegisterRule(arch.sp, offset, False), hex(pc)
            refuted |= {where} if found.is_refuted else set()
    return refuted, judged


OTHER_LINKERS = [("lld", "amd64"), ("lld", "aarch64"), ("mold", "amd64"), ("mold", "aarch64"), ("mold", "s390x")]
SOURCE = """
#include <stdio.h>
#include <string.h>
unsigned long (*volatile length)(const char *);
int main(int argc, char **argv) {
  length = strlen;
  return printf("%d %s", argc, strchr(argv[0], 'a')) + (int)strlen(argv[0]);
}
"""


@pytest.mark.parametrize(("abi", "version", "name", "variant"), BUILDS)
def test_each_stub_of_gnu_ld_is_decoded(abi: str, version: int, name: str, variant: str) -> None:
    code, _, arch = loaded(abi, version, name, variant)
    check_decoded(code, arch, 0)


@pytest.mark.parametrize(("linker", "abi"), OTHER_LINKERS)
def test_each_stub_of_other_linkers_is_decoded(linker: str, abi: str, tmp_path: Path) -> None:
    """They write no rows for their stubs today.  The form of mold's lazy stubs for AMD64 and s390x is not known."""
    found = shutil.which(f"ld.{linker}") or absent(f"{linker} is not installed: its PLTs stay untested")
    (tmp_path / f"ld.{linker}").symlink_to(found)
    source, path = tmp_path / "calls.c", tmp_path / "calls"
    source.write_text(SOURCE, encoding="utf-8")
    flags = ["-O1", "-fno-builtin", "-fno-use-linker-plugin", f"-B{tmp_path}/", f"-fuse-ld={linker}"]
    with toolchain_needed():
        tools = toolchain(abi, 3)
    for binding in ("lazy", "now"):
        command = [ABIS[abi].compiler, *flags, f"-Wl,-z,{binding}", str(source), "-o", str(path)]
        subprocess.run(command, check=True, timeout=SECONDS)
        lazy = linker == "mold" and abi != "aarch64"
        check_decoded(Code(path, tools), BY_NAME[abi], 3 if lazy else 0)


def check_decoded(code: Code, arch: Arch, unknown: int) -> None:
    """Check each stub in a mask FDE whose row is wrong everywhere.

    :param unknown: the largest number of stubs whose form may be unknown: their row is believed.
    """
    with elf.opened(code.path) as file:
        starts = sorted({stub.address for stub in stubs(file)})
        end = next(part.address + part.size for part in file.sections if 0 <= starts[-1] - part.address < part.size)
    assert len(starts) >= 3
    nonsense = UnwindRule(RegisterRule(arch.sp, 4096, False), saved_at_cfa(-8), None)
    table = usual_table(3, next(abi for abi, known in ARCH_BY_ABI.items() if known is arch))
    truth, believed = code.truth(arch), 0
    for start, limit in zip(starts, [*starts[1:], end]):
        size = min(limit - start, 32)
        spec = function(table, start, size, [(0, nonsense)])._replace(pc_type=PcType.MASK, repetition_size=size)
        section = Section(encode(SectionSpec(0x80000, (table._replace(functions=(spec,)),))), 0x80000)
        modules = Modules(arch, [Module("made-up", [(start, start + size)], partial(as_is, section))], read=code.read)
        for pc in range(start, start + size):
            found = modules.results[pc]
            assert isinstance(found, Found)
            believed += not found.is_refuted and pc == start
            if found.is_refuted and pc in truth:
                assert found.rule.cfa == RegisterRule(arch.sp, truth[pc][1], False), hex(pc)
    assert believed <= unknown


def as_is(section: Section) -> Section:
    """Return the section unchanged."""
    return section


HEADER = bytes.fromhex("ff35e22f0000 ff25e42f0000 0f1f4000")
LAZY = bytes.fromhex("f30f1efa 6800000000 e9e2ffffff 6690")
"""An entry 16 bytes after the header."""
PLT = 0x10000


@pytest.mark.parametrize(
    ("what", "code", "at", "sp"),
    [
        ("entry of a lazy PLT", HEADER + LAZY, 16 + 9, 16),
        ("jump to code that is not a header", LAZY + LAZY, 16 + 9, None),
        ("header whose slots are not neighbours", HEADER.replace(b"\xe4", b"\xe5") + LAZY, 16 + 9, None),
        ("jump to what cannot be read", HEADER + LAZY.replace(b"\xe2\xff", b"\xe2\x7f"), 16 + 9, None),
        ("other code", b"\x90" * 32, 16, None),
        ("code that cannot be read", b"", 16, None),
    ],
)
def test_row_is_believed_unless_the_code_proves_another(what: str, code: bytes, at: int, sp: int | None) -> None:
    arch = BY_NAME["amd64"]
    row = UnwindRule(RegisterRule(arch.sp, 24, False), saved_at_cfa(-8), None)
    table = usual_table(3, AMD64)
    spec = function(table, PLT + 16, 16, [(0, row)])._replace(pc_type=PcType.MASK, repetition_size=16)
    found = made(spec, arch, code).results[PLT + at]
    assert isinstance(found, Found)
    assert found.is_refuted == (sp is not None), what
    assert found.rule.cfa == RegisterRule(arch.sp, 24 if sp is None else sp, False)


def test_code_of_functions_is_not_read() -> None:
    """The code of functions is not read, even of one as small as a PLT's header, unless it has the header's rows."""
    arch = BY_NAME["amd64"]
    rules = [UnwindRule(RegisterRule(arch.sp, 8 * words, False), saved_at_cfa(-8), None) for words in (1, 2, 3)]
    jump = bytes.fromhex("f30f1efa ff25662f0000 660f1f440000")
    for rows, refuted in (([(0, rules[0]), (6, rules[1])], False), ([(0, rules[1]), (6, rules[2])], True)):
        reads: list[int] = []
        found = made(function(usual_table(3, AMD64), PLT, 16, rows), arch, jump, reads).results[PLT]
        assert isinstance(found, Found)
        assert found.is_refuted == refuted == bool(reads)


def made(spec: FunctionSpec, arch: Arch, code: bytes, reads: list[int] | None = None) -> Modules:
    """Return a process with one function, and code from PLT on."""
    data = encode(SectionSpec(0x80000, (usual_table(3, AMD64, [spec]),)))

    def read(address: int, size: int) -> bytes:
        if reads is not None:
            reads.append(address)
        if not PLT <= address < PLT + len(code):
            raise MemoryReadError(address, size)
        return code[address - PLT :][:size].ljust(size, b"\0")

    return Modules(arch, [Module("made-up", [(PLT, PLT + 0x1000)], lambda: Section(data, 0x80000))], read=read)
