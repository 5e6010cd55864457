"""Executes single instructions: on this machine's processor if possible, otherwise in user-mode QEMU."""

from __future__ import annotations

import platform
import select
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from struct import Struct, pack
from typing import NamedTuple

from tests.hanging import HANG
from tests.samples.catalogue import ABIS
from tools.binutils import ToolchainUnavailable

SOURCE = Path(__file__).with_name("driver.c")
CODE, CODE_SIZE = 0x10000000000, 0x4000
AT = CODE + 0x2000
"""Where instructions are executed; the numbers are those of the driver."""
GRANULES = 6
"""The length of AArch64's scalable vectors, in granules of 8 bytes (VG): no power of two."""
STACK, DATA, AREA = 0x20000000000, 0x30000000000, 0x4000
_GENERAL, _VECTORS = 32, 32
_MASK = (1 << 64) - 1
_PATIENCE = HANG
"""Seconds to wait for a case."""
_BATCH = 40_000
"""Number of bytes of cases that the driver gets before its output is read; a pipe has room for so many."""


class Case(NamedTuple):
    """An instruction to execute."""

    code: bytes
    steps: int
    seed: int
    words: tuple[int, ...] = ()
    """The claims about it; empty: each step is reported."""
    reported: int = 0
    """How many steps, counted from the first, are always reported."""
    other: bytes = b""
    """Other code within its reach, for instructions that execute another one."""
    other_at: int = 0
    """Place of that code, as an offset from the instruction."""


class Step(NamedTuple):
    """One execution."""

    signal: int
    pc: int
    """Address at which execution continued."""
    before: tuple[int, ...]
    """The general registers, by DWARF number."""
    after: tuple[int, ...]
    vectors_before: tuple[int, ...]
    """Two halves of each vector register, the lower one first; s390x: the floating-point register, and nothing."""
    vectors_after: tuple[int, ...]
    flags_before: int
    """The condition code, in the machine's own bits."""
    flags_after: int
    changed: dict[int, int]
    """The changed bytes of memory, by address."""

    is_against: bool
    """Whether the step contradicts the claims, according to the driver."""
    is_backward: bool
    """Whether the direction flag was set."""


class Outcome(NamedTuple):
    """The result for a case."""

    executed: int
    """Number of steps in which the instruction was completed."""
    against: int
    """Number of steps that contradict the claims."""
    steps: list[Step]
    """The reported steps."""


def word_at(address: int) -> int:
    """Return the contents of memory before an instruction, at an address that is a multiple of 8."""
    word = address * 0x9E3779B97F4A7C15 & _MASK
    word ^= word >> 29
    if word % 4 == 0:
        return DATA + AREA // 2 + (word >> 32) % 512 * 8
    return word


class Driver:
    """Runs cases for one machine."""

    def __init__(self, machine: str) -> None:
        self._abi = ABIS[machine]
        is_host = machine == "amd64" and platform.machine() == "x86_64"
        emulator = {
            "amd64": ("qemu-x86_64",),
            "aarch64": ("qemu-aarch64", "-cpu", f"max,sve-default-vector-length={8 * GRANULES}"),
            "s390x": ("qemu-s390x", "-cpu", "max"),
        }
        self._command: tuple[str, ...] = () if is_host else emulator.get(machine, self._abi.emulator)
        self._folder = tempfile.TemporaryDirectory()
        self._program = Path(self._folder.name) / "driver"
        if shutil.which(self._abi.compiler) is None:
            raise ToolchainUnavailable(f"{self._abi.compiler} is not installed")
        subprocess.run(
            [self._abi.compiler, *self._abi.flags, "-O2", "-static", str(SOURCE), "-o", str(self._program)],
            check=True,
            timeout=HANG,
        )
        if self._command and shutil.which(self._command[0]) is None:
            raise ToolchainUnavailable(f"{self._command[0]} is not installed")
        order = ">" if machine == "s390x" else "<"
        self._words = f"{order}%dQ"
        self._request = Struct(f"{order}IIQIIII16s16s")
        self._mark = Struct(f"{order}IIII")
        self._head = Struct(f"{order}IIIIQ{2 * _GENERAL}Q{4 * _VECTORS}QQQ")
        self._change = Struct(f"{order}QQ")
        self._process: subprocess.Popen[bytes] | None = None
        self._read = bytearray()
        self.deaths: list[Case] = []
        """Cases that ended the driver."""

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._folder.cleanup()

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._read.clear()
            self._process = subprocess.Popen(
                [*self._command, str(self._program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
            )
        return self._process

    def run(self, cases: Iterable[Case]) -> Iterator[Outcome]:
        """Yield the results for cases, in order; a case that ends the driver has no executed steps."""
        waiting: list[Case] = []
        size = 0
        for case in cases:
            waiting.append(case)
            size += self._request.size + 8 * len(case.words)
            if size > _BATCH:
                yield from self._batch(waiting)
                waiting, size = [], 0
        yield from self._batch(waiting)

    def _batch(self, cases: list[Case]) -> Iterator[Outcome]:
        while cases:
            process = self._start()
            assert process.stdin is not None
            with suppress(BrokenPipeError):
                process.stdin.write(b"".join(map(self._packed, cases)))
            for number, case in enumerate(cases):
                outcome = self._outcome()
                yield outcome or Outcome(0, 0, [])
                if outcome is None:
                    self._stop()
                    self.deaths.append(case)
                    cases = cases[number + 1 :]
                    break
            else:
                return

    def _packed(self, case: Case) -> bytes:
        words = pack(self._words % len(case.words), *case.words)
        sizes = len(case.other), case.other_at, len(case.words), case.reported
        return self._request.pack(len(case.code), case.steps, case.seed, *sizes, case.code, case.other) + words

    def _outcome(self) -> Outcome | None:
        """Return the result for the next case; ``None``: the driver ended, or does not answer."""
        steps: list[Step] = []
        while True:
            mark = self._bytes(self._mark.size)
            if mark is None:
                return None
            is_step, executed, against, _ = self._mark.unpack(mark)
            if not is_step:
                return Outcome(executed, against, steps)
            step = self._step()
            if step is None:
                return None
            steps.append(step)

    def _step(self) -> Step | None:
        head = self._bytes(self._head.size)
        if head is None:
            return None
        signal, count, is_against, is_backward, pc, *values = self._head.unpack(head)
        changes = self._bytes(count * self._change.size)
        if changes is None:
            return None
        first, second = values[: 2 * _GENERAL], values[2 * _GENERAL :]
        return Step(
            signal=signal,
            pc=pc,
            before=tuple(first[:_GENERAL]),
            after=tuple(first[_GENERAL:]),
            vectors_before=tuple(second[: 2 * _VECTORS]),
            vectors_after=tuple(second[2 * _VECTORS : -2]),
            flags_before=second[-2],
            flags_after=second[-1],
            changed=dict(self._change.iter_unpack(changes)),
            is_against=bool(is_against),
            is_backward=bool(is_backward),
        )

    def _bytes(self, size: int) -> bytes | None:
        """Return the next bytes from the driver; ``None``: it does not answer."""
        assert self._process is not None
        assert self._process.stdout is not None
        while len(self._read) < size:
            is_there = bool(select.select([self._process.stdout], [], [], _PATIENCE)[0])
            more = self._process.stdout.read(1 << 16) if is_there else b""
            if not more:
                return None
            self._read += more
        found = bytes(self._read[:size])
        del self._read[:size]
        return found
