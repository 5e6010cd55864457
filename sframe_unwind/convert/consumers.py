"""What readers of SFrame take, as far as it decides what to write for them."""

from __future__ import annotations

from collections.abc import Iterable

from sframe_unwind.errors import EncodeError
from sframe_unwind.translation.to_sframe import Target

_CONSUMERS: dict[str, dict[int, Target]] = {
    "spec": {2: Target(2, flexible=False), 3: Target(3)},
    # The series of 2026 refuses rows of flexible FDEs with fewer than two data words, which an outermost row has.
    "linux-user": {3: Target(3, outermost_in_flexible=False)},
    # The arm64 series (v8) expects default FDEs only.
    "linux-kernel": {3: Target(3, flexible=False)},
    # 2.42 and 2.43; a patch of April 2026 for default FDEs of version 3 is not in a release.
    "glibc": {2: Target(2, flexible=False)},
}
"""By name and version."""

CONSUMERS = tuple(_CONSUMERS)
"""Names of readers; ``spec`` is one that reads all that the specification has."""


def target_for(names: Iterable[str], version: int | None) -> Target:
    """Return what a table may have so that all of some readers take it.

    :param names: of :data:`CONSUMERS`; none: ``spec``.
    :param version: ``None``: the newest that all of them read.
    :raises EncodeError: one does not read the version, or there is none that all read.
    """
    readers = {name: _CONSUMERS[name] for name in names} or {"spec": _CONSUMERS["spec"]}
    if version is None:
        common = set.intersection(*(set(known) for known in readers.values()))
        if not common:
            raise EncodeError(f"no version of SFrame is read by {' and '.join(readers)} alike")
        version = max(common)
    for name, known in readers.items():
        if version not in known:
            raise EncodeError(f"{name} does not read version {version}, but {' and '.join(map(str, known))}")
    targets = [known[version] for known in readers.values()]
    return Target(
        version,
        all(target.flexible for target in targets),
        all(target.outermost_in_flexible for target in targets),
    )
