"""The kinds of unwind data that a conversion reads."""

from __future__ import annotations

from sframe_unwind.errors import counted
from sframe_unwind.named_tuple import NamedTuple

DWARF, SFRAME, CODE, DWARF_AND_CODE = "dwarf", "sframe", "code", "dwarf,code"
SOURCES = (DWARF, SFRAME, CODE, DWARF_AND_CODE)
"""The kinds of unwind data; the last is DWARF CFI, and the code where CFI is missing, inexpressible or wrong."""
ENTRY_CODE = "entry code"
"""The part of a kernel's entry code whose frames are the outermost ones; the code does not show this."""
TITLES = {
    DWARF: "DWARF CFI",
    CODE: "the machine code",
    DWARF_AND_CODE: "DWARF CFI and the machine code",
    ENTRY_CODE: "the kernel's entry code, as outermost frames",
}


class Share(NamedTuple):
    """The part of a conversion's result that was made from one kind of unwind data."""

    kind: str
    """:data:`DWARF`, :data:`CODE` or :data:`ENTRY_CODE`."""
    functions: int
    """Number of functions, or of their parts without a gap."""
    code_bytes: int
    proved: int | None = None
    """Of :data:`CODE`: number of rules that rest on the function's own code; ``None``: the kind is another one."""
    by_abi: int | None = None
    """Of :data:`CODE`: number of rules that a call lies before, which is assumed to return by the ABI."""

    def to_json(self) -> dict[str, str | int]:
        """Return it without what its kind does not have."""
        return {name: value for name, value in self._asdict().items() if value is not None}

    def __str__(self) -> str:
        size = f"{counted(self.functions, 'function')}, {counted(self.code_bytes, 'byte')} of code"
        text = f"from {TITLES[self.kind]}: {size}"
        if self.proved is None or self.by_abi is None:
            return text
        own = counted(self.proved, "rule")
        return f"{text}; {own} by the function alone, {self.by_abi} after a call, which returns by the ABI"
