"""Describes the functions of a file by their machine code."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from sframe_unwind.address import Range, gaps, merged, overlap
from sframe_unwind.code.decode.lifting import Lifter
from sframe_unwind.code.decode.machines import MACHINES
from sframe_unwind.code.image.elf_image import exception_tables, image_of
from sframe_unwind.code.interpret.interpretation import Interpreter
from sframe_unwind.code.rows.function import Rows
from sframe_unwind.code.rows.starts import functions_of
from sframe_unwind.code.rows.whole_file import FunctionRows, rows_of_functions
from sframe_unwind.elf import ElfBinary
from sframe_unwind.sframe.constants import PauthKey
from sframe_unwind.translation.description import Description, Loss

NOTHING_KNOWN = "the code does not tell where its frame is"


def functions_by_code(
    binary: ElfBinary, known: Sequence[Range], with_exceptions: bool = True
) -> Iterator[FunctionRows]:
    """Yield the functions of a file with the rows that their machine code proves.

    :param known: the extents of the functions that are known; others are found by following calls from these, and from
        the addresses that the file exports or points to.
    :param with_exceptions: follow exceptions to their landing pads, which are found by the CFI.
    :raises MissingExtraError: the package that decodes the code is not installed.
    """
    machine = MACHINES[binary.arch.name]
    lifter = Lifter(machine)
    image = image_of(binary, machine)
    ranges = functions_of(image, machine, lifter, known)
    landing_pads = exception_tables(binary, image) if with_exceptions else lambda _: ()
    interpreter = Interpreter(image, machine, lifter, ranges, landing_pads)
    yield from rows_of_functions(interpreter, jobs=os.cpu_count() or 1)


def known_functions(binary: ElfBinary) -> list[Range]:
    """Return the extents of the functions that a file names: by CFI, else by symbols."""
    by_cfi = binary.cfi.ranges()
    covered = merged(by_cfi)
    return [*by_cfi, *(extent for extent in binary.symbols.extents() if not overlap([extent], covered))]


def described(functions: Iterable[FunctionRows], binary: ElfBinary) -> tuple[list[Description], list[Loss]]:
    """Return the descriptions of functions, and the parts of their code that have no row.

    A function whose rows have gaps becomes several descriptions.
    """
    descriptions: list[Description] = []
    losses: list[Loss] = []
    plts = [(section.address, section.end) for section in binary.sections if section.name.startswith(".plt")]
    for function in functions:
        repeats = (function.start, function.end) in plts
        descriptions += [_description(piece, repeats) for piece in function.pieces]
        missing = gaps((function.start, function.end), [(piece.start, piece.end) for piece in function.pieces])
        losses += [Loss(start, end, NOTHING_KNOWN) for start, end in missing]
    return descriptions, losses


def _description(piece: Rows, repeats: bool) -> Description:
    rules = piece.offsets, [found.rule for found in piece.rules]
    return Description(
        start=piece.start, end=piece.end, rules=rules, signal=False, pauth_key=PauthKey.A, repeats=repeats
    )
