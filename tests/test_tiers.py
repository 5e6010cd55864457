"""The rules of `tests/tiers.py`, tried on made-up tests; its tables name what there is, and `quick` has no debugger."""

from __future__ import annotations

import ast
import itertools
import re
from functools import cache
from pathlib import Path

import pytest

from tests import tiers
from tests.imports import imports_of
from tests.tiers import ALL, QUICK, REST, TEST, Case, place, selected

CHECKOUT = Path(__file__).resolve().parents[1]
TESTS, LAB = CHECKOUT / "tests", CHECKOUT / "lab"
OF_DEBUGGERS = (
    *("tests.gdb.driver", "tests.gdb.terminal", "tests.lldb.driver", "tests.lldb.terminal", "pexpect"),
    *("lab.drive.channel", "tests.clients.process"),
)
"""What every test in a debugger imports, itself or through other modules."""
ABIS = ("amd64", "aarch64", "s390x")


def of(function: str, *values: tuple[str, ...]) -> list[Case]:
    return [Case(function, own) for own in values]


def files() -> list[Path]:
    return [path for path in TESTS.rglob("test_*.py") if path.parent.name != "inside"]


def relative(path: Path) -> str:
    return path.relative_to(CHECKOUT).as_posix()


@cache
def all_imported(path: Path) -> frozenset[str]:
    """Return the modules that a file imports, also through modules of the tests and of the lab."""
    found, left = set(), [path]
    while left:
        for one in imports_of(left.pop(), "tests"):
            module = CHECKOUT / f"{one.imported.replace('.', '/')}.py"
            if one.imported not in found and one.imported.startswith(("tests.", "lab.")) and module.is_file():
                left.append(module)
            found.add(one.imported)
    return frozenset(found)


def test_each_tier_contains_the_one_before_it() -> None:
    for tier in tiers.TIERS:
        runs = [selected(tier, selection) for selection in tiers.TIERS]
        assert runs == sorted(runs)
        assert runs[-1]
        assert selected(tier, TEST) != selected(tier, REST)  # .ci/run runs both


def test_a_new_test_has_the_tier_of_its_folder() -> None:
    cases = of("tests/sframe/test_new.py::test_new", ()) + of("tests/test_new.py::test_new", ())
    assert place(cases) == [QUICK, QUICK]
    assert place(of("tests/gdb/test_new.py::test_new", ()) + of("tests/new/test_new.py::test_new", ())) == [TEST, TEST]


def test_the_newest_debugger_alone_where_it_has_the_function() -> None:
    cases = of("tests/gdb/test_new.py::test_both", ("pypi",), ("system",)) + of("tests/gdb/x.py::test_x", ("system",))
    assert place(cases) == [TEST, ALL, TEST]


def test_all_pairs_of_values_meet_in_the_tests_that_are_kept() -> None:
    product = list(itertools.product(ABIS, ("1", "2", "3"), ("O0", "O2", "fp"), ("pypi", "system")))
    placed = place(of("tests/abis/test_new.py::test_cell", *product))
    kept = [values for values, tier in zip(product, placed) if tier == TEST]
    assert {values[3] for values in kept} == {"pypi"}
    for first, second in itertools.combinations(range(3), 2):
        assert len({(values[first], values[second]) for values in kept}) == 9
    assert len(kept) < 15
    assert place(of("tests/abis/test_new.py::test_two", *itertools.product("ab", "cd"))) == [TEST] * 4


def test_each_value_is_in_a_test_of_a_function_that_has_too_many() -> None:
    product = list(itertools.product(ABIS, ("1", "2", "3"), ("O0", "O2")))
    placed = place(of(tiers.EACH_ONCE[0], *product))
    kept = [values for values, tier in zip(product, placed) if tier == TEST]
    assert [len({values[place] for values in kept}) for place in range(3)] == [3, 3, 2]
    assert len(kept) == 3


def test_the_same_tests_are_kept_each_time() -> None:
    cases = of("tests/abis/test_new.py::test_cell", *itertools.product("abc", "def", "ghi"))
    assert place(cases) == place(list(cases))


@pytest.mark.parametrize(
    "name", [*tiers.WITHOUT_QUICK, *tiers.WHOLE, *tiers.EACH_ONCE, *(f"tests/{name}" for name in tiers.QUICK_FOLDERS)]
)
def test_a_table_names_what_there_is(name: str) -> None:
    file, _, function = name.partition("::")
    path = CHECKOUT / file
    assert path.exists(), "no such file: remove it from tests/tiers.py"
    if function:
        nodes = ast.parse(path.read_text(encoding="utf-8")).body
        assert function in {node.name for node in nodes if isinstance(node, ast.FunctionDef)}


def test_quick_needs_no_debugger() -> None:
    """A file of `make quick` that does belongs into WITHOUT_QUICK."""
    quick = [path for path in files() if place([Case(relative(path), ())]) == [QUICK]]
    assert len(quick) > 50
    assert [relative(path) for path in quick if not all_imported(path).isdisjoint(OF_DEBUGGERS)] == []


def test_time_limits_only_catch_a_hang() -> None:
    """They come from `tests/hanging.py`; no test compares the time that something takes with a number."""
    limit = re.compile(
        r"(?:timeout|seconds)=[1-9]|\.wait\(\d|Timer\(\d|mark\.timeout\(\d|^_?\w*(?:SECONDS|TIMEOUT|PATIENCE) = \d",
        re.MULTILINE,
    )
    clock = re.compile(r"assert .*\b(?:monotonic|process_time|perf_counter|time\.time)\(|performance\.now\(")
    paths = [path for folder in (TESTS, LAB) for path in folder.rglob("*.py") if relative(path) not in MEANT]
    texts = {relative(path): path.read_text(encoding="utf-8") for path in paths}
    found = {path: [*limit.findall(text), *clock.findall(text)] for path, text in texts.items()}
    assert {path: words for path, words in found.items() if words} == {}


MEANT = (
    "tests/debugger/test_code_registers.py",  # the limit that is tested
    "lab/fuzz/campaign.py",  # processor time of an input; scaled where it is used, as the next three are
    "lab/fuzz/files.py",
    "lab/fuzz/perf.py",
    "lab/fuzz/readers/__init__.py",
    "lab/fuzz/guided.py",  # an option of libFuzzer
    "lab/readers/protocol.py",  # processor time of a reader
    "lab/drive/inside/lldb_state.py",  # minutes; it runs in LLDB
    "lab/show/page_times.py",  # measures speed
)
"""The files with other limits."""
