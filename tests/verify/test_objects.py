"""Files that are not linked, or lack something: object files, `ld -r`, kernel modules, archives, stripped files."""

from __future__ import annotations

from pathlib import Path

import pytest

from sframe_unwind import elf
from sframe_unwind.errors import FormatError, NoSFrameError
from sframe_unwind.sframe.constants import AbiNumber, Flag
from sframe_unwind.sframe.encode import FunctionSpec, RowSpec, SectionSpec, encode, usual_table
from sframe_unwind.verify import verify
from sframe_unwind.verify.inputs import Failure, answer, inputs
from sframe_unwind.verify.verdict import Outcome, Verdict
from tests.elf.objects import compile_both, compile_object, link, run, tools_for
from tests.samples.catalogue import ABIS
from tests.verify.planting import plant

EVERY = [(abi.name, version) for abi in ABIS.values() for version in abi.versions]
VERSION_3 = [abi for abi, version in EVERY if version == 3]


class Made:
    """Two object files with code in several sections, which can be linked."""

    def __init__(self, abi: str, version: int, folder: Path) -> None:
        self.abi, self.tools, self.folder = abi, tools_for(abi, version), folder
        self.objects = compile_both(self.tools, abi, folder)

    def link(self, name: str, *options: str) -> Path:
        return link(self.tools, self.abi, self.folder / name, *self.objects, options=options or ("-e", "start"))


def rules(verdict: Verdict) -> dict[str, tuple[int, Outcome]]:
    """Return size and outcome of each function, by name."""
    return {function.name: (function.size, function.outcome) for function in verdict.functions}


@pytest.mark.parametrize(("abi", "version"), EVERY)
def test_object_files(abi: str, version: int, tmp_path: Path) -> None:
    """All sections of an object file are at address 0; its functions are still compared as in the linked program."""
    made = Made(abi, version, tmp_path)
    one, two = map(verify, made.objects)
    program = verify(made.link("program"))
    assert one.disagreements == two.disagreements == program.disagreements == ()
    assert one.addresses_compared + two.addresses_compared == program.addresses_compared > 10
    assert one.both + two.both == program.both == 6
    assert {**rules(one), **rules(two)} == rules(program)
    second = next(function for function in one.functions if function.name == "second")
    assert str(second.spot) == ".text.cold+0x0"


@pytest.mark.parametrize("abi", VERSION_3)
def test_output_of_ld_r(abi: str, tmp_path: Path) -> None:
    made = Made(abi, 3, tmp_path)
    whole, program = verify(made.link("whole.o", "-r")), verify(made.link("program"))
    assert not whole.disagreements
    assert whole.addresses_compared == program.addresses_compared
    assert rules(whole) == rules(program)


def test_output_of_ld_r_with_misplaced_relocations(tmp_path: Path) -> None:
    """GNU ld 2.44 puts the relocations of later inputs at places where other content is by then."""
    whole = Made("amd64", 2, tmp_path).link("whole.o", "-r")
    with pytest.raises(FormatError, match="relocation that is not for the start field of a function"):
        verify(whole)


@pytest.mark.parametrize("abi", VERSION_3)
def test_planted_in_an_object_file(abi: str, tmp_path: Path) -> None:
    """A CFA changed in one function of one section is found there and nowhere else."""
    made = Made(abi, 3, tmp_path)
    damaged = tmp_path / "damaged.o"
    (offset,) = plant(made.objects[0], damaged, "cfa")
    verdict = verify(damaged)
    assert {entry.what for entry in verdict.disagreements} == {"cfa"}
    assert offset in {entry.spot.address for entry in verdict.disagreements}
    assert verdict.count(Outcome.DISAGREES) == 1


