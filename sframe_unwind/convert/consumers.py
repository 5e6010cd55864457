"""Chooses the version and the kinds of rows that all of the readers named by ``--for`` accept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sframe_unwind.consumers import CONSUMERS, SPEC, Consumer
from sframe_unwind.errors import EncodeError
from sframe_unwind.translation.to_sframe import WRITTEN, Target

READERS: Mapping[str, Consumer] = {name: one for name, one in CONSUMERS.items() if one.pcrel_flag}
"""By name, the readers for which tables can be made.  All tables have the flag FDE_FUNC_START_PCREL."""


def target_for(names: Iterable[str], version: int | None) -> Target:
    """Return the version and the kinds of rows that all of some readers accept.

    :param names: names in :data:`READERS`; none: ``spec``.
    :param version: ``None``: the newest that all of them read.
    :raises EncodeError: a reader does not read the version, or no version is read by all of them.
    """
    readers = [READERS[name] for name in names] or [SPEC]
    if version is None:
        common = set(WRITTEN).intersection(*(reader.versions for reader in readers))
        if not common:
            raise EncodeError(
                f"no version of SFrame is read by {' and '.join(reader.name for reader in readers)} alike"
            )
        version = max(common)
    for reader in readers:
        known = [one for one in reader.versions if one in WRITTEN]
        if version not in known:
            raise EncodeError(f"{reader.name} does not read version {version}, but {' and '.join(map(str, known))}")
    return Target(
        version,
        all(reader.flexible for reader in readers),
        all(reader.outermost_in_flexible for reader in readers),
    )
