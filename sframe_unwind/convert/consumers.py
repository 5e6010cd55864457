"""What readers of SFrame take, as far as it decides what to write for them."""

from __future__ import annotations

from sframe_unwind.errors import EncodeError
from sframe_unwind.translation.to_sframe import Target

NEWEST = 3

_CONSUMERS: dict[str, dict[int, Target]] = {
    "spec": {2: Target(2, flexible=False), 3: Target(3)},
    # The series of 2026 refuses rows of flexible FDEs with fewer than two data words, which an outermost row has.
    "linux-user": {3: Target(3, outermost_in_flexible=False)},
    # The arm64 series (v8) expects default FDEs only.
    "linux-kernel": {3: Target(3, flexible=False)},
    # 2.42 and 2.43 read version 2; the patch of April 2026 reads default FDEs of version 3.
    "glibc": {2: Target(2, flexible=False), 3: Target(3, flexible=False)},
}
"""By name and version."""

CONSUMERS = tuple(_CONSUMERS)
"""Names of readers; ``spec`` is one that reads all that the specification has."""


def target_for(names: list[str], version: int) -> Target:
    """Return what a table may have so that all of some readers take it.

    :param names: of :data:`CONSUMERS`; none: ``spec``.
    :raises EncodeError: one does not read the version.
    """
    targets = []
    for name in names or ["spec"]:
        known = _CONSUMERS[name]
        if version not in known:
            raise EncodeError(f"{name} does not read version {version}, but {' and '.join(map(str, known))}")
        targets.append(known[version])
    return Target(
        version,
        all(target.flexible for target in targets),
        all(target.outermost_in_flexible for target in targets),
    )
