"""The driven programs: their sources, the way to run them, and the places for breakpoints."""

from __future__ import annotations

from dataclasses import dataclass

from lab.real_programs import Program as Package
from tests.samples.catalogue import SAMPLES


@dataclass(frozen=True)
class Program:
    """One program and the optimisation levels that it is built with."""

    name: str
    functions: tuple[str, ...]
    """Functions for breakpoints: called often enough, but not a million times."""
    levels: tuple[str, ...] = ("O0", "O1", "O2", "O3")
    sources: tuple[str, ...] = ()
    """Files in the folder `sources`; the suffix of the first one shows the language.  Empty: it is a package."""
    libraries: tuple[str, ...] = ()
    """Files in the folder `sources`: each becomes a shared library beside the program, under its own name."""
    package: Package | None = None
    """Debian's source package."""
    sample: str = ""
    """The name of a sample, which is built as the tests' samples are."""
    flags: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    """Arguments; a name after `@` is a file of the folder `sources`."""
    standard_input: str = ""
    """A file of the folder `sources`."""
    calls: tuple[str, ...] = ()
    """Expressions that call functions of the program."""
    exceptions: bool = False
    threads: bool = False
    signals: bool = False
    abis: tuple[str, ...] = ("amd64",)


@dataclass(frozen=True)
class Build:
    """A program, built in one way."""

    program: Program
    level: str
    abi: str = "amd64"

    @property
    def name(self) -> str:
        """Return the name on the command line."""
        return f"{self.program.name}-{self.level}" + ("" if self.abi == "amd64" else f"-{self.abi}")


EMULATED = ("amd64", "aarch64", "s390x")

MAWK = Package(
    name="mawk",
    package="mawk",
    sources=("*.c",),
    left_out=(
        *("fpe_check.c", "makescan.c", "regexp_system.c"),  # a program, and what the configuration does without
        *("rexp.c", "rexp0.c", "rexp1.c", "rexp2.c", "rexp3.c", "rexp4.c", "rexpdb.c"),  # included by regexp.c
    ),
    flags=(
        *("-DHAVE_CONFIG_H", "-DLOCAL_REGEXP", "-D_DEFAULT_SOURCE", "-D_XOPEN_SOURCE=500", "-I."),
        *("-std=gnu17", "-Wno-error=implicit-function-declaration"),  # for GCC 14 and later
    ),
    libraries=("-lm",),
    generate=(("./configure",), ("make", "scancode.c")),
)
BZIP2 = Package(
    "bzip2",
    "bzip2",
    ("*.c",),
    ("bzip2recover.c", "dlltest.c", "mk251.c", "spewG.c", "unzcrash.c"),
    ("-D_FILE_OFFSET_BITS=64",),
)
LUA = Package(
    name="lua",
    package="lua5.4",
    sources=("src/*.c",),
    left_out=("luac.c",),
    flags=("-DLUA_USE_LINUX", "-Dluai_makeseed(state)=7"),  # the seed of its hashes is made of the time
    libraries=("-lm", "-ldl", "-Wl,-E"),
)
MINIGZIP = Package("minigzip", "zlib", ("*.c", "test/minigzip.c"), flags=("-DHAVE_UNISTD_H", "-I."))
SQLITE = Package(
    "sqlite3",
    "sqlite3",
    ("sqlite3.c", "shell.c"),
    libraries=("-lpthread", "-ldl", "-lm"),
    generate=(("./configure", "--disable-tcl", "--disable-readline"), ("make", "sqlite3.c", "shell.c")),
    needs="tclsh",
)


def _sample(name: str, *functions: str) -> Program:
    levels = tuple(level for level in ("O0", "O2") if level in SAMPLES[name].variants)
    return Program(name, (*functions, "sample_stop"), levels, sample=name, abis=EMULATED)


