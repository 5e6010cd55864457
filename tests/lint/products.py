"""Sections of real producers, with the verdict of each profile."""

from __future__ import annotations

from pathlib import Path
from typing import Callable, NamedTuple

from sframe_unwind.lint import catalogue as c
from sframe_unwind.lint.catalogue import Rule
from sframe_unwind.lint.verdict import Outcome
from tests.elf.objects import ONE, TWO, compile_both, link, run, tools_for
from tests.missing import toolchain_needed
from tools.producers import provide

CLANG_FLAGS = ("-O2", "-ffreestanding", "-fno-stack-protector", "-fasynchronous-unwind-tables", "-fno-pic")
CLANG_SFRAME = ("-Wa,--allow-experimental-sframe", "-Wa,--gsframe")
TEMPLATE = "template <int N> [[gnu::noipa]] int f(int *p) { int b[N] = { *p }; return g(b) + N; }"


def producers() -> Path:
    """Return the folder with clang, lld and mold; end the test if they are missing."""
    with toolchain_needed():
        return provide()


def gnu_objects(abi: str, version: int, folder: Path) -> list[Path]:
    """Build two object files by gcc and the GNU as that writes a version."""
    return compile_both(tools_for(abi, version), abi, folder)


def gnu(abi: str, version: int, *options: str, linker: int | None = None) -> Callable[[Path], Path]:
    """Link by GNU as, and GNU ld of the same or another release."""

    def make(folder: Path) -> Path:
        objects = gnu_objects(abi, version, folder)
        tools = tools_for(abi, linker or version)
        return link(tools, abi, folder / "product", *objects, options=options or ("-e", "start"))

    return make


def other(linker: str, version: int, *options: str) -> Callable[[Path], Path]:
    """Link by GNU as, and lld or mold."""

    def make(folder: Path) -> Path:
        product = folder / "product"
        run(producers() / linker, *(options or ("-e", "start")), "-o", product, *gnu_objects("amd64", version, folder))
        return product

    return make


def clang_objects(folder: Path) -> list[Path]:
    """Build two object files by clang, which assembles itself."""
    objects = []
    for name, source in (("one", ONE), ("two", TWO)):
        file = folder / f"{name}.c"
        file.write_text(source, encoding="ascii")
        objects.append(file.with_suffix(".o"))
        run(producers() / "clang", *CLANG_FLAGS, *CLANG_SFRAME, "-c", file, "-o", objects[-1])
    return objects


def clang(link_with: str) -> Callable[[Path], Path]:
    """Link by clang, and lld or a GNU ld."""

    def make(folder: Path) -> Path:
        product, objects = folder / "product", clang_objects(folder)
        if link_with == "ld.lld":
            run(producers() / link_with, "-e", "start", "-o", product, *objects)
        else:
            link(tools_for("amd64", int(link_with)), "amd64", product, *objects)
        return product

    return make


def templates(folder: Path) -> list[Path]:
    """Build two object files in C++ with the same function, each in a section group."""
    tools = tools_for("amd64", 3)
    objects = []
    for name in ("one", "two"):
        file = folder / f"{name}.cc"
        text = f"int g(int *);\n{TEMPLATE}\nint {name}(int *p) {{ return f<10>(p) + g(p); }}\n"
        file.write_text(text, encoding="ascii")
        objects.append(file.with_suffix(".o"))
        flags = ("-O2", "-fasynchronous-unwind-tables", "-Wa,--gsframe", f"-B{tools}/")
        run("g++", *flags, "-c", file, "-o", objects[-1])
    return objects


def templates_by_lld(folder: Path) -> Path:
    """Return lld's output with `-r`, in which a function is discarded."""
    product = folder / "product"
    run(producers() / "ld.lld", "-r", "-o", product, *templates(folder))
    return product


def with_abi_number(abi: str, number: int) -> Callable[[Path], Path]:
    """Build a program of GNU ld with another ABI number, as eld numbers them."""

    def make(folder: Path) -> Path:
        product = gnu(abi, 3)(folder)
        content = bytearray(product.read_bytes())
        magic = b"\xde\xe2\x03" if abi == "s390x" else b"\xe2\xde\x03"
        content[content.index(magic) + 4] = number
        product.write_bytes(content)
        return product

    return make


A, L, R, N = Outcome.ACCEPTED, Outcome.LOSES, Outcome.REFUSED, Outcome.NOT_LOADED


class Product(NamedTuple):
    """The output of a producer."""

    name: str
    make: Callable[[Path], Path]
    outcomes: tuple[Outcome, ...]
    """The verdicts of the profiles, in the order of :data:`sframe_unwind.lint.PROFILES`."""
    rules: tuple[Rule, ...] = ()
    """The findings besides unread versions and machines."""