def test_section_groups(tmp_path: Path) -> None:
    """Templates in C++ bring a section group each; `ld -r` drops those that another file has, too."""
    tools = tools_for("amd64", 3)
    source = "template <int N> [[gnu::noipa]] int f(int *p) { int b[N] = { *p }; return g(b) + N; }"
    for name in ("one", "two"):
        text = f"int g(int *);\n{source}\nint {name}(int *p) {{ return f<10>(p) + f<200>(p) + g(p); }}\n"
        (tmp_path / f"{name}.cc").write_text(text, encoding="ascii")
        flags = ("-O2", "-fasynchronous-unwind-tables", "-Wa,--gsframe", f"-B{tools}/")
        run("g++", *flags, "-c", tmp_path / f"{name}.cc", "-o", tmp_path / f"{name}.o")
    run(tools / "ld", "-r", "-o", tmp_path / "whole.o", tmp_path / "one.o", tmp_path / "two.o")
    one, whole = verify(tmp_path / "one.o"), verify(tmp_path / "whole.o")
    assert one.disagreements == whole.disagreements == ()
    assert (one.both, len(one.functions)) == (3, 3)
    assert len({function.spot.section for function in one.functions}) == 3
    assert (whole.both, len(whole.functions)) == (4, 4)


def group(name: str, cfa: int) -> str:
    """Return a section group with a function, its CFI, and its own SFrame section that claims a CFA."""
    table = usual_table(2, AbiNumber.AMD64_ENDIAN_LITTLE, [FunctionSpec(28, 16, (RowSpec(0, 3, (cfa,)),))])
    content = encode(SectionSpec(0, (table._replace(flags=Flag.FDE_FUNC_START_PCREL),)))
    return f"""
        .section .text.{name}, "axG", @progbits, {name}, comdat
        {name}: .cfi_startproc
        .skip 16
        .cfi_endproc
        .type {name}, @function
        .size {name}, 16
        .globl {name}
        .section .sframe, "aG", @progbits, {name}, comdat
        .byte {", ".join(map(str, content[:28]))}
        .long {name} - .
        .byte {", ".join(map(str, content[32:]))}
    """


def test_several_sframe_sections(tmp_path: Path) -> None:
    """Some producers write one section for each section group."""
    source = tmp_path / "groups.s"
    source.write_text(group("right", 8) + group("wrong", 16), encoding="ascii")
    run(tools_for("amd64", 3) / "as", "-o", tmp_path / "groups.o", source)
    verdict = verify(tmp_path / "groups.o")
    assert {name: outcome for name, (_, outcome) in rules(verdict).items()} == {
        "right": Outcome.AGREES,
        "wrong": Outcome.DISAGREES,
    }
    assert [(str(entry.spot), entry.sframe, entry.dwarf) for entry in verdict.disagreements] == [
        (".text.wrong+0x0", "rsp + 16", "rsp + 8")
    ]


@pytest.mark.parametrize("abi", VERSION_3)
def test_the_shape_of_a_kernel_module(abi: str, tmp_path: Path) -> None:
    """The CFI in `ld -r` output is in `.debug_frame`: kernels are built without `.eh_frame`."""
    made = Made(abi, 3, tmp_path)
    sections = ".cfi_sections .debug_frame, .sframe\n"
    for file in made.objects:
        flags = [flag for flag in ABIS[abi].flags if not flag.startswith("-Wl")]
        flags += ["-O2", "-ffreestanding", "-fno-pie", "-fno-stack-protector", "-fasynchronous-unwind-tables"]
        assembly = file.with_suffix(".s")
        run(ABIS[abi].compiler, *flags, "-S", file.with_suffix(".c"), "-o", assembly)
        assembly.write_text(sections + assembly.read_text(encoding="utf-8"), encoding="utf-8")
        run(ABIS[abi].compiler, *flags, f"-B{made.tools}/", "-Wa,--gsframe", "-c", assembly, "-o", file)
    module = verify(made.link("module.ko", "-r"))
    assert (module.both, len(module.functions), module.disagreements) == (6, 6, ())
    assert module.sizes.eh_frame == 0 < module.sizes.debug_frame


def test_stripped_file(tmp_path: Path) -> None:
    made = Made("amd64", 3, tmp_path)
    program = made.link("program")
    before = verify(program)
    run(made.tools / "strip", program)
    after = verify(program)
    assert [function._replace(name="") for function in before.functions] == list(after.functions)
    assert after.addresses_compared == before.addresses_compared


