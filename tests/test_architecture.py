"""Checks which packages of the core may import which others, for every import statement, including lazy ones."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from sframe_unwind.arch import Arch
from tests.imports import Import, imports_of
from tests.module_state import mutable_state

CHECKOUT = Path(__file__).resolve().parents[1]
CORE = "sframe_unwind"

LAYERS = (
    "named_tuple",
    "errors",
    "decompression",
    "internal_error",
    "address",
    "memory",
    "unwind_rule",
    "workers",
    "replacing",
    "baseline",
    "machine",
    "arch",
    "sframe",
    "consumers",
    "cfi",
    "orc",
    "translation",
    "elf",
    "image",
    "unwind",
    "report",
    "runtime_code",
    "source",
    "kernel",
    "code",
    "process",
    "debugger",
    "verify",
    "lint",
    "convert",
    "survey",
    "perf",
    "show",
    "annotate",
    "cli",
)
"""Each imports only those before it."""

NAMES_OF_MACHINES = ("arch", "elf")
"""The packages that may contain the names of machines in the ELF gABI."""

PLUGINS = {
    "gdb_plugin": ("version", "interface", "process", "frames", "lifecycle", "commands", "plugin", "sframe_gdb"),
    "lldb_plugin": (
        *("version", "loading", "interface", "process", "frames", "lifecycle", "commands", "plugin", "entry"),
        "sframe_lldb",
    ),
}
"""Modules and packages of each plugin.  Each imports only those before it."""
PACKAGES_OF_CODE = ("decode", "image", "interpret", "judge", "rows")
"""The packages of ``code``.  Each imports only those before it."""
MAX_LINES, MAX_CLASS = 400, 300
"""The largest numbers of lines of a module and of a class of the core and of the plugins."""

STATE = {"gdb_plugin": {"_started", "_pointers", "_made"}, "lldb_plugin": {"_PLUGIN"}}
"""By plugin, its only variables that can change and are in no object."""
PURE = {"_file_name", "_is_by_gcc"}
"""Functions that keep results which depend on nothing but the arguments."""

MAX_PARAMETERS = 6
"""The largest number of parameters of a function in the packages that check and write files."""

MAX_ARROWS = 229
"""The largest number of pairs of layers of which one imports the other."""

ARCH_IMPORTS = ("named_tuple", "address", "arch", "unwind_rule")
"""The only imports of ``arch``: machines know nothing of SFrame, and unwind rules are common to all unwind data."""

COMMANDS_OF_TESTS = (
    "tests.abis.mask_registers",
    "tests.cfi.hostile",
    "tests.machine.refusing",
    "tests.report.rust.__main__",
    "tests.samples.build",
)
"""The modules of the tests that are programs."""

VERSIONED = ("sframe", "lint", "runtime_code.status_text", "report")
"""These may ask a header for its version: the package that normalises it, ``lint``, which reads it unchanged, and
modules that print it."""

OTHER_VERSIONS = ("cfi.cie", "cfi.index", "source", "runtime_code", "survey.store", "survey.cluster")
"""These compare versions of other formats and programs."""


def modules(package: str) -> dict[str, Path]:
    found = {}
    for path in sorted((CHECKOUT / package).rglob("*.py")):
        parts = path.relative_to(CHECKOUT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def all_imports(package: str) -> tuple[Import, ...]:
    return tuple(one for module, path in modules(package).items() for one in imports_of(path, module))


def layer(module: str) -> str | None:
    """Return the layer of a module of the core; ``None`` for the package itself and the start of the command line."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] != "__main__" else None


def is_within(module: str, places: tuple[str, ...]) -> bool:
    return any(module == f"{CORE}.{place}" or module.startswith(f"{CORE}.{place}.") for place in places)


def show(broken: list[Import]) -> str:
    return "\n".join(map(str, broken))


def test_every_module_has_a_layer() -> None:
    found = {layer(module) for module in modules(CORE)} - {None}
    assert found == set(LAYERS)


