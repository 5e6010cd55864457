"""The rows of the database for one file.  The fields of these classes are the columns of its tables, in this order."""

from __future__ import annotations

from sframe_unwind.named_tuple import NamedTuple

SURVEYED = "surveyed"
NOTHING = "no unwind data"
FAILED = "cannot be surveyed"
LOST = "ended its worker"
"""The states of a file."""

IN_FILE, CONVERTED = "file", "convert"
"""The origins of SFrame."""


class FileRow(NamedTuple):
    """One file.  Sizes are in bytes."""

    state: str
    """One of the states above."""
    why: str = ""
    """Why it is not surveyed, or not converted."""
    machine: str = ""
    type: str = ""
    """``executable``, ``shared``, ``object``, ``core``."""
    bytes: int = 0
    origin: str = ""
    """Origin of the SFrame: :data:`IN_FILE`, :data:`CONVERTED`, or empty: there is none."""
    version: int = 0
    """Version of the SFrame."""
    code: int = 0
    sframe: int = 0
    sframe_plain: int = 0
    """Size of the section that ``convert`` writes without ``--compact``; 0: not wanted, or not possible."""
    sframe_shared: int = 0
    """Its size with shared rows."""
    sframe_compact: int = 0
    """Its size with shared rows, and with entries divided anew."""
    eh_frame: int = 0
    eh_frame_hdr: int = 0
    debug_frame: int = 0
    functions: int = 0
    """Number of functions that SFrame or DWARF CFI describes."""
    covered: int = 0
    """Bytes of code that SFrame describes."""
    in_cfi: int = 0
    """Bytes of code that DWARF CFI describes."""
    addresses: int = 0
    """Number of addresses at which SFrame and DWARF CFI were compared."""
    disagreements: int = 0
    interpreted: int = 0
    """Number of functions."""
    not_interpreted: str = ""
    """Why the code was not interpreted; empty: it was, or was not to be."""
    instructions: int = 0
    sframe_proved: int = 0
    sframe_wrong: int = 0
    sframe_unknown: int = 0
    dwarf_proved: int = 0
    dwarf_wrong: int = 0
    dwarf_unknown: int = 0
    findings: int = 0
    """Number of all findings; of each kind, the table has at most :data:`MOST_FINDINGS`."""
    compiler: str = ""
    assembler: str = ""
    linker: str = ""


class KindRow(NamedTuple):
    """Number of functions of a file with one outcome."""

    judge: str
    """The source of the outcome: ``tables`` (SFrame against DWARF CFI), ``code``, ``convert``, ``GNU as``."""
    kind: str
    reason: str
    functions: int
    bytes: int
    """Bytes of code."""


class FindingRow(NamedTuple):
    """One finding."""

    judge: str
    """``tables``, ``code`` or ``lint``."""
    kind: str
    """The part of a rule that is wrong (``cfa``, ``ra``, ``fp``), or the rule of ``lint``."""
    level: str
    """``error``, ``warning`` or ``note``."""
    section: str
    address: int
    """In an object file, an offset from the start of the section; for ``lint``, the offset in the SFrame section."""
    function: str
    table: str
    """The table that is wrong, ``sframe`` or ``dwarf``; empty: not known."""
    says: str
    """The rule of the table."""
    expected: str
    """The rule of the other table, or of the code."""


class ProfileRow(NamedTuple):
    """The verdict of one consumer on the SFrame of a file."""

    profile: str
    outcome: str
    rules: str
    """Why the section is refused, or functions are lost."""
    functions_lost: int
    bytes_lost: int


MOST_FINDINGS = 100
"""Maximum number of findings of one judge, kind and level that are kept for a file."""


class Surveyed(NamedTuple):
    """The results that are kept for one file."""

    file: FileRow
    kinds: tuple[KindRow, ...] = ()
    findings: tuple[FindingRow, ...] = ()
    profiles: tuple[ProfileRow, ...] = ()
    seconds: float = 0.0
    """Processor time that the file took."""
    peak: int = 0
    """The largest memory use of the process that examined the file, over its whole life, in bytes."""


class SurveyPlan(NamedTuple):
    """The examination of each file.  Results of another plan or another version of this package are kept apart."""

    convert: bool = False
    """For a file without SFrame, judge the section that ``convert`` would write."""
    code: bool = False
    """Compare the tables with the machine code."""
    most_code: int = 0
    """Files with more bytes of code than this are not interpreted; 0: all are."""
    compact: bool = False
    """Measure the section that ``convert --compact`` would write."""
