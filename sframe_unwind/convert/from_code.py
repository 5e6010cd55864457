"""Describes the functions of a file by their machine code."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from sframe_unwind.address import Range, merged, overlap
from sframe_unwind.code.decode.lifting import Lifter
from sframe_unwind.code.decode.machines import MACHINES
from sframe_unwind.code.image.elf_image import exception_tables, image_of
from sframe_unwind.code.image.ranges import CodeRanges
from sframe_unwind.code.interpret.interpretation import Interpreter
from sframe_unwind.code.judge.checking import Checker
from sframe_unwind.code.rows.function import Rows
from sframe_unwind.code.rows.starts import functions_of
from sframe_unwind.code.rows.whole_file import FunctionRows, rows_of_functions
from sframe_unwind.elf import ElfBinary
from sframe_unwind.sframe.constants import PauthKey
from sframe_unwind.translation.description import Description
from sframe_unwind.unwind.signal_frame import is_trampoline
from sframe_unwind.verify.needed import needed

NOTHING_KNOWN = "the code does not tell where its frame is"
NO_TYPE = "its symbol has a size and no type, and no known call enters it"


def functions_by_code(
    binary: ElfBinary,
    known: Sequence[Range],
    with_exceptions: bool = True,
    starts: Sequence[int] | None = None,
    registers: Sequence[int] = (),
    only: Sequence[Range] | None = None,
) -> Iterator[FunctionRows]:
    """Yield the functions of a file with the rows that their machine code proves.

    :param known: the extents of the functions that are known; others are found by following calls from these, and from
        the addresses that the file exports or points to.
    :param with_exceptions: follow exceptions to their landing pads, which are found by the CFI.
    :param starts: where further functions start, see :func:`functions_of`.
    :param registers: DWARF numbers of further registers that the rules have.
    :param only: yield known functions that overlap these, and others that determine what they do; ``None``: all.
    :raises MissingExtraError: the package that decodes the code is not installed.
    """
    machine = MACHINES[binary.arch.name].for_any_caller()
    lifter = Lifter(machine)
    image = image_of(binary, machine)
    if only is None:
        untyped = frozenset(start for start, _ in untyped_code(binary, []))
        ranges = functions_of(image, machine, lifter, known, starts=starts, only_called=untyped)
    else:
        ranges = CodeRanges([one for one in known if image.is_code(one[0])])
    landing_pads = exception_tables(binary, image) if with_exceptions else lambda _: ()
    interpreter = Interpreter(image, machine, lifter, ranges, landing_pads, tracked=registers)
    numbers = None if only is None else needed(Checker(interpreter, {}), binary, only)
    for function in rows_of_functions(interpreter, os.cpu_count() or 1, registers, numbers):
        # The kernel leads to a signal trampoline: it is not entered by a call.
        is_signal = is_trampoline(binary.arch, image.bytes_at, function.start)
        yield function._replace(pieces=[]) if is_signal else function


def known_functions(binary: ElfBinary) -> list[Range]:
    """Return the extents of the functions that a file names: by CFI, else by symbols."""
    by_cfi = binary.cfi.ranges()
    covered = merged(by_cfi)
    typed = (one for one in binary.symbols if one.size and one.is_function)
    return [*by_cfi, *_outside(((one.address, one.address + one.size) for one in typed), covered)]


def untyped_code(binary: ElfBinary, covered: list[Range]) -> Iterator[Range]:
    """Yield the extents of symbols with a size and no type outside of other code.

    Linux marks code in this way that is not entered by calls, such as the entries of exceptions.  It is a function only
    if something calls it.

    :param covered: the other code, in order and without overlaps.
    """
    found = sorted(
        {(one.address, one.address + one.size) for one in binary.symbols if one.size and not one.is_function}
    )
    return _outside((one for one in found if binary.layout.code_end(one[0]) is not None), covered)


def _outside(extents: Iterable[Range], covered: list[Range]) -> Iterator[Range]:
    return (extent for extent in extents if not overlap([extent], covered))


def description_of(piece: Rows, repeats: bool) -> Description:
    """Return the description of code without a gap.

    :param repeats: the rows may repeat, like those of a PLT.
    """
    rules = piece.offsets, [found.rule for found in piece.rules]
    key = PauthKey.B if piece.b_key else PauthKey.A
    return Description(start=piece.start, end=piece.end, rules=rules, signal=False, pauth_key=key, repeats=repeats)
