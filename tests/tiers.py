"""The tier of each test: the lowest of `make quick`, `make test` and `make test-all` that runs it.

Each tier contains the one before it.  The first rule that fits a test decides, in the order of `place`; the tables
below are the only place where a tier is written.  CONTRIBUTING.md explains the rules to authors of tests.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

QUICK, TEST, ALL = "quick", "test", "all"
TIERS = (QUICK, TEST, ALL)
REST = "rest"
"""The selection of what `all` has and `test` has not."""

QUICK_FOLDERS = (
    *("arch", "cfi", "cli", "debugger", "decompression", "elf", "image", "lint", "orc", "report", "sframe", "source"),
    *("translation", "unwind", "verify"),
)
"""The folders without a debugger: core, format, and the command line in process.  Files at the top are the same."""

WITHOUT_QUICK: Mapping[str, str] = {
    "tests/cli/test_command_line.py": "processes and pipes",
    "tests/cli/test_debuggers.py": "the commands that start a debugger",
    "tests/cli/test_internal_errors.py": "core files that a debugger makes",
    "tests/cli/test_output.py": "processes and pipes",
    "tests/cli/test_readelf.py": "all builds of all samples",
    "tests/cli/test_shells.py": "shells",
    "tests/cli/test_starting.py": "the start of processes",
    "tests/elf/test_rewritten.py": "a tool that rewrites files",
    "tests/lint/test_producers.py": "several linkers and compilers",
    "tests/report/test_page.py": "a browser",
    "tests/sframe/test_encode_rule.py::test_a_default_row_says_its_rule": "random rules by the hundred",
    "tests/sframe/test_encode_rule.py::test_a_flexible_row_says_its_rule": "random rules by the hundred",
    "tests/sframe/test_properties.py": "random sections by the thousand",
    "tests/source/test_places.py": "programs of several compilers",
    "tests/test_api_examples.py": "programs of their own processes",
    "tests/test_launchers.py": "debuggers",
    "tests/test_public_api.py": "a type checker",
    "tests/test_samples.py": "all builds of all samples",
    "tests/unwind/test_stub_rows.py": "several linkers",
    "tests/verify/test_coverage.py::test_page": "a browser",
    "tests/verify/test_page.py": "a browser",
    "tests/verify/test_samples.py": "all builds of all samples",
    "tests/verify/test_several_files.py": "processes and signals",
}
"""Files and functions of those folders that `make test` runs first, with what they need and `make quick` has not."""

WHOLE: Mapping[str, str] = {
    "tests/code/judge/test_executed.py": "a campaign",
    "tests/code/rows/test_planted_pairs.py": "a campaign",
    "tests/code/judge/test_generated.py": "a campaign",
    "tests/code/judge/test_mutations.py": "a campaign",
    "tests/code/decode/test_witness.py": "a campaign",
    "tests/code/test_compacted.py::test_functions_are_those_of_cfi": "libraries of the system",
    "tests/convert/test_compact.py::test_libraries_of_the_system": "libraries of the system",
    "tests/convert/test_compact_stacks.py::test_stacks_of_a_library": "libraries of the system",
    "tests/convert/test_from_code.py::test_a_library_of_the_system": "libraries of the system",
    "tests/convert/test_large.py::test_copy_of_a_sparse_program": "gigabytes",
    "tests/convert/test_sizes.py::test_sizes_of_a_library": "libraries of the system",
    "tests/convert/test_to_sframe.py::test_libraries_of_the_system": "libraries of the system",
    "tests/drive/test_corners.py::test_a_session_at_a_corner": "all corners",
    "tests/drive/test_drive.py::test_a_session_in_an_interpreter_goes_as_it_does_without_the_plugin": "large programs",
    "tests/fuzz/test_against_readelf.py": "a campaign",
    "tests/fuzz/test_campaign.py": "a campaign",
    "tests/gdb/test_stepping.py::test_whole_program_in_another_gdb": "an older debugger",
    "tests/gdb/test_stepping.py::test_with_the_dynamic_linker_on_the_way": "a walk that another test takes, too",
    "tests/kernel/test_booted.py": "builds and boots a kernel",
    "tests/lldb/test_soak.py": "a campaign",
    "tests/packaging/test_install.py": "the wheel in all versions of Python",
    "tests/readers": "libraries and tools of others, which are built first",
    "tests/show/test_counts.py::test_every_row_of_the_c_library_is_listed": "libraries of the system",
    "tests/survey/test_cluster.py": "a cluster, and waiting for it",
}
"""Folders, files and functions that `make test-all` alone runs, with the reasons."""

EACH_ONCE = (
    "tests/abis/test_every_instruction.py::test_walk",
    "tests/abis/test_mask_registers.py::test_samples",
    "tests/abis/test_matrix.py::test_cell",
    "tests/abis/test_remote.py::test_by_memory_alone",
    "tests/abis/test_remote.py::test_with_files",
    "tests/code/test_stops.py::test_frames_and_steps_are_those_with_cfi",
    "tests/convert/test_strip.py::test_programs_run_after_each_tool",
    "tests/convert/test_to_sframe.py::test_samples_there_and_back",
    "tests/drive/test_drive.py::test_a_session_goes_as_it_does_without_the_plugin",
    "tests/gdb/test_backtraces.py::test_backtrace_is_the_same_in_both_modes",
    "tests/gdb/test_outer_frames.py::test_what_is_known_is_right",
    "tests/gdb/test_stepping.py::test_parts_of_samples",
    "tests/gdb/test_stepping.py::test_whole_program",
    "tests/gdb/test_stepping.py::test_without_cfi_sframe_alone_is_right",
    "tests/lldb/test_backtraces.py::test_samples",
    "tests/perf/test_undescribed.py::test_stacks_are_those_of_gdb_with_cfi",
    "tests/runtime_code/test_every_instruction.py::test_caller",
)
"""Functions with so many or so slow tests that `make test` has each value of a parameter, but not each pair."""

OLDER = {
    "system": "pypi",
    "gdb-system": "gdb",
    "lldb-22": "lldb",
    "gdb13": "gdb18",
    "GDB 13": "GDB 18",
    "22.1": "newest",
    "without": "newest",
    "lldb22": "lldb23",
    "LLDB 22.1": "LLDB 23.1",
}
"""Names of the older debuggers in parameters, each with the newest, which `make test` runs."""


class Case(NamedTuple):
    """One test."""

    function: str
    """Its file and function, as ``tests/gdb/test_names.py::test_commands_show_stacks``."""
    values: tuple[str, ...]
    """The values of its parameters, those of tuples one by one."""

    @property
    def file(self) -> str:
        """Return the path of its file, relative to the checkout."""
        return self.function.partition("::")[0]


def place(cases: Sequence[Case]) -> list[str]:
    """Return the tier of each test.

    :param cases: all tests of each of their functions: a test's tier depends on the others, which may cover its values.
    """
    tiers = [_by_name(case) for case in cases]
    functions: defaultdict[str, list[int]] = defaultdict(list)
    for index, tier in enumerate(tiers):
        if tier == TEST:
            functions[cases[index].function].append(index)
    for function, indices in functions.items():
        values = {index: cases[index].values for index in indices}
        kept = _covering(_newest(values), 1 if function in EACH_ONCE else 2)
        for index in indices:
            tiers[index] = TEST if index in kept else ALL
    return tiers


def selected(tier: str, selection: str) -> bool:
    """Return whether a selection, a tier's name or `REST`, includes the tests of a tier."""
    if selection == REST:
        return tier == ALL
    return TIERS.index(tier) <= TIERS.index(selection)