@pytest.mark.parametrize("options", ["rcs", "rcsT"])
def test_archives(options: str, tmp_path: Path) -> None:
    """Members with SFrame are compared one by one, with short and long names; others are passed over."""
    made = Made("aarch64", 3, tmp_path)
    long_name = made.objects[1].rename(tmp_path / "a_name_that_does_not_fit_into_a_header.o")
    (tmp_path / "text").write_text("odd", encoding="ascii")
    archive = tmp_path / "lib.a"
    run("ar", options, archive, made.objects[0], tmp_path / "text", long_name)
    files = (made.objects[0], long_name)
    found = [item for item in map(answer, inputs([str(archive)])) if isinstance(item, Verdict)]
    # A thin archive names its members as they were given.
    names = [str(path) if "T" in options else path.name for path in files]
    assert [verdict.file for verdict in found] == [f"{archive}({name})" for name in names]
    assert [verdict.functions for verdict in found] == [verify(path).functions for path in files]


def test_archives_in_the_form_of_bsd(tmp_path: Path) -> None:
    """Long names come before the contents."""
    made = Made("amd64", 3, tmp_path)
    content, name = made.objects[0].read_bytes(), b"a name with blanks.o\0\0\0\0"
    header = b"%-16s%-12d%-6d%-6d%-8o%-10d`\n" % (b"#1/%d" % len(name), 0, 0, 0, 0o644, len(name) + len(content))
    archive = tmp_path / "lib.a"
    archive.write_bytes(b"!<arch>\n" + header + name + content)
    (verdict,) = [answer(item) for item in inputs([str(archive)])]
    assert isinstance(verdict, Verdict)
    assert verdict.file == f"{archive}(a name with blanks.o)"
    assert verdict.functions == verify(made.objects[0]).functions


def failures(*names: Path) -> list[str]:
    return [str(found) for found in map(answer, inputs([str(name) for name in names])) if isinstance(found, Failure)]


def test_archives_that_cannot_be_read(tmp_path: Path) -> None:
    made = Made("amd64", 3, tmp_path)
    archive = tmp_path / "lib.a"
    archive.write_bytes(b"!<arch>\n")
    assert failures(archive) == [f"{archive}: nothing with a .sframe section in it"]
    run("ar", "rcs", archive, *made.objects)
    whole = archive.read_bytes()
    archive.write_bytes(whole[:-300])
    (truncated,) = failures(archive)
    assert truncated.startswith(f"{archive}: truncated archive: a member ends at 0x")
    archive.write_bytes(whole.replace(b"`\n", b"xx"))
    assert failures(archive) == [f"{archive}: malformed archive: expected the header of a member at 0x8"]
    archive.write_bytes(b"!<thin>\n%-16s%-12d%-6d%-6d%-8o%-10d`\n" % (b"/dev/zero/", 0, 0, 0, 0o644, 8))
    assert failures(archive) == [f"{archive}(/dev/zero): /dev/zero: not a regular file"]
    archive.unlink()
    run("ar", "rcsT", archive, *made.objects)
    made.objects[0].unlink()
    assert failures(archive) == [f"{archive}({made.objects[0]}): {made.objects[0]}: No such file or directory"]


def test_an_object_file_without_code_has_no_section(tmp_path: Path) -> None:
    made = Made("amd64", 3, tmp_path)
    data = compile_object(made.tools, "amd64", "int data[3] = { 1 };\n", tmp_path / "data.o")
    with pytest.raises(NoSFrameError, match=r"data\.o: no \.sframe section"):
        verify(data)


def test_function_that_a_linker_discarded(tmp_path: Path) -> None:
    """`ld -r` of lld and gold keeps the FDE of a discarded COMDAT function, with a relocation of no type."""
    source, file = tmp_path / "two.s", tmp_path / "two.o"
    function = ".cfi_startproc\nnop\nret\n.cfi_endproc\n"
    source.write_text(f"one: {function}two: {function}", encoding="ascii")
    run(tools_for("amd64", 3) / "as", "--gsframe", "-o", file, source)
    assert verify(file).both == 2
    content = bytearray(file.read_bytes())
    with elf.opened(file) as binary:
        relocations = binary.named(".rela.sframe")
    assert relocations is not None
    start, size = relocations.offset, relocations.size
    content[start + size - 16 : start + size - 8] = bytes(8)  # r_info
    file.write_bytes(content)
    verdict = verify(file)
    assert (verdict.both, verdict.sframe_only, verdict.dwarf_only) == (1, 0, 1)
