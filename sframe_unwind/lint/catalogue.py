"""The rules of ``lint``.  A rule's number and name never change their meaning.

``docs/lint-reference.md`` explains each."""

from __future__ import annotations

from enum import Enum

from sframe_unwind.named_tuple import NamedTuple


class Level(str, Enum):
    """How much a finding matters.  The names are those of SARIF."""

    ERROR = "error"
    """A requested consumer refuses the section."""
    WARNING = "warning"
    """A requested consumer loses functions, or the section violates the specification."""
    NOTE = "note"
    """Worth knowing; no known consumer minds it."""


class Rule(NamedTuple):
    """One rule."""

    number: int
    name: str
    title: str
    """Describes a section that breaks the rule."""
    level: Level | None
    """Level of a finding that changes no verdict; ``None``: such a finding is not shown, because only some consumers
    mind it."""

    @property
    def id(self) -> str:
        """Its number as people and tools cite it: ``SF030``."""
        return f"SF{self.number:03}"

    def __str__(self) -> str:
        return f"{self.id} {self.name}"


_W, _N = Level.WARNING, Level.NOTE

# The section in its file.
SECTION_EMPTY = Rule(1, "section-empty", "the section has no bytes", _W)
SECTION_NOT_LOADED = Rule(2, "section-not-loaded", "the section is not within one loaded segment", _W)
SEGMENT_MISSING = Rule(3, "segment-missing", "a linked file has no segment PT_GNU_SFRAME", _W)
SEGMENT_LONGER = Rule(4, "segment-longer", "the segment PT_GNU_SFRAME is longer than the section", _N)
TEXT_MISSING = Rule(5, "text-missing", "the file has no executable code", _W)
CONCATENATED = Rule(6, "concatenated-headers", "several headers in one section", _W)
TRAILING_BYTES = Rule(7, "trailing-bytes", "bytes after the last table", _W)
UNLOADABLE = Rule(8, "segments-unloadable", "segments that cannot be loaded", _W)
CODE_REWRITTEN = Rule(9, "code-rewritten", "the code was rewritten after the section, or the section moved", _W)

# The header.
HEADER_MALFORMED = Rule(10, "header-malformed", "no header: too short, or another magic number", _W)
BYTE_ORDER = Rule(11, "byte-order", "the byte order is not that of the file or of the ABI", _W)
VERSION_UNKNOWN = Rule(12, "version-unknown", "no version of the format has this number", _W)
VERSION_NOT_READ = Rule(13, "version-not-read", "the consumer does not read this version", None)
FLAGS_UNKNOWN = Rule(14, "flags-unknown", "flag bits that the version does not define", _W)
ABI_UNKNOWN = Rule(15, "abi-unknown", "an ABI number that the specification does not have", _W)
ABI_OF_OTHER_MACHINE = Rule(16, "abi-of-other-machine", "the ABI is not that of the file's machine", _W)
ABI_NOT_READ = Rule(17, "abi-not-read", "the consumer does not exist for this machine", None)
NOT_SORTED = Rule(18, "flag-sorted-missing", "a linked file without the flag FDE_SORTED", _W)
NOT_PCREL = Rule(19, "flag-pcrel-missing", "the flag FDE_FUNC_START_PCREL is not set", None)
PCREL_WRONG = Rule(20, "flag-pcrel-wrong", "the flag FDE_FUNC_START_PCREL contradicts the start fields", _W)
AUX_HEADER = Rule(21, "auxiliary-header", "there is an auxiliary header", _N)
NO_FUNCTIONS = Rule(22, "no-functions", "there are no FDEs", _N)
NO_ROWS = Rule(23, "no-rows", "there are no FREs", _N)
AREA_OUTSIDE = Rule(24, "area-outside", "the FDE or FRE sub-section ends after the section", _W)
AREAS_OVERLAP = Rule(25, "areas-overlap", "the FRE sub-section begins before the FDEs end", _W)
AREAS_MOVED = Rule(26, "areas-moved", "the sub-sections do not follow each other directly", None)
ROW_COUNT = Rule(27, "row-count-wrong", "the header's number of FREs is not that of the functions", _W)
FIXED_OFFSET = Rule(28, "fixed-offset-unusual", "a fixed offset that no producer writes", _W)
PCREL_SET = Rule(29, "flag-pcrel-set", "the flag FDE_FUNC_START_PCREL is set", None)

