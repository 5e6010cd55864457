"""What was converted, proved and left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sframe_unwind.translation.description import Loss


class Named(NamedTuple):
    """A function that was left out, with its name."""

    loss: Loss
    name: str
    """Empty where no symbol says."""

    def __str__(self) -> str:
        return f"{self.loss.start:#x} {self.name}".rstrip() + f" ({self.loss.reason})"


class Report(NamedTuple):
    """One conversion."""

    file: str
    output: str
    made: str
    """What was made of what, in words."""
    functions: int
    """In the result; an entry of a PLT is part of one function."""
    code_bytes: int
    """That these functions have."""
    size: int
    """Bytes of the section that was made."""
    source_size: int
    """Bytes of the section that it was made from."""
    address: int
    """Of the section that was made; 0: it is not loaded."""
    addresses_compared: int
    losses: tuple[Named, ...]
    problems: tuple[str, ...]
    """What is wrong with records of the source of which not even the function can be told."""

    hint: str = ""
    """Where the output has to be, if it matters."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing was left out."""
        return not (self.losses or self.problems)

    def to_json(self) -> dict[str, Any]:
        """Return it as ``convert --json`` prints it."""
        lost = [
            {"address": loss.start, "size": loss.end - loss.start, "function": name, "reason": loss.reason}
            for loss, name in self.losses
        ]
        kept = self._asdict()
        return {**kept, "losses": lost, "problems": list(self.problems)}

    def lines(self) -> Iterator[str]:
        """Yield it as ``convert`` prints it."""
        lost = len(self.losses)
        yield (
            f"{self.output}: {self.made}: {self.functions} of {self.functions + lost} functions,"
            f" {self.code_bytes} bytes of code; {self.size} bytes, of {self.source_size}"
            + (f", at {self.address:#x}" if self.address else "")
        )
        yield f"  proved: the same CFA, return address and frame pointer at each of {self.addresses_compared} addresses"
        if self.hint:
            yield f"  {self.hint}"
        for named in self.losses:
            yield f"  left out: {named}"
        for problem in self.problems:
            yield f"  cannot be read: {problem}"
