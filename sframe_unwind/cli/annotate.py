"""Write the .cfi_* directives for functions in assembly that have none, from their machine code.

FILE is what was assembled, an object file or a linked file.  Prints the instructions of each
FUNCTION, and each directive before the first instruction for which it applies.  Without FUNCTION,
all functions without CFI are shown.  A function that has CFI already is left alone, and so is code
whose symbol has a size and no type, as the kernel's SYM_CODE_START writes it, unless it is named or
a call to it is known: an exception may enter it.  The directives assume that a function is entered
by a call, and that what it calls returns and preserves the registers of the ABI.

--patch prints a patch of the sources instead, if FILE has line information (as -g): "patch -p1"
applies it.  A directive that is needed between two instructions of the same line, as in a macro,
cannot be inserted; then the function stays as it is, and a line says where.  --prove assembles the
patched sources first, and prints the patch only if the machine code is the same as before and proves
the CFI at each instruction.

The extra "code" is needed: pip install pyvex 'bitstring<5' capstone.

The exit status is 0, 1 if some function or part of one has no directives, 2 if nothing could be done.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from sframe_unwind import elf
from sframe_unwind.annotate.functions import HAS_CFI, Annotated, annotated
from sframe_unwind.annotate.listing import lines, title, to_json
from sframe_unwind.annotate.patch import patch_of
from sframe_unwind.annotate.proof import prove
from sframe_unwind.cli.file_name import file_name, input_name
from sframe_unwind.cli.function_options import extents
from sframe_unwind.cli.status import CANNOT, DONE, NOT_ALL, complain, complain_of
from sframe_unwind.errors import SFrameError, counted
from sframe_unwind.report.terminal import printable
from sframe_unwind.show.file import ShownFile

EXAMPLES = """\
  sframe-unwind annotate memcpy.o
  sframe-unwind annotate libfoo.so hash_block
  sframe-unwind annotate --patch memcpy.o | patch -p1
  sframe-unwind annotate --patch -p ../src --prove --as "gcc -c -g -Iinclude" memcpy.o > cfi.patch
"""
_DEFAULT = "cc -c -g"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("file", metavar="FILE", type=input_name, help="an executable, shared library or object file")
    parser.add_argument("functions", metavar="FUNCTION", nargs="*", default=[], help="main, 0x1185, .text+0x10")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--patch", action="store_true", help="print a patch of the sources")
    output.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "-p",
        "--source-dir",
        metavar="FOLDER",
        type=file_name,
        help="where the sources are, if not at the paths in FILE; paths in the patch are relative to it",
    )
    parser.add_argument(
        "--prove", action="store_true", help="with --patch: assemble the patched sources, and check them"
    )
    parser.add_argument(
        "--as",
        dest="assembler",
        metavar="COMMAND",
        help=f"with --prove: the assembler and its options (default: {_DEFAULT})",
    )


def run(options: argparse.Namespace) -> int:
    """Print the functions or the patch; return the exit status."""
    for option, is_given, needs, is_there in (
        ("--prove", options.prove, "--patch", options.patch),
        ("--source-dir", options.source_dir is not None, "--patch", options.patch),
        ("--as", options.assembler is not None, "--prove", options.prove),
    ):
        if is_given and not is_there:
            complain(f"annotate: {option} has no meaning without {needs}")
            return CANNOT
    try:
        with elf.opened(options.file) as binary:
            binary.check_sections()
            functions = annotated(binary, extents(binary, options.functions))
            if options.patch:
                status, output = _patch(options, binary, functions)
            else:
                status, output = _shown(options, ShownFile(binary), [one for one in functions if one.is_wanted])
    except SFrameError as error:
        complain_of(options.file, error)
        return CANNOT
    text = "".join(output)
    if options.patch:  # it has the bytes of the sources, whatever their encoding is
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
    else:
        sys.stdout.write(text)
    return status


def _shown(options: argparse.Namespace, file: ShownFile, functions: Sequence[Annotated]) -> tuple[int, Sequence[str]]:
    """Return the exit status and the lines to print."""
    status = DONE if all(one.is_whole for one in functions) else NOT_ALL
    if options.json:
        found = [to_json(file, function) for function in functions]
        return status, [json.dumps({"file": options.file, "functions": found}) + "\n"]
    blocks = [[*map(printable, lines(file, one))] for one in functions if one.directives]
    # There are thousands in a linked file.
    is_counted = not options.functions
    described = sum(one.why == HAS_CFI for one in functions)
    rest = [
        f"{printable(title(file, one))}: {one.why}"
        for one in functions
        if one.why and not (is_counted and one.why == HAS_CFI)
    ]
    if is_counted and described:
        rest.append(f"{counted(described, 'function')} with CFI {'is' if described == 1 else 'are'} left alone")
    if not functions:
        rest = ["no function"]
    blocks += [rest] if rest else []
    return status, ["\n".join(("\n".join(block) + "\n") for block in blocks)]


def _patch(
    options: argparse.Namespace, binary: elf.ElfBinary, functions: Sequence[Annotated]
) -> tuple[int, Sequence[str]]:
    """Return the exit status and the lines to print; report what is not in the patch."""
    patch = patch_of(binary, options.file, functions, options.source_dir)
    for obstacle in patch.obstacles:
        complain(str(obstacle))
    for function in functions:
        if function.why and not function.is_whole:
            complain(f"{function.name}: {function.why}")
        for start, end in function.gaps:
            complain(
                f"{function.name}: no directives for {counted(end - start, 'byte')} at {binary.layout.spot(start)}"
            )
    output = []
    if options.prove and patch.files:
        proof = prove(binary, patch, options.assembler or _DEFAULT)
        for problem in proof.problems:
            complain(problem)
        if proof.problems:
            return CANNOT, []
        what = f"{counted(proof.functions, 'function')}, at each of {counted(proof.instructions, 'instruction')}"
        output.append(f"# proved: the CFI of {what}\n")
    for file in patch.files:
        output += file.diff()
    is_whole = not patch.obstacles and all(one.is_whole for one in functions)
    return DONE if is_whole else NOT_ALL, output
