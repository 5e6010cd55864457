"""Describes the functions of a file by their machine code."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

from sframe_unwind.address import Range, merged, overlap
from sframe_unwind.code.elf_image import exception_tables, image_of
from sframe_unwind.code.interpretation import Interpreter
from sframe_unwind.code.lifting import Lifter
from sframe_unwind.code.machines import MACHINES
from sframe_unwind.code.rows.function import Rows
from sframe_unwind.code.rows.starts import functions_of
from sframe_unwind.code.rows.whole_file import FunctionRows, rows_of_functions
from sframe_unwind.elf import ElfBinary
from sframe_unwind.sframe.constants import PauthKey
from sframe_unwind.translation.description import Description, Loss

NOTHING_KNOWN = "the code does not tell where its frame is"


def functions_by_code(
    binary: ElfBinary, with_cfi: bool = True, is_wanted: Callable[[Range], bool] = lambda _: True
) -> Iterator[FunctionRows]:
    """Yield the functions of a file with the rows that their machine code proves.

    :param with_cfi: the extents of functions by the CFI, and its landing pads, may be used.
    :param is_wanted: returns whether a function, by its extent, is wanted.
    :raises SFrameError: the package that decodes the code is not installed.
    """
    machine = MACHINES[binary.arch.name]
    lifter = Lifter(machine)
    image = image_of(binary, machine)
    known = list(_known(binary, with_cfi))
    ranges = functions_of(image, machine, lifter, known)
    landing_pads = exception_tables(binary, image) if with_cfi else lambda _: ()
    interpreter = Interpreter(image, machine, lifter, ranges, landing_pads)
    for function in rows_of_functions(interpreter, jobs=os.cpu_count() or 1):
        if is_wanted((function.start, function.end)):
            yield function


def _known(binary: ElfBinary, with_cfi: bool) -> Iterator[Range]:
    """Yield the extents of functions that the file names: by CFI, else by symbols."""
    by_cfi = binary.cfi.ranges() if with_cfi else []
    yield from by_cfi
    covered = merged(by_cfi)
    for extent in binary.symbols.extents():
        if not overlap([extent], covered):
            yield extent


def described(functions: Iterable[FunctionRows], binary: ElfBinary) -> tuple[list[Description], list[Loss]]:
    """Return the descriptions of functions, and those of which nothing is known or only a part.

    A function whose rows have gaps becomes several descriptions.
    """
    descriptions: list[Description] = []
    losses: list[Loss] = []
    plts = [(section.address, section.end) for section in binary.sections if section.name.startswith(".plt")]
    for function in functions:
        repeats = (function.start, function.end) in plts
        descriptions += [_description(piece, repeats) for piece in function.pieces]
        known = sum(piece.end - piece.start for piece in function.pieces)
        if not known:
            losses.append(Loss(function.start, function.end, NOTHING_KNOWN))
    return descriptions, losses


def _description(piece: Rows, repeats: bool) -> Description:
    rules = piece.offsets, [found.rule for found in piece.rules]
    return Description(
        start=piece.start, end=piece.end, rules=rules, signal=False, pauth_key=PauthKey.A, repeats=repeats
    )
