"""Checks the SFrame of a file against its DWARF CFI, a kernel's ORC against both, and all against the machine code."""

from __future__ import annotations

from sframe_unwind import elf
from sframe_unwind.elf import SECTION_NAME, ElfBinary, PathLike
from sframe_unwind.elf.cfi import DEBUG_FRAME, EH_FRAME, EH_FRAME_HDR
from sframe_unwind.elf.loading import loading_problems
from sframe_unwind.errors import FileError, NoSFrameError
from sframe_unwind.sframe.section import Section
from sframe_unwind.verify.comparison import Comparison
from sframe_unwind.verify.plan import Plan
from sframe_unwind.verify.verdict import Sizes, Verdict

__all__ = ["Plan", "verify", "verify_elf"]


def verify(path: PathLike, plan: Plan = Plan()) -> Verdict:  # noqa: B008  # it cannot change
    """Compare the SFrame of a file, linked or not, with its DWARF CFI, or compare either with the machine code.

    :raises FileError: the file cannot be read, or there is nothing to compare.
    :raises NoSFrameError: it has no SFrame section.
    :raises FormatError: SFrame or CFI is malformed.
    :raises SFrameError: the machine code is to be interpreted, and the package that decodes it is not installed.
    """
    with elf.opened(path) as binary:
        return verify_elf(binary, plan)


def verify_elf(
    binary: ElfBinary,
    plan: Plan = Plan(),  # noqa: B008  # it cannot change
    sections: list[Section] | None = None,
) -> Verdict:
    """Compare as :func:`verify` does, in an ELF file that is open.

    :param sections: SFrame to use in place of that of the file.
    """
    counted: tuple[tuple[str, int], ...] = ()
    if sections is None:
        sections = _sframe(binary, plan)
        counted = _counted(binary, sections or [])
    binary.check_sections()
    cfi = binary.cfi
    if plan.dwarf and not plan.code and not cfi.ranges():
        raise FileError("no DWARF CFI to compare with")
    found = None
    if plan.dwarf and sections is not None and cfi.ranges():
        found = Comparison(binary, sections, plan.progress, plan.only, plan.listing)
    problems = tuple(dict.fromkeys(map(str, cfi.problems)))
    verdict = Verdict(
        file=binary.name,
        functions=(),
        addresses_compared=0,
        disagreements=(),
        sizes=_sizes(binary, 0),
        problems=problems,
        compared=found is not None,
        loading=tuple(loading_problems(binary)),
        rewriter=binary.rewriter,
    )
    if found is not None:
        verdict = verdict._replace(
            functions=found.functions,
            sframe_sections=counted,
            addresses_compared=found.addresses_compared,
            disagreements=tuple(found.disagreements),
            sizes=_sizes(binary, found.not_described),
        )
    if plan.orc:
        from sframe_unwind.verify.orc import compared  # only kernels have ORC

        verdict = verdict._replace(orc=compared(binary, sections))
    if not plan.code:
        return verdict
    from sframe_unwind.verify.code_check import judged  # most comparisons do without the interpreter

    return judged(binary, sections, plan, verdict, found.disagreeing if found is not None else [])


def _sframe(binary: ElfBinary, plan: Plan) -> list[Section] | None:
    try:
        return binary.sframe
    except NoSFrameError:
        if plan.code or plan.orc:
            return None
        raise


def _counted(binary: ElfBinary, sections: list[Section]) -> tuple[tuple[str, int], ...]:
    """Return the names of a linked file's SFrame sections, each with its number of functions."""
    if binary.is_object:  # the linker makes one section of those of all its section groups
        return ()
    pairs = zip(binary.sframe_sections, sections)
    return tuple((section.name, sum(len(table) for table in decoded.tables)) for section, decoded in pairs)


def _sizes(binary: ElfBinary, not_described: int) -> Sizes:
    code = sum(end - start for start, end in binary.layout.code)
    size = binary.size_of
    return Sizes(
        sframe=size(SECTION_NAME),
        eh_frame=size(EH_FRAME),
        eh_frame_hdr=size(EH_FRAME_HDR),
        debug_frame=size(DEBUG_FRAME),
        code=code,
        not_described=not_described,
    )
