"""Executes single instructions: on the host's processor where it is of the machine, else in user-mode QEMU."""

from __future__ import annotations

import platform
import select
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from tests.samples.catalogue import ABIS
from tools.binutils import ToolchainUnavailable

SOURCE = Path(__file__).with_name("driver.c")
CODE, CODE_SIZE = 0x10000000000, 0x4000
AT = CODE + 0x2000
"""Where instructions are executed; the numbers are those of the driver."""
STACK, DATA, AREA = 0x20000000000, 0x30000000000, 0x4000
_GENERAL, _VECTORS = 32, 32
_MASK = (1 << 64) - 1
_SIGTRAP, _SIGSEGV = 5, 11
_PATIENCE = 10.0
"""Seconds for a case."""


class Case(NamedTuple):
    """An instruction to execute."""

    code: bytes
    steps: int
    seed: int
    other: bytes = b""
    """Other code that is put in its reach, for instructions that execute another."""
    other_at: int = 0
    """Where, as an offset from the instruction."""


class Step(NamedTuple):
    """One execution."""

    signal: int
    pc: int
    """Where execution went on."""
    before: tuple[int, ...]
    """General registers, by DWARF number."""
    after: tuple[int, ...]
    vectors_before: tuple[int, ...]
    """Two halves of each vector register, the lower first; s390x: the floating-point register, and nothing."""
    vectors_after: tuple[int, ...]
    flags_before: int
    """The condition code, as the machine has it in its bits."""
    flags_after: int
    changed: dict[int, int]
    """The bytes of memory that it changed, by address."""

    @property
    def is_executed(self) -> bool:
        """Whether the instruction ran to its end."""
        return self.signal == _SIGTRAP or (self.signal == _SIGSEGV and self.pc != AT)


def word_at(address: int) -> int:
    """Return what memory holds before an instruction at an address that is a multiple of 8."""
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
        emulator = {"amd64": ("qemu-x86_64",), "s390x": ("qemu-s390x", "-cpu", "max")}
        self._command: tuple[str, ...] = () if is_host else emulator.get(machine, self._abi.emulator)
        self._folder = tempfile.TemporaryDirectory()
        self._program = Path(self._folder.name) / "driver"
        if shutil.which(self._abi.compiler) is None:
            raise ToolchainUnavailable(f"{self._abi.compiler} is not installed")
        subprocess.run(
            [self._abi.compiler, *self._abi.flags, "-O1", "-static", str(SOURCE), "-o", str(self._program)],
            check=True,
            timeout=120,
        )
        if self._command and shutil.which(self._command[0]) is None:
            raise ToolchainUnavailable(f"{self._command[0]} is not installed")
        order = ">" if machine == "s390x" else "<"
        self._request = Struct(f"{order}IIQII16s16s")
        self._head = Struct(f"{order}IIQ{2 * _GENERAL}Q{4 * _VECTORS}QQQ")
        self._change = Struct(f"{order}QQ")
        self._process: subprocess.Popen[bytes] | None = None
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
            self._process = subprocess.Popen(
                [*self._command, str(self._program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        return self._process

    def run(self, case: Case) -> Iterator[Step]:
        """Yield the steps of a case; fewer than it asks for where it ends the driver."""
        process = self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(
            self._request.pack(
                len(case.code), case.steps, case.seed, len(case.other), case.other_at, case.code, case.other
            )
        )
        process.stdin.flush()
        # The driver answers when all steps are done.
        is_answered = bool(select.select([process.stdout], [], [], _PATIENCE)[0])
        for _ in range(case.steps):
            raw = process.stdout.read(self._head.size) if is_answered else b""
            if len(raw) < self._head.size:
                self._stop()
                self.deaths.append(case)
                return
            signal, count, pc, *values = self._head.unpack(raw)
            changed = dict(self._change.iter_unpack(process.stdout.read(count * self._change.size)))
            first, second = values[: 2 * _GENERAL], values[2 * _GENERAL :]
            yield Step(
                signal,
                pc,
                tuple(first[:_GENERAL]),
                tuple(first[_GENERAL:]),
                tuple(second[: 2 * _VECTORS]),
                tuple(second[2 * _VECTORS : -2]),
                second[-2],
                second[-1],
                changed,
            )
