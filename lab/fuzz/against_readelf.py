"""Compares the core with readelf on damaged sections in real files.

The core must read everything that readelf accepts in the same way, or refuse it for a known reason.  It must refuse
what readelf refuses.

    python -m lab.fuzz.against_readelf --count 20000

readelf itself crashes on many of them; these are not compared.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path
from random import Random

from lab.fuzz.fields import fields
from lab.fuzz.mutations import Mutator
from lab.fuzz.seeds import seeds
from sframe_unwind.elf import load
from sframe_unwind.errors import SFrameError
from sframe_unwind.report import dump
from sframe_unwind.sframe.header import FDE_SIZES
from sframe_unwind.sframe.raw import ATTRIBUTE_SIZE
from sframe_unwind.sframe.section import Section
from tests.cli.text import as_in_2_40, comparable
from tests.gdb.damage import damaged
from tests.hanging import HANG
from tests.samples.build import build, toolchain
from tests.samples.catalogue import ABIS

SAMPLE = "free_walk"
TIMEOUT = HANG
_HALF = 1 << 31
KINDS = [(abi, version) for abi, described in ABIS.items() for version in described.versions]

_REASONS = re.compile(
    r"beyond the section's end|outside the FRE sub-section|beyond the FRE sub-section's end|before its predecessor"
    r"|data words|word size 3|repetition size 0|no SFrame header|unknown (SFrame version|flag bits|ABI|F[RD]E type)"
    r"|in (little|big)-endian data|without a fixed return address offset|more than functions"
    r"|flexible row|control word|based on the CFA|truncated|bytes after the last table|needs \d+ bytes"
    r"|file for EM_|padding|register"
)
"""All reasons for which the core may refuse a function or a section that readelf accepts."""


class Disagreement(AssertionError):  # noqa: N818  # its name in the output
    """readelf gives another result."""


class Comparison:
    """Mutations of one sample's section, each put into a copy of the sample and read by both."""

    def __init__(self, abi: str, version: int, folder: Path) -> None:
        self._executable = build(SAMPLE, abi, version, "pac" if ABIS[abi].signs else "O2")
        self._readelf = toolchain(abi, version) / "readelf"
        self._version = version
        self._folder = folder
        (self._seed,) = (seed for seed in seeds() if seed.name == f"{SAMPLE} {abi} version {version}")
        self._flags = Section(self._seed.data, self._seed.address).tables[0].header.flags
        self._mutator = Mutator((self._seed,), fields)

    def compare(self, number: int) -> str:
        """Compare one mutation; return the result in a few words.

        :raises Disagreement: the two differ for no known reason.
        """
        data = self._mutator.mutate(Random(number)).data[: len(self._seed.data)]
        file = damaged(self._executable, lambda _: data, self._folder)
        command = [str(self._readelf), "--sframe", str(file)]
        theirs = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT, check=False)
        reasons: list[SFrameError] = []
        sections: list[Section] = []
        try:
            sections = load(file)
            ours = "".join(dump.to_text(sections, reasons.append))
        except SFrameError as error:
            ours = ""
            reasons.append(error)
        for reason in reasons:
            if not _REASONS.search(str(reason)):
                raise Disagreement(f"input {number}: refused for an unexpected reason: {reason}")
        if theirs.returncode < 0:
            return "readelf dies"
        if "rror:" in theirs.stderr:
            if not (
                reasons or "Out of Memory" in theirs.stderr or _is_in_disorder(sections[0])
            ):  # readelf cannot allocate 0 bytes
                raise Disagreement(f"input {number}: readelf rejects it: {theirs.stderr}")
            return "both refuse"
        if not ours:
            return "refused here"
        if self._is_read_otherwise(sections[0]):
            return "read otherwise"
        return self._accepted(number, ours, theirs.stdout)

    def _is_read_otherwise(self, section: Section) -> bool:
        """Return whether a header has values that no producer writes, and that readelf treats in another way.

        These are a table of version 1 or 2 that is not sorted (see `starts_are_pcrel`), a fixed offset of FP or RA for
        rows with their own one (readelf shows the header's), and functions and rows that do not directly follow the
        previous data (readelf expects them there).
        """
        table = section.tables[0]
        head = table.header
        fixed = head.fixed_fp_offset or (table.arch.ra is not None and head.fixed_ra_offset)
        moved = head.fde_offset or head.fre_offset != head.num_fdes * FDE_SIZES[head.version]
        return bool(fixed or moved) or (head.version < 3 and head.flags != self._flags)

    def _accepted(self, number: int, ours: str, theirs: str) -> str:
        """Compare the data that both read, function by function."""
        ours = _normal(as_in_2_40(ours) if self._version == 1 else ours)
        head, *functions = ours.split("funcidx")
        their_head, *their_functions = _normal(theirs).split("funcidx")
        if head != their_head or len(functions) != len(their_functions):
            raise Disagreement(f"input {number}: {head}\nreadelf: {their_head}")
        refused = 0
        for function, their in zip(functions, their_functions):
            if "malformed" in function:
                refused += 1
            elif function != their:
                raise Disagreement(f"input {number}: {function}\nreadelf: {their}")
        return "the same but for functions refused here" if refused else "the same"


def _is_in_disorder(section: Section) -> bool:
    """Return whether rows are in another order than the functions, up to the end of the section.

    readelf swaps the bytes of foreign sections from the first row to the last, and notices this afterwards.
    """
    table = section.tables[0]
    count = position = 0
    for function in table.functions():
        position += ATTRIBUTE_SIZE if table.header.version == 3 else 0
        if function.fde.rows_offset != position:
            return True
        count += function.fde.num_rows
        position += sum(function.fde.address_size + len(row) for _, row in table.raw_rows(function))
    return (count, position, table.end) != (table.header.num_fres, table.header.fre_size, section.size)


def _normal(text: str) -> str:
    """Return a dump without the parts that readelf cannot print correctly.

    It shows all numbers as signed 32-bit ones, leaves no blank after a full cell, and before 2.46 shows a row without
    words as one with the offset -1, and a return address that is padding as one at offset 0.
    """
    text = re.sub(r"(?:(?<=\+)|(?<=[=:] ))-?\d{10,}\b", _wrapped, comparable(text))
    text = re.sub(r"(?<=[0-9a-f]{16})  [sf]p\+-1 +u +[fu](\[s\])?$", "  RA undefined", text, flags=re.MULTILINE)
    text = re.sub(r" U(?=(\[s\])?$)", " c+0", text, flags=re.MULTILINE)
    return text.replace(" ", "")


def _wrapped(number: re.Match[str]) -> str:
    return str((int(number[0]) + _HALF) % (2 * _HALF) - _HALF)


def main() -> int:
    """Run the command; return its exit status: 1 after a disagreement."""
    description = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m lab.fuzz.against_readelf", description=description)
    parser.add_argument("--count", type=int, default=1000, metavar="N", help="inputs for each ABI and version")
    options = parser.parse_args()
    status = 0
    for abi, version in KINDS:
        seen: Counter[str] = Counter()
        with tempfile.TemporaryDirectory() as folder:
            comparison = Comparison(abi, version, Path(folder))
            for number in range(options.count):
                try:
                    seen[comparison.compare(number)] += 1
                except Disagreement as disagreement:
                    seen["DISAGREEMENTS"] += 1
                    print(disagreement)
                    status = 1
        print(f"{abi}, version {version}: " + "; ".join(f"{what}: {number:,}" for what, number in sorted(seen.items())))
    return status


if __name__ == "__main__":
    raise SystemExit(main())
