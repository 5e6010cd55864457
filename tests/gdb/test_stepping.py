"""At every instruction of a program, the trace by SFrame equals GDB's own and the executed calls and returns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable, NamedTuple

import pytest

from sframe_unwind.sframe.constants import NEWEST
from tests.expectations import Stop
from tests.gdb.driver import Debugger, call
from tests.gdb.known_differences import KNOWN, NATIVE, UNREADABLE_FP, explains
from tests.gdb.programs import built, program
from tests.gdb.stacks import covers
from tests.samples import readelf
from tests.samples.build import toolchain
from tests.samples.catalogue import PLAIN_VARIANTS, SAMPLES

ABI = "amd64"
COUNTED = "instructions stepped"
"""Prefix of the names of properties that are summed up and printed at the end of a test run."""
LIMIT = 20_000
"""More instructions than any walk here takes."""


class Walk(NamedTuple):
    """A walk from a function's first instruction to its last, including all that it calls."""

    sample: str
    first: str
    variants: tuple[str, ...]
    least: int
    """Minimum number of instructions; fewer mean that something was left out."""

    def builds(self) -> Iterator[tuple[int, str]]:
        """Yield version and variant: every variant in version 3, and one in each older version.

        Older versions have the same rules (tests/unwind/test_versions.py).
        """
        yield from ((NEWEST, variant) for variant in self.variants)
        yield from ((version, "O2" if "O2" in self.variants else self.variants[0]) for version in (1, 2))


WHOLE = Walk("stepper", "main", PLAIN_VARIANTS, 500)
LAZY = Walk("stepper_lazy", "main", ("O2",), 3000)
PARTS = (
    Walk("plt", "through_library", ("O0", "O2"), 1800),
    Walk("plt_now", "through_library", ("O2",), 600),
    Walk("plt_ibt", "through_library", ("O2",), 1800),
    Walk("realign", "aligned_entry", PLAIN_VARIANTS, 70),
    Walk("callback", "sort", ("O2",), 1300),
    Walk("tail_inline", "tail_first", ("O2", "Os", "fp"), 10),
    Walk("leaf", "outer", ("O0", "O2"), 100),
    Walk("dynamic", "with_alloca", ("O0", "Os"), 500),
    Walk("offsets", "large_frame", ("O0", "O2"), 30),
    Walk("recursion", "descend", ("O0", "O2"), 150),
)
WITHOUT_CFI = Walk("sframe_only", "with_alloca", SAMPLES["sframe_only"].variants_for(ABI), 90)

Record = Callable[[str, object], None]


def stepped(debugger: Debugger, walk: Walk, version: int, variant: str, record: Record, **how: Any) -> dict[str, Any]:
    """Step, and check that nothing was left out and that SFrame was used wherever it has a row."""
    path = built(walk.sample, ABI, version, variant)
    described = program(Stop(walk.sample, ()), path, ABI)
    result: dict[str, Any] = call(debugger, "stepping.walk", program=described, first=walk.first, limit=LIMIT, **how)
    record(f"{COUNTED}, version {version}", result["count"])
    assert not result["limited"]
    assert result["count"] >= walk.least
    _check_unwinders(result, toolchain(ABI, version), path, walk.sample in UNREADABLE_FP)
    return result


def _check_unwinders(result: dict[str, Any], tools: Path, path: Path, declines: bool) -> None:
    sframe, sections = readelf.read_sframe(tools, path), readelf.read_sections(tools, path)
    bias = next(start - sections[name].address for name, start, _ in result["code"] if name == ".text")
    stubs = [(start, end) for name, start, end in result["code"] if name.startswith(".plt")]
    used = 0
    for pc, caller, unwinders in result["seen"]:
        if any(start <= pc < end for _, start, end in result["code"]):
            address = pc - bias - bool(caller)
            expected = ["sframe" if covers(sframe, address) else "gdb"]
            refuted = unwinders == ["plt code"] and any(start <= pc < end for start, end in stubs)
            assert unwinders == expected or declines or refuted, (hex(pc - bias), unwinders)
            used += 1
    assert used


def check_differences(result: dict[str, Any], sample: str, version: int) -> None:
    """Check that the differences are exactly the known ones."""
    unknown = [found for found in result["differences"] if explains(sample, version, found) is None]
    assert not unknown
    found = {explains(sample, version, difference) for difference in result["differences"]}
    assert found == {known for known in KNOWN if sample in known.samples and version in known.versions}


@pytest.mark.parametrize(("version", "variant"), list(WHOLE.builds()))
def test_whole_program(newest: Debugger, version: int, variant: str, record_property: Record) -> None:
    check_differences(stepped(newest, WHOLE, version, variant, record_property), WHOLE.sample, version)


def test_with_the_dynamic_linker_on_the_way(newest: Debugger, record_property: Record) -> None:
    check_differences(stepped(newest, LAZY, NEWEST, "O2", record_property), LAZY.sample, NEWEST)


@pytest.mark.parametrize("debugger", ["system"], indirect=True)
@pytest.mark.parametrize("variant", WHOLE.variants)
def test_whole_program_in_another_gdb(debugger: Debugger, variant: str, record_property: Record) -> None:
    # One version is sufficient: GDB's requests do not depend on the version from which a rule was decoded.
    check_differences(stepped(debugger, WHOLE, NEWEST, variant, record_property), WHOLE.sample, NEWEST)


def test_inlined_functions_in_modules_without_sframe(debugger: Debugger, record_property: Record) -> None:
    # With the dynamic linker's debug information, if that is installed: it has inlined functions.
    result = stepped(debugger, LAZY, NEWEST, "O2", record_property, debug_files=True)
    check_differences(result, LAZY.sample, NEWEST)


@pytest.mark.parametrize(
    ("walk", "version", "variant"),
    [
        pytest.param(walk, *build, id="-".join(map(str, (walk.sample, *build))))
        for walk in PARTS
        for build in walk.builds()
    ],
)
def test_parts_of_samples(newest: Debugger, version: int, walk: Walk, variant: str, record_property: Record) -> None:
    check_differences(stepped(newest, walk, version, variant, record_property), walk.sample, version)


@pytest.mark.parametrize(("version", "variant"), list(WITHOUT_CFI.builds()))
def test_without_cfi_sframe_alone_is_right(
    newest: Debugger, version: int, variant: str, record_property: Record
) -> None:
    result = stepped(newest, WITHOUT_CFI, version, variant, record_property)
    wrong = {tuple(difference["wrong"]) for difference in result["differences"]}
    assert not any("sframe" in who for who in wrong)
    # At -O0, GDB guesses correctly from rbp.
    assert variant == "O0" or NATIVE in wrong