def test_the_page_has_the_layers_in_their_order() -> None:
    page = (CHECKOUT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("\n## The layers of the core\n")[2].partition("\n##")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == LAYERS


def test_the_page_has_the_packages_of_the_plugins_in_their_order() -> None:
    page = (CHECKOUT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("\nThe packages of both have the same names")[2].partition("\n##")[0]
    named = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    for plugin, order in PLUGINS.items():
        assert named == [name for name in order if (CHECKOUT / plugin / name).is_dir()]


def test_the_page_names_modules_of_the_interpreter_that_exist() -> None:
    page = (CHECKOUT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("\n### Machine code\n")[2].partition("\n##")[0]
    names = re.findall(r"^\| `(\w+)\.(\w+)` \|", table, re.MULTILINE)
    assert {package for package, _ in names} <= set(PACKAGES_OF_CODE)
    folders = [CHECKOUT / CORE / "code" / package / name for package, name in names]
    assert len(folders) > 10
    assert [str(folder) for folder in folders if not (folder.is_dir() or folder.with_suffix(".py").exists())] == []


def test_a_layer_imports_only_those_before_it() -> None:
    broken = [
        one
        for one in all_imports(CORE)
        if (importer := layer(one.importer)) is not None
        and one.imported.startswith(f"{CORE}.")
        and LAYERS.index(str(layer(one.imported))) > LAYERS.index(importer)
    ]
    assert not broken, show(broken)


@pytest.mark.parametrize("package", [CORE, "gdb_plugin", "lldb_plugin"])
def test_no_circle(package: str) -> None:
    graph: dict[str, set[str]] = {module: set() for module in modules(package)}
    for one in all_imports(package):
        if one.imported in graph and one.imported != one.importer:
            graph[one.importer].add(one.imported)
    # Remove modules that import none of the remaining ones; the modules left at the end import each other in a circle.
    while leaves := [module for module, imported in graph.items() if not imported & graph.keys()]:
        for module in leaves:
            del graph[module]
    assert not graph, f"these modules import each other: {sorted(graph)}"


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_package_of_a_plugin_imports_only_those_before_it(plugin: str) -> None:
    found = {str(layer(module)) for module in modules(plugin)} - {"None"}
    assert found == set(PLUGINS[plugin])
    order = PLUGINS[plugin].index
    broken = [
        one
        for one in all_imports(plugin)
        if one.imported.startswith(f"{plugin}.") and order(str(layer(one.imported))) > order(str(layer(one.importer)))
    ]
    assert not broken, show(broken)


def test_a_package_of_code_imports_only_those_before_it() -> None:
    prefix = f"{CORE}.code."

    def package(module: str) -> str:
        return module[len(prefix) :].split(".")[0]

    assert {package(module) for module in modules(f"{CORE}/code") if module.startswith(prefix)} == set(PACKAGES_OF_CODE)
    order = PACKAGES_OF_CODE.index
    broken = [
        one
        for one in all_imports(f"{CORE}/code")
        if one.imported.startswith(prefix) and order(package(one.imported)) > order(package(one.importer))
    ]
    assert not broken, show(broken)


@pytest.mark.parametrize("package", [CORE, *PLUGINS])
def test_modules_and_classes_are_small(package: str) -> None:
    for module, path in modules(package).items():
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= MAX_LINES, module
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                assert lines <= MAX_CLASS, f"{module}.{node.name} has {lines} lines"


@pytest.mark.parametrize("plugin", STATE)
def test_one_object_owns_the_state_of_a_plugin(plugin: str) -> None:
    trees = {module: ast.parse(path.read_text(encoding="utf-8")) for module, path in modules(plugin).items()}
    # A tuple with names does not change.
    classes = frozenset(
        node.name
        for tree in trees.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and "NamedTuple" not in map(ast.unparse, node.bases)
    )
    found = [(module, name) for module, tree in trees.items() for name in mutable_state(tree, classes)]
    assert sorted({name for _, name in found} - PURE) == sorted(STATE[plugin]), found


def test_mutable_state_is_found() -> None:
    lines = (
        *("A = 1", "B = {1: 2}", "C = NamedTuple('C', [])", "D: list[int] = []", "_e = None", "F = Engine()"),
        *("G = threading.RLock()", "@functools.cache\ndef h(): pass", "def i():\n    global J\n    J = 1", "K = set()"),
        *("class L:\n    m = 1", "N: int = 2", "def o():\n    p = []"),
    )
    found = mutable_state(ast.parse("\n".join(lines)), frozenset({"Engine"}))
    assert set(found) == {"D", "_e", "F", "G", "h", "J", "K"}


def test_the_core_knows_no_debugger() -> None:
    debuggers = ("gdb", "lldb", "gdb_plugin", "lldb_plugin")
    broken = [one for one in all_imports(CORE) if one.imported.split(".")[0] in debuggers]
    assert not broken, show(broken)


@pytest.mark.parametrize(("plugin", "other"), [("gdb_plugin", "lldb"), ("lldb_plugin", "gdb")])
def test_a_plugin_knows_only_its_debugger(plugin: str, other: str) -> None:
    broken = [one for one in all_imports(plugin) if one.imported.split(".")[0] in (other, f"{other}_plugin")]
    assert not broken, show(broken)


def test_one_module_imports_pyelftools() -> None:
    """A debugger's Python has no packages, so nothing that a plugin needs may depend on one."""
    found = {one.importer for one in all_imports(CORE) if one.imported.startswith("elftools")}
    assert found == {f"{CORE}.elf.relocation_names"}


def test_one_type_for_each_record_of_elf() -> None:
    """Only ``elf.constants`` has the layouts of headers, and ``elf.records`` decodes them.

    ``debugger.glance`` also reads some fields, because it is loaded at each start of a debugger.
    """
    layouts = ("IIQQQQQQ", "IIQQQQIIQQ", "16sHHIQQQIHHHHHH", "I4xQ")
    found = {
        (module, node.value)
        for module, path in modules(CORE).items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.strip("<>=").startswith(layouts)
    }
    assert {module for module, _ in found} == {f"{CORE}.elf.constants", f"{CORE}.elf.records"}
    users = {module for module, path in modules(CORE).items() if "SECTION_HEADER" in path.read_text(encoding="utf-8")}
    assert users == {f"{CORE}.elf.constants", f"{CORE}.elf.records", f"{CORE}.debugger.glance"}


def test_arch_and_elf_have_the_names_of_machines() -> None:
    for module, path in modules(CORE).items():
        if not is_within(module, NAMES_OF_MACHINES):
            assert '"EM_' not in path.read_text(encoding="utf-8"), path


@pytest.mark.parametrize("package", ["verify", "lint", "convert", "survey"])
def test_functions_have_few_parameters(package: str) -> None:
    for module, path in modules(f"{CORE}/{package}").items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                named = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                taken = [name for name in named if name not in ("self", "cls")]
                assert len(taken) <= MAX_PARAMETERS, f"{module}.{node.name} has {len(taken)} parameters"


def test_arch_knows_nothing_of_sframe() -> None:
    broken = [
        one
        for one in all_imports(f"{CORE}/arch")
        if one.imported.startswith(f"{CORE}.") and not is_within(one.imported, ARCH_IMPORTS)
    ]
    assert not broken, show(broken)


def _of_machine(node: ast.expr) -> bool:
    """Return whether a part of a comparison is the name of a machine, in any spelling: ``Architecture.S390X``."""
    text = getattr(node, "value", None) if isinstance(node, ast.Constant) else getattr(node, "attr", "")
    return (
        isinstance(text, str)
        and re.fullmatch(r"(?:\w+_)?(?:amd64|x86_64|aarch64(?:_be)?|s390x?)", text.lower()) is not None
    )


def test_only_arch_tells_machines_apart() -> None:
    """No other package compares the name of a machine, or imports one machine: a new one is a new file in arch."""
    named = ("amd64", "aarch64", "s390x")
    broken = [
        one
        for one in all_imports(CORE)
        if one.imported.startswith(f"{CORE}.arch.")
        and one.imported.rpartition(".")[2] in named
        and not is_within(one.importer, ("arch", "sframe.constants", "sframe.row_context", "code.decode.machines"))
    ]
    assert not broken, show(broken)
    for module, path in modules(CORE).items():
        if is_within(module, ("arch",)):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare):
                compared = [part for part in ast.walk(node) if isinstance(part, ast.expr)]
                assert not any(map(_of_machine, compared)), f"{path}:{node.lineno}"


def test_only_sframe_asks_for_the_version() -> None:
    for module, path in modules(CORE).items():
        if is_within(module, VERSIONED):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_header_version = (
                isinstance(node, ast.Attribute)
                and node.attr == "version"
                and isinstance(node.value, (ast.Name, ast.Attribute))
                and "header" in ast.dump(node.value)
            )
            assert not is_header_version, f"{path}:{getattr(node, 'lineno', 0)} asks for the version"


def test_no_test_is_imported() -> None:
    """Code for two tests is in a module without tests, also for the programs that tests write and run."""
    named = re.compile(
        r"^\s*(?:(?:from|import) tests\.(?:\w+\.)*test_\w+|from tests\.(?:\w+\.)*\w+ import .*\btest_)", re.MULTILINE
    )
    texts = [path.read_text(encoding="utf-8") for package in ("tests", "lab") for path in modules(package).values()]
    assert len(texts) > 500
    assert [named.findall(text) for text in texts if named.search(text)] == []


def test_no_package_imports_what_tests_it() -> None:
    others = {"bench", "lab", "tests", "tools"}
    for package in (CORE, "gdb_plugin", "lldb_plugin"):
        broken = [one for one in all_imports(package) if one.imported.split(".")[0] in others]
        assert not broken, show(broken)


def test_studies_and_campaigns_are_in_the_lab() -> None:
    """A module of the tests is a command only if a test runs it, or if it makes what tests read."""
    found = {module for module, path in modules("tests").items() if _is_command(path)}
    assert found == set(COMMANDS_OF_TESTS)


def test_the_page_of_the_lab_has_its_commands() -> None:
    page = (CHECKOUT / "lab" / "README.md").read_text(encoding="utf-8")
    named = {name.removesuffix(".__main__") for name, path in modules("lab").items() if _is_command(path)}
    commands = {name for name in named if not name.startswith("lab.readers.adapters.")}
    assert len(commands) > 20
    assert commands == set(re.findall(r"^\| `(?:\w+=\S+ )?python -m (lab[\w.]*)", page, re.MULTILINE))


def _is_command(path: Path) -> bool:
    return path.stem == "__main__" or '\nif __name__ == "__main__":' in path.read_text(encoding="utf-8")


def test_only_sframe_compares_versions() -> None:
    """Other packages look up the features of a version in ``sframe.constants.FEATURES``."""
    operators = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
    for module, path in modules(CORE).items():
        if is_within(module, ("sframe", *OTHER_VERSIONS)):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare) and any(isinstance(one, operators) for one in node.ops):
                names = {getattr(one, "attr", getattr(one, "id", "")) for one in (node.left, *node.comparators)}
                assert "version" not in names, f"{path}:{node.lineno} compares a version"


def test_one_place_subtracts_from_a_return_address() -> None:
    """Only ``address.lookup_address`` takes 1 from a pc."""
    places = []
    for module, path in modules(CORE).items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.BinOp)
                and isinstance(node.op, ast.Sub)
                and isinstance(node.right, ast.Constant)
                and node.right.value == 1
                and isinstance(node.left, (ast.Name, ast.Attribute))
                and re.search(r"(^|_)(pc|ra|address)$", getattr(node.left, "id", getattr(node.left, "attr", "")))
            ):
                places.append(module)
    assert places == [f"{CORE}.address"]


