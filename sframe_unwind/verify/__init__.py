"""SFrame against the DWARF CFI of the same file, and both against its machine code."""

from __future__ import annotations

from typing import NamedTuple

from elftools.elf.elffile import ELFFile

from sframe_unwind import elf
from sframe_unwind.elf.cfi import DEBUG_FRAME, EH_FRAME, FileCfi
from sframe_unwind.elf.file import SECTION_NAME, PathLike
from sframe_unwind.elf.section_addresses import Layout
from sframe_unwind.elf.symbols import symbols_of
from sframe_unwind.errors import FileError, NoSFrameError
from sframe_unwind.sframe.section import Section
from sframe_unwind.verify.comparison import Comparison
from sframe_unwind.verify.verdict import Sizes, Verdict
from sframe_unwind.workers import Progress

EH_FRAME_HDR = ".eh_frame_hdr"


class Plan(NamedTuple):
    """What files are verified against."""

    dwarf: bool = True
    """SFrame against DWARF CFI."""
    code: bool = False
    """Either, or both, against the machine code: a file may then lack one of them."""
    jobs: int = 1
    """How many processes interpret the code of one file."""
    progress: Progress | None = None


def verify(path: PathLike, plan: Plan = Plan()) -> Verdict:  # noqa: B008  # it cannot change
    """Compare the SFrame of a file, linked or not, with its DWARF CFI, or either with the machine code.

    :raises FileError: the file cannot be read, or there is nothing to compare.
    :raises NoSFrameError: it has no SFrame section.
    :raises FormatError: SFrame or CFI is malformed.
    :raises SFrameError: the code is to be interpreted, and what decodes it is not installed.
    """
    with elf.opened(path) as file:
        return verify_elf(file, str(path), plan)


def verify_elf(
    file: ELFFile,
    name: str,
    plan: Plan = Plan(),  # noqa: B008  # it cannot change
    sections: list[Section] | None = None,
) -> Verdict:
    """Compare as :func:`verify` does, in an ELF file that is open.

    :param name: what the file is called.
    :param sections: SFrame for the file, in the place of its own.
    """
    layout = Layout(file)
    symbols = symbols_of(file, layout)
    sections = sections or _sframe(file, layout, plan)
    arch = elf.arch_of(file)
    cfi = FileCfi(file, arch, layout)
    if not plan.code and not cfi.ranges():
        raise FileError("no DWARF CFI to compare with")
    found = None
    if plan.dwarf and sections is not None and cfi.ranges():
        found = Comparison(sections, arch, cfi, symbols, layout, plan.progress)
    problems = tuple(dict.fromkeys(map(str, cfi.problems)))
    verdict = Verdict(name, (), 0, (), _sizes(file, layout, 0), problems, compared=found is not None)
    if found is not None:
        verdict = verdict._replace(
            functions=found.functions,
            addresses_compared=found.addresses_compared,
            disagreements=tuple(found.disagreements),
            sizes=_sizes(file, layout, found.not_described),
        )
    if not plan.code:
        return verdict
    from sframe_unwind.verify.code_check import judged  # most comparisons do without the interpreter

    disagreeing = found.disagreeing if found is not None else []
    return judged(verdict, disagreeing, file, layout, symbols, sections, cfi, plan.jobs, plan.progress)


def _sframe(file: ELFFile, layout: Layout, plan: Plan) -> list[Section] | None:
    try:
        return elf.load_from(file, layout=layout)
    except NoSFrameError:
        if plan.code:
            return None
        raise


def _sizes(file: ELFFile, layout: Layout, not_described: int) -> Sizes:
    def size(name: str) -> int:
        sections = [section for section in file.iter_sections() if section.name == name]
        return sum(section["sh_size"] for section in sections if section["sh_type"] != "SHT_NOBITS")

    code = sum(end - start for start, end in layout.code)
    return Sizes(size(SECTION_NAME), size(EH_FRAME), size(EH_FRAME_HDR), size(DEBUG_FRAME), code, not_described)