# FDEs.
FDE_UNSORTED = Rule(30, "fde-unsorted", "FDEs that are not in the order of their addresses", _W)
FDE_SAME_ADDRESS = Rule(31, "fde-same-address", "several FDEs for one address", _W)
FDE_OVERLAP = Rule(32, "fde-overlap", "FDEs whose functions overlap", _W)
FDE_OUTSIDE_TEXT = Rule(33, "fde-outside-text", "an FDE for an address that is not code", _W)
FDE_SIZE_0 = Rule(34, "fde-size-0", "an FDE of a function of size 0", _W)
FDE_ATTRIBUTES = Rule(35, "fde-attributes-outside", "an attribute record outside the FRE sub-section", _W)
FRE_TYPE = Rule(36, "fre-type-unknown", "an unknown FRE type", _W)
FDE_TYPE = Rule(37, "fde-type-unknown", "an unknown FDE type", _W)
REPETITION_0 = Rule(38, "repetition-size-0", "a mask FDE with repetition size 0", _W)
FLEXIBLE = Rule(39, "flexible-fde", "a flexible FDE, for a consumer that expects none", None)
NO_ROWS_OF_FUNCTION = Rule(40, "fde-without-rows", "a function without rows that is not a signal trampoline", _W)
LARGE_FUNCTION = Rule(41, "fde-beyond-text", "a function that ends after its section of code", _W)
SIGNAL_WITHOUT_ROWS = Rule(42, "signal-without-rows", "a signal trampoline without rows", None)
INIT_CODE = Rule(43, "fde-of-init-code", "a function of a module's initialisation", None)
MASK_FDE = Rule(44, "mask-fde", "a mask FDE, as of a PLT", None)

# Rows.
ROW_OUTSIDE = Rule(50, "row-outside", "a row outside the FRE sub-section", _W)
ROW_ORDER = Rule(51, "row-order", "a row that starts before its predecessor", _W)
ROW_SAME_ADDRESS = Rule(52, "row-same-address", "two rows of a function for one address", _W)
ROW_AFTER_END = Rule(53, "row-after-function", "a row that starts after its function's end", _W)
ROW_AT_END = Rule(54, "row-at-end", "a row that starts at its function's end", _W)
ROW_WORD_SIZE = Rule(55, "row-word-size", "data words of the invalid size 3", _W)
WORDS_LEFT_OVER = Rule(56, "row-words-left-over", "more data words than the row has use for", _W)
WORDS_MISSING = Rule(57, "row-words-missing", "a flexible row with fewer than two data words", _W)
FIRST_ROW_LATE = Rule(58, "first-row-late", "the first row does not start at the function's start", _W)
CFA_NOT_REGISTER = Rule(59, "flexible-cfa-without-register", "a flexible CFA that is based on no register", _W)
OUTERMOST = Rule(60, "outermost-row", "a row without data words: the return address is undefined", None)
ROW_UNDEFINED = Rule(61, "row-undefined", "a row that the ABI gives no meaning", _W)
CFA_ALIGNMENT = Rule(62, "cfa-alignment", "a CFA that is not aligned as the ABI aligns the stack", _N)
ROW_SAME_START = Rule(63, "row-same-start", "two rows for a function's first address", None)
ROW_OUTSIDE_SECTION = Rule(64, "row-outside-section", "a row outside the section", None)
ROW_WORDS_MANY = Rule(65, "row-words-many", "more data words than a row of any ABI has", None)
MASK_ROW_AFTER_END = Rule(66, "mask-row-after-function", "a row of a mask FDE that starts after its function", None)

# Against the code.
CODE_WITHOUT_FDE = Rule(70, "code-without-fde", "code that no FDE describes", _N)
FUNCTION_WITHOUT_ROWS = Rule(71, "function-without-rows", "a function that no FDE describes, and what it is", _N)
NOT_PASSED = Rule(72, "code-not-passed", "the share of code that a reliable unwinder cannot pass", _N)

# Object files.
RELOCATION_STRAY = Rule(80, "relocation-stray", "a relocation that is not for a start field", _W)
RELOCATION_MISSING = Rule(81, "relocation-missing", "a start field without a relocation", _W)
RELOCATION_COMDAT = Rule(82, "relocation-comdat", "relocations to functions in section groups", _N)
RELOCATION_PCREL = Rule(83, "relocation-pcrel", "the flag FDE_FUNC_START_PCREL contradicts a relocation", _W)

RULES: tuple[Rule, ...] = tuple(
    sorted((value for value in list(globals().values()) if isinstance(value, Rule)), key=lambda rule: rule.number)
)
"""All rules, in the order of their numbers."""