NOTHING_DESCRIBED = (c.CODE_WITHOUT_FDE, c.FUNCTION_WITHOUT_ROWS, c.NOT_PASSED)
LLD = (c.SEGMENT_MISSING, c.CONCATENATED, c.NOT_SORTED)
PRODUCTS = (
    Product("gnu-2.40", gnu("amd64", 1), (A, R, R, R, A, R, R), (c.SEGMENT_LONGER, c.NOT_PCREL)),
    Product("gnu-2.44", gnu("amd64", 2), (A, R, R, A, R, A, R), (c.SEGMENT_LONGER, c.NOT_PCREL)),
    Product("gnu-2.47", gnu("amd64", 3), (A, A, R, R, R, R, A), (c.SEGMENT_LONGER,)),
    Product("gnu-2.44-aarch64", gnu("aarch64", 2), (A, R, R, A, R, A, R), (c.SEGMENT_LONGER, c.NOT_PCREL)),
    Product("gnu-2.47-aarch64", gnu("aarch64", 3), (A, A, A, R, R, R, A), (c.SEGMENT_LONGER,)),
    Product("gnu-2.47-aarch64_be", gnu("aarch64_be", 3), (A, A, A, R, R, R, A), (c.SEGMENT_LONGER,)),
    Product("gnu-2.47-s390x", gnu("s390x", 3), (A, A, R, R, R, R, A), (c.SEGMENT_LONGER,)),
    Product(
        "gnu-as-2.44-ld-2.47", gnu("amd64", 2, linker=3), (A, R, R, R, R, R, R), (c.SECTION_EMPTY, *NOTHING_DESCRIBED)
    ),
    Product("ld-r-2.40", gnu("amd64", 1, "-r"), (R, N, R, N, N, N, N), (c.RELOCATION_STRAY, c.RELOCATION_MISSING)),
    Product("ld-r-2.44", gnu("amd64", 2, "-r"), (R, N, R, N, N, N, N), (c.RELOCATION_STRAY, c.RELOCATION_MISSING)),
    Product("ld-r-2.47", gnu("amd64", 3, "-r"), (A, N, R, N, N, N, N)),
    Product("ld-r-2.47-aarch64", gnu("aarch64", 3, "-r"), (A, N, A, N, N, N, N)),
    Product("clang-lld", clang("ld.lld"), (L, R, R, R, R, R, R), (*LLD, c.PCREL_SET)),
    Product("clang-gnu-ld-2.44", clang("2"), (L, R, R, R, R, R, R), (c.CONCATENATED, c.NOT_SORTED, c.PCREL_SET)),
    Product("clang-gnu-ld-2.47", clang("3"), (A, R, R, R, R, R, R), (c.SECTION_EMPTY, *NOTHING_DESCRIBED)),
    Product("gnu-as-2.40-lld", other("ld.lld", 1), (L, R, R, R, R, R, R), (*LLD, c.NOT_PCREL, c.PCREL_WRONG)),
    Product("gnu-as-2.44-lld", other("ld.lld", 2), (L, R, R, R, R, R, R), (*LLD, c.NOT_PCREL, c.PCREL_WRONG)),
    Product("gnu-as-2.47-lld", other("ld.lld", 3), (L, R, R, R, R, R, R), LLD),
    Product("gnu-as-2.47-lld-r", other("ld.lld", 3, "-r"), (L, N, R, N, N, N, N), (c.CONCATENATED,)),
    Product(
        "templates-lld-r",
        templates_by_lld,
        (L, N, R, N, N, N, N),
        (c.RELOCATION_MISSING, c.RELOCATION_COMDAT, c.CONCATENATED, c.FDE_OUTSIDE_TEXT),
    ),
    Product("mold", other("mold", 3), (A, A, R, R, R, R, A)),
    Product("mold-r", other("mold", 3, "-r"), (A, N, R, N, N, N, N)),
    Product("eld-s390x", with_abi_number("s390x", 5), (R, A, R, R, R, R, A), (c.ABI_UNKNOWN, c.SEGMENT_LONGER)),
    Product(
        "eld-i386",
        with_abi_number("amd64", 4),
        (R, A, R, R, R, R, A),
        (c.ABI_OF_OTHER_MACHINE, c.FIXED_OFFSET, c.SEGMENT_LONGER),
    ),
    Product("eld-riscv64", with_abi_number("amd64", 6), (R, A, R, R, R, R, A), (c.ABI_UNKNOWN, c.SEGMENT_LONGER)),
)
"""Linux does not check the ABI number, so eld's numbering does not affect it."""
