"""The addresses of a kernel's modules, from its list in memory, in both layouts that Linux has had."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from sframe_unwind.debugger.kernel_modules import ModulePlaces
from sframe_unwind.errors import KernelError
from sframe_unwind.kernel.linux import Kernel
from sframe_unwind.kernel.modules import KernelModules, module_name
from sframe_unwind.kernel.types import Type, Types
from tests.kernel.fake import ARCH, LINKS, Memory, array, number, structure

HEAD, DATA, TEXTS = 0xFFFFFFC009010000, 0xFFFFFF8001000000, 0xFFFFFF8002000000
SECTIONS = {".text": 0xFFFFFFC000100030, ".sframe": 0xFFFFFFC000102000, ".init.text": 0xFFFFFFC000200000}
_ATTRIBUTE = structure(16, name=(0, number()), mode=(8, number(2)))
_FILE = structure(64, attr=(0, _ATTRIBUTE), private=(24, number()))
_GROUP = structure(40, name=(0, number()), attrs=(24, number()), bin_attrs=(32, number()))
_MODULE = structure(
    256, state=(0, number(4)), list=(8, LINKS), name=(24, array(number(1), 56)), sect_attrs=(80, number())
)
LAYOUTS: dict[str, Mapping[str, Type]] = {
    "Linux 6.1": {
        "module": _MODULE,
        "module_sect_attrs": structure(
            48,
            grp=(0, _GROUP),
            nsections=(40, number(4)),
            attrs=(48, array(structure(72, battr=(0, _FILE), address=(64, number())), 0)),
        ),
    },
    "Linux 7.2": {
        "module": _MODULE,
        "module_sect_attrs": structure(40, grp=(0, _GROUP), attrs=(40, array(_FILE, 0))),
    },
}


def kernel(layout: str, **modules: Mapping[str, int]) -> tuple[Kernel, Memory]:
    """Return a kernel with loaded modules."""
    memory = Memory()
    memory.fill(DATA - 0x1000, 0x8000)
    memory.fill(TEXTS, 0x2000)
    memory.fill(HEAD, 0x400)
    links = [HEAD, *(DATA + 0x1000 * index + 8 for index in range(len(modules)))]
    for link, following in zip(links, (*links[1:], HEAD)):
        memory.write(link, following)
    texts = TEXTS
    for link, (name, sections) in zip(links[1:], modules.items()):
        module = link - 8
        memory.put(module + 24, name.encode() + b"\0")
        attributes, pointers = module + 0x100, module + 0x800
        memory.write(module + 80, attributes)
        first, size, value = (attributes + 48, 72, 64) if layout == "Linux 6.1" else (attributes + 40, 64, 24)
        memory.write(attributes + 32, pointers)
        if layout == "Linux 6.1":
            memory.write(attributes + 40, len(sections), 4)
        for index, (section, address) in enumerate(sections.items()):
            at = first + size * index
            memory.write(pointers + 8 * index, at)
            memory.write(at, texts)
            memory.write(at + value, address)
            memory.put(texts, section.encode() + b"\0")
            texts += len(section) + 1
    assert ARCH.linux_kernel is not None
    symbols = {"modules": HEAD}
    return Kernel(
        arch=ARCH,
        facts=ARCH.linux_kernel,
        places=(),
        types=Types(LAYOUTS[layout].get),
        symbol=symbols.get,
        read=memory.read,
    ), memory


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sections_that_stay(layout: str) -> None:
    """Sections of initial code are freed, although the kernel still lists them."""
    found, _ = kernel(layout, jbd2={".text": 0x1000}, probe=SECTIONS)
    modules = KernelModules(found)
    assert modules.sections("probe") == {".text": 0xFFFFFFC000100030, ".sframe": 0xFFFFFFC000102000}
    assert modules.sections("jbd2") == {".text": 0x1000}
    assert modules.sections("ext4") == {}


def test_a_list_that_does_not_end() -> None:
    found, memory = kernel("Linux 6.1", probe=SECTIONS)
    memory.write(DATA + 8, DATA + 8)
    with pytest.raises(KernelError, match=r"the list of modules at 0x[0-9a-f]+ does not end"):
        KernelModules(found).sections("ext4")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/lib/modules/snd-hda.ko", "snd_hda"),
        ("probe.ko.debug", "probe"),
        ("vmlinux", None),
        ("libko.so", None),
        ("probe.ko.xz", None),
    ],
)
def test_the_name_of_the_module_in_a_file(path: str, name: str | None) -> None:
    assert module_name(path) == name


def placed(found: Kernel, path: str, text: int | None) -> tuple[dict[str, tuple[int, int]], list[str]]:
    said: list[str] = []
    sections = ModulePlaces(found, said.append).sections(path, {".text": 0x40, ".sframe": 0x80, ".note": 4}, text)
    return dict(sections), said


def test_a_file_that_the_debugger_has_in_the_right_place() -> None:
    found, _ = kernel("Linux 6.1", probe=SECTIONS)
    sections, said = placed(found, "/modules/probe.ko", SECTIONS[".text"])
    assert sections == {
        ".text": (0xFFFFFFC000100030, 0xFFFFFFC000100070),
        ".sframe": (0xFFFFFFC000102000, 0xFFFFFFC000102080),
    }
    assert said == []


def test_a_file_that_the_debugger_has_in_the_wrong_place() -> None:
    found, _ = kernel("Linux 6.1", probe=SECTIONS)
    sections, said = placed(found, "/modules/probe.ko", 0xFFFFFFC000100000)
    assert sections[".text"] == (0xFFFFFFC000100030, 0xFFFFFFC000100070)
    assert said == [
        "/modules/probe.ko: its .text is at 0xffffffc000100000 in the debugger and at 0xffffffc000100030 in the"
        " kernel: names and lines of its functions are wrong, until the file is loaded at that address"
    ]


def test_files_that_the_kernel_has_not_loaded() -> None:
    found, memory = kernel("Linux 6.1", probe=SECTIONS)
    assert placed(found, "/boot/vmlinux", 0x1000) == ({}, [])
    assert placed(found, "ext4.ko", 0x1000) == ({}, [])
    memory.write(HEAD, 0x10)
    assert placed(found, "probe.ko", 0x1000) == (
        {},
        ["probe.ko: the kernel's list of modules cannot be read: cannot read 992 bytes of memory at 0x20"],
    )


def test_a_kernel_without_modules() -> None:
    found, memory = kernel("Linux 6.1")
    without = Kernel(
        arch=ARCH, facts=found.facts, places=(), types=found.types, symbol=lambda _: None, read=memory.read
    )
    with pytest.raises(KernelError, match="no symbol modules: the kernel has no modules"):
        KernelModules(without)
    assert placed(without, "probe.ko", 0x1000) == ({}, [])
