"""SFrame against the DWARF CFI of the same file: at every address where either changes."""

from __future__ import annotations

from elftools.elf.elffile import ELFFile

from sframe_unwind import elf
from sframe_unwind.elf.cfi import DEBUG_FRAME, EH_FRAME, FileCfi
from sframe_unwind.elf.file import SECTION_NAME, PathLike, translated
from sframe_unwind.elf.section_addresses import Layout
from sframe_unwind.elf.symbols import symbols_of
from sframe_unwind.errors import FileError
from sframe_unwind.verify.comparison import Comparison
from sframe_unwind.verify.verdict import Sizes, Verdict

EH_FRAME_HDR = ".eh_frame_hdr"


def verify(path: PathLike) -> Verdict:
    """Compare the SFrame of a file, linked or not, with its DWARF CFI.

    :raises FileError: the file cannot be read, or has no CFI.
    :raises NoSFrameError: it has no SFrame section.
    :raises FormatError: SFrame or CFI is malformed.
    """
    with elf.opened(path) as file:
        return verify_elf(file, str(path))


def verify_elf(file: ELFFile, name: str) -> Verdict:
    """Compare as :func:`verify` does, in an ELF file that is open.

    :param name: what the file is called.
    """
    layout = Layout(file)
    sections = elf.load_from(file, layout=layout)
    symbols = symbols_of(file, layout)
    with translated("DWARF CFI"):
        arch = elf.arch_of(file)
        cfi = FileCfi(file, arch, layout)
        if not cfi.ranges():
            raise FileError("no DWARF CFI to compare with")
        found = Comparison(sections, arch, cfi, symbols, layout)
    sizes = _sizes(file, layout, found.not_described)
    problems = tuple(dict.fromkeys(map(str, cfi.problems)))
    return Verdict(name, found.functions, found.addresses_compared, tuple(found.disagreements), sizes, problems)


def _sizes(file: ELFFile, layout: Layout, not_described: int) -> Sizes:
    def size(name: str) -> int:
        sections = [section for section in file.iter_sections() if section.name == name]
        return sum(section["sh_size"] for section in sections if section["sh_type"] != "SHT_NOBITS")

    code = sum(end - start for start, end in layout.code)
    return Sizes(size(SECTION_NAME), size(EH_FRAME), size(EH_FRAME_HDR), size(DEBUG_FRAME), code, not_described)
