"""The list of samples: their sources, and the compilers and ABIs of their builds.

The source of a sample explains its purpose; this module explains why a source is built in several ways.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

VARIANTS = {
    "O0": ("-O0",),
    "O2": ("-O2",),
    "Os": ("-Os",),
    "fp": ("-O2", "-fno-omit-frame-pointer"),
    "pac": ("-O2", "-mbranch-protection=standard"),
    "pacb": ("-O2", "-mbranch-protection=pac-ret+b-key"),
}
"""The compiler's options: with and without optimisation, with a frame pointer, with signed return addresses."""

PLAIN_VARIANTS = ("O0", "O2", "Os", "fp")
SIGNED_VARIANTS = ("pac", "pacb")
"""Variants with return addresses signed with key A and with key B: AArch64 only."""


@dataclass(frozen=True)
class Abi:
    """One of SFrame's ABIs, with its compiler and its emulator."""

    name: str
    target: str
    """The target machine, as the toolchain writes it."""
    compiler: str
    package: str
    """The Debian package with the compiler."""
    versions: tuple[int, ...]
    """The versions of SFrame that an assembler writes for it."""
    flags: tuple[str, ...] = ()
    emulator: tuple[str, ...] = ()
    """The command that runs its programs; empty for the machine itself."""
    has_libc: bool = True
    signs: bool = False
    """Whether it can sign return addresses."""


ABIS = {
    abi.name: abi
    for abi in (
        Abi("amd64", "x86_64", "gcc", "gcc", (1, 2, 3)),
        Abi(
            "aarch64",
            "aarch64",
            "aarch64-linux-gnu-gcc",
            "gcc-aarch64-linux-gnu",
            (1, 2, 3),
            emulator=("qemu-aarch64", "-cpu", "max", "-L", "/usr/aarch64-linux-gnu"),
            signs=True,
        ),
        Abi(
            "aarch64_be",
            "aarch64",
            "aarch64-linux-gnu-gcc",
            "gcc-aarch64-linux-gnu",
            (1, 2, 3),
            flags=("-mbig-endian", "-Wl,-EB"),
            emulator=("qemu-aarch64_be", "-cpu", "max"),
            has_libc=False,
            signs=True,
        ),
        Abi(
            "s390x",
            "s390x",
            "s390x-linux-gnu-gcc",
            "gcc-s390x-linux-gnu",
            (3,),
            emulator=("qemu-s390x", "-L", "/usr/s390x-linux-gnu"),
        ),
    )
}

WITH_LIBC = tuple(name for name, abi in ABIS.items() if abi.has_libc)


@dataclass(frozen=True)
class Library:
    """A shared library beside a sample's executable."""

    file: str
    sources: tuple[str, ...]
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sample:
    """One executable: what it is made of, and the builds that make sense for it."""

    name: str
    sources: tuple[str, ...]
    abis: tuple[str, ...] = WITH_LIBC
    variants: tuple[str, ...] = PLAIN_VARIANTS + SIGNED_VARIANTS
    compile_flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()
    libraries: tuple[Library, ...] = ()
    linked_libraries: tuple[str, ...] = ()
    """Those of `libraries` with which the executable is linked.  It loads the others itself."""
    freestanding: bool = False
    """It has no C library, and is linked at a fixed address."""
    sframe_only: bool = False
    """There is no DWARF unwind data for the functions in `sources`."""
    stripped: bool = False
    """It has no symbols and no debugging information; sample_stop remains among the dynamic symbols."""

    def variants_for(self, abi: str) -> tuple[str, ...]:
        """Return the variants of this sample for an ABI (a key of ABIS)."""
        return tuple(name for name in self.variants if name in PLAIN_VARIANTS or ABIS[abi].signs)


@dataclass(frozen=True, order=True)
class Build:
    """One way to build one sample: the arguments of `build`."""

    name: str
    abi: str
    version: int
    variant: str
    pie: bool


