"""The consumers of SFrame, and the reaction of each to a section that breaks a rule.

:mod:`sframe_unwind.consumers` has the sources.  Data that a consumer does not read has no effect on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from sframe_unwind import consumers
from sframe_unwind.consumers import Consumer
from sframe_unwind.lint import catalogue as c
from sframe_unwind.lint.catalogue import Rule
from sframe_unwind.named_tuple import NamedTuple


class Kind(Enum):
    """The effect of a broken rule on a section."""

    REFUSES = "refuses"
    """The whole section is refused or removed."""
    LOSES = "loses"
    """The function, or a part of it, cannot be unwound."""
    MINDS = "minds"
    """The consumer reads the section, although its authors do not expect such a section."""


class Effect(NamedTuple):
    """The effect of a broken rule on a consumer."""

    kind: Kind
    then: str
    """The effect in words."""


class Objects(Enum):
    """The treatment of files that are not linked."""

    READ = "read"
    """It reads them like any other file."""
    MODULE = "module"
    """It loads kernel modules: it relocates the section, and sorts the FDEs."""
    NOT_LOADED = "not loaded"
    """It never reads such a file, because a linker does that."""


class Profile(NamedTuple):
    """The behaviour of one consumer."""

    consumer: Consumer
    objects: Objects
    effects: Mapping[Rule, Effect]
    unread: str
    """The effect of a section of another version, or for another machine."""
    reads_rows_size: bool = True
    """It checks the size of the FRE sub-section in the header."""
    is_lazy: bool = False
    """It reads a function only when one of its addresses is looked up, and only up to the row for that address."""
    finds_nearest: bool = False
    """A search takes the last function that begins at or before an address, and considers no other."""
    is_linux: bool = False
    """It reads as Linux does: errors in a function have an effect only if its FDE can be read."""
    needs_all_functions: bool = False
    """It gives up a stack at a function that has no rows, unless that is a leaf function."""

    @property
    def name(self) -> str:
        """The name that ``--for`` takes."""
        return self.consumer.name


def _refuses(then: str, *rules: Rule) -> dict[Rule, Effect]:
    return dict.fromkeys(rules, Effect(Kind.REFUSES, then))


def _minds(then: str, *rules: Rule) -> dict[Rule, Effect]:
    return dict.fromkeys(rules, Effect(Kind.MINDS, then))


def _loses(then: str, *rules: Rule) -> dict[Rule, Effect]:
    return dict.fromkeys(rules, Effect(Kind.LOSES, then))


_STALE = "stacks through code that was rewritten, or from which the section was moved away, are wrong, or end"
_MALFORMED = (c.HEADER_MALFORMED, c.BYTE_ORDER, c.VERSION_UNKNOWN)
_LATE = (c.FIRST_ROW_LATE, c.NO_ROWS_OF_FUNCTION)

SPEC = Profile(
    consumers.SPEC,
    Objects.READ,
    {
        **_refuses(
            "a reader cannot use the section",
            *(*_MALFORMED, c.FLAGS_UNKNOWN, c.ABI_UNKNOWN, c.ABI_OF_OTHER_MACHINE, c.AREA_OUTSIDE),
            c.RELOCATION_STRAY,
        ),
        **_loses("there is no row for these addresses", *_LATE),
        **_loses("a reader of one header does not see the function", c.CONCATENATED),
        **_loses(
            "the function cannot be decoded",
            *(c.FDE_ATTRIBUTES, c.FRE_TYPE, c.FDE_TYPE, c.REPETITION_0),
            *(c.ROW_OUTSIDE, c.ROW_ORDER, c.ROW_WORD_SIZE, c.ROW_UNDEFINED),
        ),
        **_minds(_STALE, c.CODE_REWRITTEN),
    },
    "a reader cannot use the section",
)

_REGISTRATION = "registration fails (EINVAL): the kernel has no SFrame for the file"
_REMOVED = (
    "the kernel removes the whole section at the first lookup that meets it (EFAULT);"
    " with CONFIG_SFRAME_VALIDATION registration fails"
)
_NOT_FOUND = "the stack ends here, or goes on by frame pointers (EINVAL)"
_NOT_VALID = f"{_NOT_FOUND}; with CONFIG_SFRAME_VALIDATION registration fails"
_NOT_RUN = "a process cannot load the file"
_LINUX_HEADER = (
    *(*_MALFORMED, c.SECTION_EMPTY, c.SECTION_NOT_LOADED, c.TEXT_MISSING, c.NOT_PCREL, c.AUX_HEADER),
    *(c.NO_FUNCTIONS, c.NO_ROWS, c.AREA_OUTSIDE, c.AREAS_OVERLAP),
)
_LINUX_FUNCTIONS = (
    *(c.FDE_UNSORTED, c.FDE_SAME_ADDRESS, c.FRE_TYPE, c.FDE_TYPE, c.ROW_OUTSIDE, c.ROW_ORDER, c.ROW_SAME_ADDRESS),
    *(c.ROW_AFTER_END, c.ROW_WORD_SIZE, c.WORDS_LEFT_OVER, c.WORDS_MISSING),
)
_LINUX_LOSES = {
    **_loses(_NOT_FOUND, *_LATE, c.SIGNAL_WITHOUT_ROWS, c.FDE_OVERLAP, c.CFA_NOT_REGISTER),
    **_loses("one section is one table: the function is never read", c.CONCATENATED),
    **_loses(
        "the lookup fails (EINVAL) before the frame is marked as the outermost (from reading the source)", c.OUTERMOST
    ),
}
_DIVISION = "the kernel divides by zero at the first lookup that meets it (from reading the source)"

LINUX_USER = Profile(
    consumers.LINUX_USER,
    Objects.NOT_LOADED,
    {
        **_refuses(_REGISTRATION, *_LINUX_HEADER, c.NOT_SORTED),
        **_refuses(_NOT_RUN, c.UNLOADABLE),
        **_refuses(_REMOVED, *_LINUX_FUNCTIONS),
        **_refuses(_DIVISION, c.REPETITION_0),
        **_loses(_NOT_VALID, c.FDE_OUTSIDE_TEXT, c.FDE_ATTRIBUTES),
        **_LINUX_LOSES,
        **_minds(_STALE, c.CODE_REWRITTEN),
    },
    _REGISTRATION,
    is_lazy=True,
    finds_nearest=True,
    is_linux=True,
)

_KERNEL_REFUSES = "the kernel or module has no SFrame: the reader warns once, and leaves it out"
_KERNEL_LOOKUP = "the lookup fails (EFAULT): the stack is not reliable; with CONFIG_SFRAME_VALIDATION no SFrame at all"

LINUX_KERNEL = Profile(
    consumers.LINUX_KERNEL,
    Objects.MODULE,
    {
        **_refuses(_KERNEL_REFUSES, *_LINUX_HEADER, c.NOT_SORTED, c.RELOCATION_STRAY),
        **_refuses(_KERNEL_LOOKUP, *_LINUX_FUNCTIONS),
        **_refuses(_DIVISION, c.REPETITION_0),
        **_loses("the kernel has no SFrame for such code", c.FDE_OUTSIDE_TEXT, c.FDE_ATTRIBUTES, c.INIT_CODE),
        **_LINUX_LOSES,
        c.FLEXIBLE: Effect(Kind.MINDS, "flexible FDEs are not expected in the kernel"),
    },
    _KERNEL_REFUSES,
    is_lazy=True,
    finds_nearest=True,
    is_linux=True,
    needs_all_functions=True,
)

_DWARF = "`backtrace` finds no usable SFrame and unwinds the whole stack by DWARF CFI"
_BEYOND = "`backtrace` reads FDEs and rows from other places than they are at"
_TWO_AT_START = "the first of the two rows holds for all of the function"

GLIBC = Profile(
    consumers.GLIBC,
    Objects.NOT_LOADED,
    {
        **_refuses(
            _DWARF,
            *(*_MALFORMED, c.SECTION_EMPTY, c.SECTION_NOT_LOADED, c.SEGMENT_MISSING, c.FLAGS_UNKNOWN, c.NOT_SORTED),
            c.NO_FUNCTIONS,
        ),
        **_refuses(_BEYOND, c.AREAS_OVERLAP, c.AREAS_MOVED, c.AREA_OUTSIDE, c.PCREL_WRONG),
        **_refuses(_NOT_RUN, c.UNLOADABLE),
        **_refuses("`backtrace` divides by zero (SIGFPE)", c.REPETITION_0),
        **_refuses("`backtrace` may read after the section (SIGSEGV)", c.ROW_OUTSIDE_SECTION, c.ROW_WORD_SIZE),
        **_loses(
            f"{_DWARF}, if this function is on it",
            *(*_LATE, c.FDE_UNSORTED, c.CONCATENATED, c.FRE_TYPE, c.ROW_ORDER),
            *(c.ROW_WORDS_MANY, c.OUTERMOST),
        ),
        **_loses(_TWO_AT_START, c.ROW_SAME_START),
        **_minds(_STALE, c.CODE_REWRITTEN),
    },
    _DWARF,
    is_lazy=True,
    reads_rows_size=False,
)

_NOT_DECODED = "`sframe_decode` fails"
_OTHER_PLACES = "the library reads FDEs and rows from other places than they are at"
_LIBSFRAME_REFUSES = {
    **_refuses(_NOT_DECODED, c.SECTION_EMPTY, c.HEADER_MALFORMED, c.VERSION_UNKNOWN, c.FLAGS_UNKNOWN),
    **_minds("`sframe_decode` fails on a machine of the other byte order", c.ROW_COUNT, c.TRAILING_BYTES),
    **_minds(_STALE, c.CODE_REWRITTEN),
    **_refuses(_OTHER_PLACES, c.AREAS_MOVED, c.AREAS_OVERLAP, c.AREA_OUTSIDE, c.ROW_OUTSIDE, c.ROW_WORD_SIZE),
    **_refuses("the library writes after its buffer for a row", c.ROW_WORDS_MANY),
    **_refuses("`sframe_find_fre` finds nothing", c.NOT_SORTED, c.NO_FUNCTIONS),
    **_refuses("the library aborts (an assertion fails)", c.FRE_TYPE, c.ROW_AFTER_END, c.MASK_ROW_AFTER_END),
    **_refuses("the library divides by zero (SIGFPE)", c.REPETITION_0),
}
_LIBSFRAME_LOSES = _loses(
    "`sframe_find_fre` finds no row, or another one",
    *(*_LATE, c.SIGNAL_WITHOUT_ROWS, c.FDE_UNSORTED, c.FDE_SAME_ADDRESS, c.FDE_OVERLAP, c.ROW_ORDER, c.CONCATENATED),
)

_LIBSFRAME_OLD = {
    **_LIBSFRAME_REFUSES,
    **_refuses("the library aborts (an assertion fails)", c.ROW_AT_END),
    **_LIBSFRAME_LOSES,
    **_loses("`sframe_find_fre` finds a row without a CFA", c.OUTERMOST),
    **_loses("a row is chosen by the address, not by its offset in the function", c.MASK_FDE),
}

LIBSFRAME_2_40 = Profile(
    consumers.LIBSFRAME_2_40,
    Objects.NOT_LOADED,
    _LIBSFRAME_OLD,
    _NOT_DECODED,
    is_lazy=True,
    finds_nearest=True,
)

LIBSFRAME_2_44 = Profile(
    consumers.LIBSFRAME_2_44,
    Objects.NOT_LOADED,
    {**_LIBSFRAME_OLD, **_refuses(_NOT_DECODED, c.PCREL_SET)},
    "the library does not decode version 3, and aborts at version 1",
    is_lazy=True,
    finds_nearest=True,
)

LIBSFRAME_2_47 = Profile(
    consumers.LIBSFRAME_2_47,
    Objects.NOT_LOADED,
    {
        **_LIBSFRAME_REFUSES,
        **_refuses("all functions are looked for at wrong addresses", c.NOT_PCREL),
        **_refuses(_OTHER_PLACES, c.FDE_ATTRIBUTES),
        **_LIBSFRAME_LOSES,
        **_loses(_TWO_AT_START, c.ROW_SAME_START),
    },
    _NOT_DECODED,
    is_lazy=True,
    finds_nearest=True,
)

PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (SPEC, LINUX_USER, LINUX_KERNEL, GLIBC, LIBSFRAME_2_40, LIBSFRAME_2_44, LIBSFRAME_2_47)
}
"""The profiles by the name that ``--for`` takes."""
