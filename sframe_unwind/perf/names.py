"""The functions and modules of frames."""

from __future__ import annotations

from functools import lru_cache

from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.perf.code_file import CodeFile
from sframe_unwind.perf.generated import GeneratedNames
from sframe_unwind.perf.spaces import Space
from sframe_unwind.report.demangle import demangle

_MOST_ADDRESSES = 200_000


class Name(NamedTuple):
    """The place of a frame's code."""

    function: str
    """Empty: no symbol covers the address."""
    module: str
    """Path of the file, or name of the mapping; empty: nothing is mapped there."""
    build_id: str
    """Hexadecimal digits; empty: not known."""

    @property
    def shown(self) -> str:
        """The name in a stack."""
        return self.function or f"[{self.module.rpartition('/')[2] or 'unknown'}]"


class Names:
    """Finds names, and keeps them.

    :param generated: the names of generated code; ``None``: there are none.
    """

    def __init__(self, generated: GeneratedNames | None = None) -> None:
        self._generated = generated
        self._known: dict[tuple[CodeFile, int], Name] = {}
        """The names of files, which many address spaces share."""
        self._found = lru_cache(_MOST_ADDRESSES)(self._find)
        """The names by address space: finding the file takes longer than all else."""

    def find(self, space: Space, lookup: int, pid: int = 0) -> Name:
        """Return the name for a lookup address.

        :param pid: the process, which can have named generated code; several can have the same address space.
        """
        found = self._found(space, lookup)
        if found.build_id or found.function or self._generated is None:
            return found
        return found._replace(function=self._generated.name(pid, lookup))

    def _find(self, space: Space, lookup: int) -> Name:
        file = space.find(lookup)
        if file is None:
            return Name("", space.place(lookup)[0], "")
        found = self._known.get((file, lookup))
        if found is None:
            match = file.loaded.function_at(lookup)
            found = Name(demangle(match.function) if match else "", file.path, file.build_id)
            self._known[file, lookup] = found
        return found
