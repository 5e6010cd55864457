"""Finds where a kernel has loaded the sections of its modules."""

from __future__ import annotations

from collections.abc import Iterator

from sframe_unwind.address import WORD_SIZE
from sframe_unwind.errors import KernelError
from sframe_unwind.kernel.linux import Kernel
from sframe_unwind.kernel.structures import StructureReader

_LIST = "modules"
_MODULE, _SECTIONS = "module", "module_sect_attrs"
_MOST = 10_000
"""Maximum number of sections of a module."""
_INITIAL = ".init"
"""Prefix of the names of sections that the kernel frees after the module has started, but still lists."""


def module_name(path: str) -> str | None:
    """Return the kernel's name for the module in a file; ``None``: the file's name is not that of a module."""
    stem, *suffixes = path.rpartition("/")[2].split(".")
    return stem.replace("-", "_") if suffixes in (["ko"], ["ko", "debug"]) else None


class KernelModules:
    """The modules that a kernel has loaded, read from its memory.  Nothing is kept, because modules come and go.

    All types and symbols are looked up by the constructor, so the methods only read memory.

    :raises KernelError: the kernel was built without modules, or without the list of their sections.
    """

    def __init__(self, kernel: Kernel) -> None:
        types = kernel.types
        head = kernel.symbol(_LIST)
        if head is None:
            raise KernelError(f"no symbol {_LIST}: the kernel has no modules")
        self._head = head
        self._kernel = kernel
        self._links = types.place(_MODULE, "list").offset
        self._name = types.place(_MODULE, "name")
        self._attributes = types.place(_MODULE, "sect_attrs")
        self._first = types.place(_SECTIONS, "attrs.0").offset
        self._stride = types.place(_SECTIONS, "attrs.0").size
        # Up to Linux 6.13, an attribute has an address, and there is a count.  Since then, a list of pointers to the
        # attributes ends with a null pointer.
        is_counted = types.has(_SECTIONS, "nsections")
        self._count = types.place(_SECTIONS, "nsections" if is_counted else "grp.bin_attrs")
        self._how_many = self._counted if is_counted else self._listed
        name, address = ("battr.attr.name", "address") if is_counted else ("attr.name", "private")
        self._section_name = types.place(_SECTIONS, f"attrs.0.{name}").offset - self._first
        self._section_address = types.place(_SECTIONS, f"attrs.0.{address}").offset - self._first

    def sections(self, name: str) -> dict[str, int]:
        """Return the addresses of a module's sections by name; empty: no such module is loaded.

        Sections that the kernel may have freed are left out.

        :raises KernelError: the list of modules does not end.
        :raises MemoryReadError: it cannot be read.
        """
        reader = StructureReader(self._kernel)
        for module in reader.entries(self._head, self._links, "modules"):
            if reader.text(module + self._name.offset) == name:
                attributes = reader.number(module, self._attributes)
                return dict(self._sections(reader, attributes)) if attributes else {}
        return {}

    def _sections(self, reader: StructureReader, attributes: int) -> Iterator[tuple[str, int]]:
        first = attributes + self._first
        for number in range(self._how_many(reader, attributes)):
            at = first + number * self._stride
            name = reader.text(reader.pointer(at + self._section_name))
            if not name.startswith(_INITIAL):
                yield name, reader.pointer(at + self._section_address)

    def _counted(self, reader: StructureReader, attributes: int) -> int:
        return min(reader.number(attributes, self._count), _MOST)

    def _listed(self, reader: StructureReader, attributes: int) -> int:
        pointers = reader.number(attributes, self._count)
        return next((number for number in range(_MOST) if not reader.pointer(pointers + WORD_SIZE * number)), 0)
