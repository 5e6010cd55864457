"""The report about a conversion: the functions that were converted, proved and left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sframe_unwind.convert.kinds import DWARF, TITLES, Share
from sframe_unwind.errors import counted
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.translation.compact import Compact
from sframe_unwind.translation.description import Loss


class Named(NamedTuple):
    """A function that was left out, with its name."""

    loss: Loss
    name: str
    """Empty: no symbol covers it."""

    def to_json(self) -> dict[str, Any]:
        """Return it as ``convert --json`` prints it."""
        start, end, reason = self.loss
        return {"address": start, "size": end - start, "function": self.name, "reason": reason}

    def __str__(self) -> str:
        return f"{self.loss.start:#x} {self.name}".rstrip() + f" ({self.loss.reason})"


class Report(NamedTuple):
    """One conversion."""

    file: str
    output: str
    made: str
    """The kinds of the result and of the source, in words."""
    functions: int
    """Number of functions in the result; an entry of a PLT is part of one function."""
    code_bytes: int
    """Size of the code of these functions, in bytes."""
    size: int
    """Size of the section that was made, in bytes."""
    source_size: int
    """Size of the sections that it was made from, in bytes."""
    address: int
    """Address of the section that was made; 0: it is not loaded."""
    addresses_compared: int
    losses: tuple[Named, ...]
    problems: tuple[str, ...]
    """Errors in records of the source whose function is not known."""

    hint: str = ""
    """The places where debuggers look for the output; empty: its place does not matter."""
    compact: Compact | None = None
    """How the section was made smaller; ``None``: it was not."""
    shares: tuple[Share, ...] = ()
    """The part of each kind of unwind data, if the machine code was used."""
    replaced: tuple[Named, ...] = ()
    """The functions whose CFI the code proves wrong, and in what."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing was left out."""
        return not (self.losses or self.problems)

    def to_json(self) -> dict[str, Any]:
        """Return it as ``convert --json`` prints it."""
        lost = [named.to_json() for named in self.losses]
        replaced = {"replaced": [named.to_json() for named in self.replaced]} if self.replaced else {}
        kept = self._asdict()
        kept.pop("shares")
        kept.pop("replaced")
        shares = {"shares": [share.to_json() for share in self.shares]} if self.shares else {}
        return {
            **kept,
            "losses": lost,
            "problems": list(self.problems),
            "compact": self._compact_json(),
            **shares,
            **replaced,
        }

    def _compact_json(self) -> dict[str, Any] | None:
        compact = self.compact
        if compact is None:
            return None
        return {
            "bytes": compact.sizes._asdict(),
            "before": compact.before._asdict(),
            "after": compact.after._asdict(),
            "padding": [list(part) for part in compact.padding],
        }

    def _compact_lines(self) -> Iterator[str]:
        if self.compact is None:
            return
        (plain, shared, divided), before, after = self.compact.sizes, self.compact.before, self.compact.after
        sharing = f"{shared} with shared rows" if self.compact.shares_rows else "rows are not shared without --for"
        anew = f"{divided} with entries divided anew ({divided / plain:.2f})"
        yield f"  compact: {counted(plain, 'byte')}, {sharing}, {anew}"
        yield (
            f"  compact: {counted(before.entries, 'entry')} became {after.entries};"
            f" a lookup reads {after.rows_read:.1f} rows on average (before: {before.rows_read:.1f}),"
            f" at most {after.most_rows} ({before.most_rows})"
        )
        padding = self.compact.padding
        size = counted(sum(end - start for start, end in padding), "byte")
        places = counted(len(padding), "place")
        yield f"  compact: the rule of the code before it covers {size} of padding in {places}"

    def lines(self) -> Iterator[str]:
        """Yield it as ``convert`` prints it."""
        lost = len(self.losses)
        place = f" at {self.address:#x}" if self.address else ""
        yield (
            f"{self.output}: {self.made}: {self.functions} of {counted(self.functions + lost, 'function')},"
            f" {counted(self.code_bytes, 'byte')} of code; a section of {counted(self.size, 'byte')}{place},"
            f" from {counted(self.source_size, 'byte')}"
        )
        addresses = counted(self.addresses_compared, "address")
        yield f"  proved: the same CFA, return address and frame pointer at each of {addresses}"
        for share in self.shares:
            yield f"  {share}"
        for named in self.replaced:
            yield f"  not from {TITLES[DWARF]}, which the code proves wrong: {named}"
        yield from self._compact_lines()
        if self.hint:
            yield f"  {self.hint}"
        for named in self.losses:
            yield f"  left out: {named}"
        for problem in self.problems:
            yield f"  cannot be read: {problem}"
