"""The address of the list is read from compiled code of all ABIs, as compilers write it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from sframe_unwind.arch import BY_NAME
from sframe_unwind.errors import MemoryReadError
from sframe_unwind.runtime_code.file_symbols import file_symbols, finder
from sframe_unwind.runtime_code.head import find_lists, returned_address
from sframe_unwind.runtime_code.names import LIST_FUNCTION, LIST_SYMBOL
from tests.runtime_code.programs import FOLDER, SECONDS, build_generated
from tests.samples.catalogue import ABIS

SHARED = ("-shared", "-fPIC", "-O2")
HIDDEN = (*SHARED, "-fvisibility=hidden")
CASES = [
    ("amd64", SHARED),
    ("amd64", HIDDEN),
    ("amd64", (*HIDDEN, "-fcf-protection=full")),
    ("amd64", (*HIDDEN, "-O0")),
    ("amd64", ("-no-pie", "-fno-pie", "-O2")),
    ("amd64", ("-static-pie", "-fPIE", "-O2")),
    ("aarch64", SHARED),
    ("aarch64", HIDDEN),
    ("aarch64", (*HIDDEN, "-mbranch-protection=standard")),
    ("aarch64", ("-static", "-O2")),
    ("s390x", SHARED),
    ("s390x", HIDDEN),
    ("s390x", ("-static", "-O2")),
]


@pytest.mark.parametrize(("abi", "flags"), CASES, ids=[f"{abi}{''.join(flags)}" for abi, flags in CASES])
def test_address_from_code(abi: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    library = tmp_path / "registry"
    main = tmp_path / "main.c"
    main.write_text("int main(void) { return 0; }\n", encoding="utf-8")
    command = [ABIS[abi].compiler, *flags, "-fno-use-linker-plugin", "-DOWN_REGISTRY", "registry.c", str(main)]
    subprocess.run([*command, "-o", str(library)], cwd=FOLDER, check=True, timeout=SECONDS)
    symbols = file_symbols(library)
    with library.open("rb") as stream:
        elf = ELFFile(stream)
        slots = {
            relocation["r_offset"]: table.get_symbol(relocation["r_info_sym"]).name
            for section in elf.iter_sections()
            if section["sh_type"] == "SHT_RELA" and section["sh_link"]
            for table in [elf.get_section(section["sh_link"])]
            for relocation in section.iter_relocations()
        }
        (offset,) = elf.address_offsets(symbols[LIST_FUNCTION], 1)
        stream.seek(offset)
        code = stream.read(24)
    order = BY_NAME[abi].byteorder

    def read(address: int, size: int) -> bytes:
        """Read the global offset table, as the dynamic linker fills it in."""
        if slots.get(address) != LIST_SYMBOL:
            raise MemoryReadError(address, size)
        return symbols[LIST_SYMBOL].to_bytes(size, "little" if order == "little" else "big")

    assert returned_address(code, symbols[LIST_FUNCTION], read, BY_NAME[abi]) == symbols[LIST_SYMBOL]


@pytest.mark.parametrize("abi", ["amd64", "aarch64", "s390x"])
def test_other_code_is_no_head(abi: str) -> None:
    """No list is found in another function of that name, or in one that cannot be read."""

    def read(address: int, size: int) -> bytes:
        if address != 0x1000:
            raise MemoryReadError(address, size)
        return bytes(range(1, size + 1))

    assert find_lists(lambda name: [0x1000, 0x2000] if name == LIST_FUNCTION else [], read, BY_NAME[abi]) == []


def test_list_and_function_are_the_same_list() -> None:
    """Both ways find the same list in a program at a fixed address, with a library that cannot be read."""
    path = build_generated("amd64", "own")
    symbols = file_symbols(path)
    data = path.read_bytes()
    with path.open("rb") as stream:
        (offset,) = ELFFile(stream).address_offsets(symbols[LIST_FUNCTION], 1)

    def read(address: int, size: int) -> bytes:
        start = offset + address - symbols[LIST_FUNCTION]
        return data[start : start + size]

    find = finder([(path, 0), ("/nonexistent/library.so", 0)])
    assert find_lists(find, read, BY_NAME["amd64"]) == [symbols[LIST_SYMBOL]]
    assert finder([(path, 0x1000)])(LIST_SYMBOL) == [symbols[LIST_SYMBOL] + 0x1000]