def test_few_layers_import_each_other() -> None:
    """One that stands for a module of Python is not counted."""
    pairs = {(layer(one.importer), layer(one.imported)) for one in all_imports(CORE) if one.imported.startswith(CORE)}
    arrows = {pair for pair in pairs if None not in pair and pair[0] != pair[1] != "named_tuple"}
    assert len(arrows) <= MAX_ARROWS, f"{len(arrows)} pairs of layers, of which the first imports the second"


def test_the_page_has_the_layers() -> None:
    page = (CHECKOUT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("## The layers of the core")[2].partition("###")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == LAYERS


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_the_files_that_a_page_names_are_there(page: str) -> None:
    text = (CHECKOUT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:\w+/)+\w*(?:\.\w+)?)`", text))
    assert len(named) > 8
    paths = {name: [folder / name.replace("NAME", "amd64") for folder in (CHECKOUT, CHECKOUT / CORE)] for name in named}
    assert {name for name, places in paths.items() if not any(place.exists() for place in places)} == set()


def test_links_between_pages_lead_somewhere() -> None:
    pages = [path for folder in ("", "docs", "lab", "conformance") for path in (CHECKOUT / folder).glob("*.md")]
    texts = {page: page.read_text(encoding="utf-8") for page in pages}
    links = [(page, link) for page, text in texts.items() for link in re.findall(r"\]\(([^)\s]+)\)", text)]
    local = [(page, *link.partition("#")[::2]) for page, link in links if "://" not in link]
    assert len(local) > 40
    broken = []
    for page, name, anchor in local:
        target = page.parent / name if name else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in _anchors(target)):
            broken.append(f"{page.name}: {name}#{anchor}")
    assert not broken


def _anchors(page: Path) -> set[str]:
    """Return the anchors that a code host gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_an_architecture_has_every_field() -> None:
    """An architecture that lacks a field is an error in Python, as the checklist promises."""
    assert Arch._field_defaults == {}
