"""The samples that the user wants."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sframe_unwind.errors import FileError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.perf.sample import Sample


class Selection(NamedTuple):
    """Conditions that a sample has to fulfil; an empty one is fulfilled by all."""

    events: Collection[int] = ()
    """Numbers of events."""
    pids: Collection[int] = ()
    tids: Collection[int] = ()
    comms: Collection[str] = ()
    """Names of threads."""

    def has(self, sample: Sample, thread_name: str) -> bool:
        """Return whether a sample is wanted."""
        return (
            (not self.events or sample.event in self.events)
            and (not self.pids or sample.pid in self.pids)
            and (not self.tids or sample.tid in self.tids)
            and (not self.comms or thread_name in self.comms)
        )


def numbers_of(wanted: Sequence[str], names: Sequence[str]) -> list[int]:
    """Return the numbers of events by their names, with or without a modifier such as ``:u``.

    :raises FileError: there is no event with a name.
    """
    found = []
    for name in wanted:
        matching = [number for number, known in enumerate(names) if name in (known, known.partition(":")[0])]
        if not matching:
            raise FileError(f"--event: there is no event {name}; the events are {', '.join(names)}")
        found += matching
    return found