def may_have(path: str, selection: str) -> bool:
    """Return whether a selection can include a test of a file, by its path relative to the checkout."""
    return selection != QUICK or _in_quick(path)


def _by_name(case: Case) -> str:
    """Return the tier by the tables of names."""
    if _named(case, WHOLE):
        return ALL
    return QUICK if _in_quick(case.file) and not _named(case, WITHOUT_QUICK) else TEST


def _in_quick(path: str) -> bool:
    folders = path.split("/")[1:-1]
    return (not folders or folders[0] in QUICK_FOLDERS) and path not in WITHOUT_QUICK


def _named(case: Case, table: Iterable[str]) -> bool:
    folder = case.file.rpartition("/")[0]
    return not {case.function, case.file, folder}.isdisjoint(table)


def _newest(values: Mapping[int, tuple[str, ...]]) -> dict[int, tuple[str, ...]]:
    """Return the tests without those in an older debugger, if others of the function run in the newest."""
    columns = [set(column) for column in zip(*values.values())]
    return {
        index: own
        for index, own in values.items()
        if not any(OLDER.get(value) in column for value, column in zip(own, columns))
    }


def _covering(values: Mapping[int, tuple[str, ...]], together: int) -> set[int]:
    """Return enough of some tests that the values of so many parameters meet in one, where they meet at all.

    Each step takes the test with the most that is new, and the first of several.  With fewer parameters, all are taken.

    :param together: 1: each value is in a test; 2: each two values of two parameters are in one.
    """
    wanted = {index: set(itertools.combinations(enumerate(own), together)) for index, own in values.items()}
    left, kept = set().union(*wanted.values()), {index for index, combined in wanted.items() if not combined}
    while left:
        best = max(wanted, key=lambda index: len(wanted[index] & left))
        kept.add(best)
        left -= wanted.pop(best)
    return kept