PROGRAMS = {
    program.name: program
    for program in (
        Program(
            "calls",
            (
                *("add", "twice", "sorted", "by_weight", "last_call", "passing_on", "complain", "mostly_hot"),
                *("growing", "large", "realigned", "many", "down", "inlining"),
            ),
            sources=("calls.c",),
            calls=("add(3)", "twice(2)", "sorted(5)", "down(2, 7)", "passing_on(4)", "growing(3)"),
            abis=EMULATED,
        ),
        Program(
            "jumps",
            ("note", "leave", "deeper", "attempt", "on_user", "on_alarm", "interrupted", "finish"),
            sources=("jumps.c",),
            calls=("note(1)", "attempt(1)"),
            signals=True,
            abis=EMULATED,
        ),
        Program(
            "stubs",
            ("measured", "compared"),
            ("O0", "O2"),
            sources=("stubs.c",),
            flags=("-fno-builtin",),
            calls=('measured("abc")',),
            abis=EMULATED,
        ),
        Program(
            "handoff",
            ("work", "nested", "await", "pass_on", "round_of", "body"),
            sources=("handoff.c",),
            calls=("work(1, 2)", "nested(2, 1)"),
            threads=True,
        ),
        Program(
            "objects",
            (
                *("check", "guarded", "through", "caught_far_out", "rethrown", "callables", "containers", "shapes"),
                *("Scope::Scope", "Scope::~Scope", "Square::area", "Named::area"),
            ),
            sources=("objects.cc",),
            calls=("guarded(2)", "guarded(3)", "caught_far_out(1)", "shapes(2)", "check(4)"),
            exceptions=True,
        ),
        Program(
            "trees",
            ("descend", "recovered", "position", "visited", "ordered", "Trace::~Trace"),
            sources=("trees.cc",),
            calls=("recovered(1)", "recovered(0)"),
            exceptions=True,
        ),
        Program(
            "methods",
            (
                *("Counter::step", "Counter::twice", "Counter::through", "Counter::deep", "Counter::compare"),
                *("Loud::deep", "plain", "called"),
            ),
            sources=("methods.cc",),
        ),
        Program(
            "workers",
            ("parse", "attempt", "apply", "task", "Turn::await", "Turn::grant"),
            sources=("workers.cc",),
            exceptions=True,
            threads=True,
        ),
        Program(
            "mawk",
            (
                *("execute", "do_printf", "cast2_to_s", "bi_split", "bi_print", "field_assign", "REtest", "bi_sub"),
                *("yyparse", "yylex", "bi_funct", "build_field0", "array_clear", "call", "bi_substr", "field_init"),
            ),
            ("O0", "O2", "O3"),
            package=MAWK,
            arguments=("-f", "@count.awk", "@words.txt"),
        ),
        Program(
            "bzip2",
            (
                *("main", "handle_compress", "BZ2_bzCompress", "BZ2_compressBlock", "BZ2_blockSort", "compressStream"),
                *("generateMTFValues", "sendMTFValues", "BZ2_hbMakeCodeLengths", "BZ2_hbAssignCodes", "fallbackSort"),
                *("BZ2_bzWriteClose64", "BZ2_bzWrite", "add_pair_to_block", "myfeof", "snocString"),
            ),
            ("O1", "O2"),
            package=BZIP2,
            arguments=("-c",),
            standard_input="words.txt",
        ),
        Program(
            "lua",
            (
                *("luaD_call", "luaV_execute", "luaD_throw", "luaD_pcall", "lua_pcallk", "luaL_loadfilex", "sort"),
                *("auxsort", "str_format", "luaL_newstate", "luaH_resize", "luaB_error", "luaV_finishget"),
                *("lua_resume", "luaC_fullgc", "luaL_tolstring", "io_lines", "gmatch_aux"),
            ),
            ("O0", "O2"),
            package=LUA,
            arguments=("@mixed.lua", "@words.txt"),
        ),
        Program(
            "minigzip",
            (
                *("gz_compress", "deflate", "fill_window", "gzwrite", "gzclose_w", "deflateInit2_", "build_tree"),
                *("gen_codes", "compress_block", "_tr_flush_block", "deflateEnd", "gz_comp", "scan_tree"),
            ),
            ("O2", "O3"),
            package=MINIGZIP,
            standard_input="words.txt",
        ),
        Program(
            "sqlite3",
            (
                *("sqlite3VdbeExec", "sqlite3RunParser", "sqlite3Select", "sqlite3BtreeInsert", "sqlite3WhereBegin"),
                *("sqlite3CodeRhsOfIN", "sqlite3CreateIndex", "sqlite3EndTable", "sqlite3_step", "sqlite3VdbeHalt"),
                *("do_meta_command", "shell_exec", "sqlite3ExprCodeTarget", "balance_nonroot", "sqlite3_prepare_v2"),
            ),
            ("O2",),
            package=SQLITE,
            arguments=(":memory:",),
            standard_input="queries.sql",
        ),
        _sample("leaf", "outer", "leaf_with_stack", "inner"),
        _sample("recursion", "descend", "descend_wide"),
        _sample("callback", "sort", "compare"),
        _sample("tail_inline", "real_frame", "tail_first", "tail_second"),
    )
}

BUILDS = tuple(
    Build(program, level, abi)
    for abi in EMULATED
    for program in PROGRAMS.values()
    if abi in program.abis
    for level in program.levels
)


def named(name: str) -> Build:
    """Return the build with a name; KeyError: there is none."""
    return next(build for build in BUILDS if build.name == name)