SHARED = Library("libshared.so", ("shared.c",))
PLUGINS = (
    Library("libplugin_one.so", ("plugin.c",), ("-DPLUGIN_ROOM=32",)),
    Library("libplugin_two.so", ("plugin.c",), ("-DPLUGIN_ROOM=96",)),
)


def _plt(name: str, *link_flags: str, abis: tuple[str, ...] = WITH_LIBC) -> Sample:
    """Return a build of plt.c; the way in which a program is bound decides which stubs the linker makes."""
    return Sample(
        name,
        ("plt.c",),
        abis=abis,
        link_flags=link_flags,
        libraries=(SHARED,),
        linked_libraries=(SHARED.file,),
    )


SAMPLES = {
    sample.name: sample
    for sample in (
        Sample("leaf", ("leaf.c",)),
        Sample("recursion", ("recursion.c",)),
        Sample("dynamic", ("dynamic.c",)),
        Sample("offsets", ("offsets.c",)),
        Sample("sizes", ("sizes.c",)),
        Sample(
            "noreturn",
            ("noreturn.c",),
            compile_flags=("-falign-functions=1", "-fno-reorder-functions", "-fno-toplevel-reorder"),
        ),
        Sample("callback", ("callback.c",)),
        Sample("signals", ("signals.c",)),
        Sample("threads", ("threads.c",), compile_flags=("-pthread",), link_flags=("-pthread",)),
        _plt("plt", "-Wl,-z,lazy"),
        _plt("plt_now", "-Wl,-z,now"),
        # Stubs in two sections, .plt and .plt.sec, as in distributions that track indirect branches.
        _plt("plt_ibt", "-Wl,-z,lazy,-z,ibtplt", abis=("amd64",)),
        Sample("dlopen", ("dlopen.c",), link_flags=("-ldl",), libraries=PLUGINS),
        # -O0 makes no tail calls.
        Sample("tail_inline", ("tail_inline.c",), variants=("O2", "Os", "fp", *SIGNED_VARIANTS)),
        Sample("realign", ("realign.c",)),
        Sample("sframe_only", ("sframe_only.c",), sframe_only=True),
        Sample("sframe_only_stripped", ("sframe_only.c",), sframe_only=True, stripped=True),
        # Bound at the start: the way through the dynamic linker would be most of the steps.
        Sample("stepper", ("stepper.c",), link_flags=("-Wl,-z,now",)),
        Sample("stepper_lazy", ("stepper.c",), link_flags=("-Wl,-z,lazy",)),
        Sample("free_walk", ("free_walk.c", "free_start.S"), abis=tuple(ABIS), freestanding=True),
        # Not with a frame pointer: these functions use its register for a value.
        Sample(
            "free_leaf",
            ("free_leaf.c", "free_start.S"),
            abis=tuple(ABIS),
            variants=("O2", "Os", *SIGNED_VARIANTS),
            freestanding=True,
        ),
        # Each frame has the address of its caller's in its first word: a witness that needs no unwind data.
        Sample(
            "free_backchain",
            ("free_walk.c", "free_start.S"),
            abis=("s390x",),
            compile_flags=("-mbackchain",),
            freestanding=True,
        ),
        # No .eh_frame at all, not even that of start-up files.
        Sample(
            "free_sframe_only",
            ("free_walk.c", "free_start.S"),
            abis=tuple(ABIS),
            compile_flags=("-DSFRAME_ONLY",),
            freestanding=True,
            sframe_only=True,
        ),
    )
}


def all_builds() -> Iterator[Build]:
    """Yield every way to build every sample."""
    for sample in SAMPLES.values():
        for abi in sample.abis:
            for version in ABIS[abi].versions:
                for variant in sample.variants_for(abi):
                    for pie in (True, False):
                        if not (pie and sample.freestanding):
                            yield Build(sample.name, abi, version, variant, pie)
