"""The readers of SFrame: the versions, machines and kinds of rows that each accepts.

``lint`` adds the reaction of each to a section that breaks a rule; ``convert`` writes sections that given readers
accept.
"""

from __future__ import annotations

from collections.abc import Mapping

from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.sframe.constants import VERSIONS, AbiNumber


class Consumer(NamedTuple):
    """One reader of SFrame."""

    name: str
    """The name that ``--for`` takes."""
    title: str
    revision: str
    """The version of the reader that these rules describe; later ones can differ."""
    source: str
    """The source of its rules."""
    versions: tuple[int, ...]
    abis: tuple[AbiNumber, ...] = ()
    """The ABIs that it supports; empty: it does not check the ABI."""
    pcrel_flag: bool = True
    """It takes a section with the flag FDE_FUNC_START_PCREL."""
    flexible: bool = True
    """It expects flexible FDEs, in the versions that have them."""
    outermost_in_flexible: bool = True
    """It takes a row of a flexible FDE with an undefined return address, which has fewer than two data words."""


SPEC = Consumer(
    "spec",
    "the specification",
    "manuals of 2.44 to 2.46",
    "the manuals of binutils 2.44 to 2.46, as the decoder of this project reads them",
    VERSIONS,
)

LINUX_USER = Consumer(
    "linux-user",
    "Linux, user stacks",
    "series v13",
    'kernel/unwind/sframe.c of the series "unwind_deferred: Implement sframe handling" (v13 of 2026-01-27 and later,'
    " not merged), as in commit 3231d5c571fa6e6b8f78d8039a3429eb0d953caa of github.com/dylanbhatch/linux",
    (3,),
    outermost_in_flexible=False,
)

LINUX_KERNEL = Consumer(
    name="linux-kernel",
    title="Linux, the arm64 kernel and its modules",
    revision="series v8",
    source='kernel/unwind/sframe.c of the series "unwind, arm64: add sframe unwinder for kernel" (v8, not merged),'
    " November 2026",
    versions=(3,),
    abis=(AbiNumber.AARCH64_ENDIAN_BIG, AbiNumber.AARCH64_ENDIAN_LITTLE),
    flexible=False,
)

# A patch of April 2026 for default FDEs of version 3 is not in a release.
GLIBC = Consumer(
    name="glibc",
    title="glibc's backtrace",
    revision="glibc-2.43",
    source="sysdeps/generic/sframe-read.c of glibc 2.43 with --enable-sframe",
    versions=(2,),
    abis=(AbiNumber.AMD64_ENDIAN_LITTLE, AbiNumber.AARCH64_ENDIAN_BIG, AbiNumber.AARCH64_ENDIAN_LITTLE),
)

LIBSFRAME_2_40 = Consumer(
    "libsframe-2.40",
    "libsframe of GNU binutils 2.40",
    "binutils-2_40",
    "libsframe of binutils 2.40, which was run",
    (1,),
    pcrel_flag=False,
)

LIBSFRAME_2_44 = Consumer(
    "libsframe-2.44",
    "libsframe of GNU binutils 2.44",
    "binutils-2_44",
    "libsframe/sframe.c of binutils 2.44, which was run as well",
    (2,),
    pcrel_flag=False,
)

LIBSFRAME_2_47 = Consumer(
    "libsframe-2.47",
    "libsframe of GNU binutils 2.46 and 2.47",
    "binutils-2_47",
    "libsframe/sframe.c of binutils 2.47, which was run as well; that of 2.46 differs in what it frees",
    (2, 3),
)

CONSUMERS: Mapping[str, Consumer] = {
    one.name: one for one in (SPEC, LINUX_USER, LINUX_KERNEL, GLIBC, LIBSFRAME_2_40, LIBSFRAME_2_44, LIBSFRAME_2_47)
}
"""By name."""
