"""A program in user-mode QEMU, stepped by instruction over GDB's remote protocol."""

from __future__ import annotations

import random
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from tests.hanging import HANG
from tools.binutils import ToolchainUnavailable

_PATIENCE = HANG
"""Seconds to wait for an answer."""
_TRAP = 5
_MOST_WRITTEN = 1024
"""Maximum number of bytes in a packet; QEMU accepts packets of 4096 characters."""


S390X_FLOATING = (0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15)
"""Floating-point registers in the order of DWARF's numbers from 16."""
_FILLED = 8
"""Number of floating-point or vector registers that are filled."""


class Layout(NamedTuple):
    """Places of the general registers, by DWARF number, and of the program counter in the packet of registers."""

    emulator: tuple[str, ...]
    order: str
    """Byte order, in the notation of :mod:`struct`."""
    registers: tuple[int, ...]
    """The place of each register, in words of eight bytes."""
    pc: int
    floating: tuple[int, int, int]
    """The number of the first floating-point or vector register in the protocol, the size of each in bytes, and the
    DWARF number of the first one."""


GRANULES = 6
"""The length of AArch64's scalable vectors, in granules of 8 bytes (VG)."""
_VECTORS = f"max,sve-default-vector-length={8 * GRANULES}"
LAYOUTS = {
    # The packet has rax, rbx, rcx, rdx; DWARF has rax, rdx, rcx, rbx.
    "amd64": Layout(("qemu-x86_64", "-cpu", "max"), "<", (0, 3, 2, 1, *range(4, 16)), 16, (49, 16, 17)),
    "aarch64": Layout(("qemu-aarch64", "-cpu", _VECTORS), "<", tuple(range(32)), 32, (34, 256, 64)),
    "s390x": Layout(("qemu-s390x", "-cpu", "max"), ">", tuple(range(2, 18)), 1, (35, 8, 16)),
}


class Stopped(NamedTuple):
    """The program between two instructions."""

    pc: int
    registers: tuple[int, ...]
    """The registers by DWARF number."""


class Stub:
    """A program that is stopped at its entry.

    :raises ToolchainUnavailable: there is no emulator.
    """

    def __init__(self, machine: str, program: Path) -> None:
        self._layout = LAYOUTS[machine]
        if shutil.which(self._layout.emulator[0]) is None:
            raise ToolchainUnavailable(f"{self._layout.emulator[0]} is not installed")
        self._word = Struct(f"{self._layout.order}Q")
        self._folder = tempfile.TemporaryDirectory()
        path = Path(self._folder.name) / "stub"
        self._process = subprocess.Popen(
            [*self._layout.emulator, "-seed", "1", "-g", str(path), str(program)], stdin=subprocess.DEVNULL
        )
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(_PATIENCE)
        self._unread = b""
        self._connect(path)
        self._packet("qXfer:features:read:target.xml:0,ffb")  # otherwise QEMU does not read single registers
        self._blank = self._packet("g")

    def _connect(self, path: Path) -> None:
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                self._socket.connect(str(path))
            except OSError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    self.close()
                    raise
                time.sleep(0.01)
            else:
                return

    def __enter__(self) -> Stub:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the program."""
        self._process.kill()  # first: without a debugger it would continue
        self._process.wait()
        self._socket.close()
        self._folder.cleanup()

    def _packet(self, text: str) -> str:
        """Send a packet and return the answer."""
        raw = text.encode()
        self._socket.sendall(b"$%b#%02x" % (raw, sum(raw) & 0xFF))
        while True:
            start = self._unread.find(b"$")
            end = self._unread.find(b"#", start)
            if start >= 0 and 0 < end < len(self._unread) - 2:
                break
            received = self._socket.recv(1 << 16)
            if not received:
                raise ConnectionError("the program ended")
            self._unread += received
        answer, self._unread = self._unread[start + 1 : end], self._unread[end + 3 :]
        self._socket.sendall(b"+")
        return answer.decode("latin-1")

    def write(self, address: int, data: bytes) -> None:
        """Write memory."""
        for start in range(0, len(data), _MOST_WRITTEN):
            part = data[start : start + _MOST_WRITTEN]
            assert self._packet(f"M{address + start:x},{len(part):x}:{part.hex()}") == "OK"

    def read(self, address: int, size: int) -> bytes:
        """Return memory; less, or none, if it cannot be read."""
        answer = self._packet(f"m{address:x},{size:x}")
        return b"" if answer.startswith("E") else bytes.fromhex(answer)

    def place(self, stopped: Stopped) -> None:
        """Set the pc of the program."""
        blank = bytearray.fromhex(self._blank)
        for place, value in zip((*self._layout.registers, self._layout.pc), (*stopped.registers, stopped.pc)):
            self._word.pack_into(blank, 8 * place, value)
        assert self._packet(f"G{blank.hex()}") == "OK"

    def assign(self, register: int | None, value: int) -> None:
        """Change one register, by its DWARF number; ``None``: the program counter."""
        number = self._layout.pc if register is None else self._layout.registers[register]
        assert self._packet(f"P{number:x}={self._word.pack(value).hex()}") == "OK"

    def stopped(self) -> Stopped:
        """Return the state of the program."""
        raw = bytes.fromhex(self._packet("g")[: 16 * 34].replace("x", "0"))
        words = [self._word.unpack_from(raw, 8 * place)[0] for place in (*self._layout.registers, self._layout.pc)]
        return Stopped(words[-1], tuple(words[:-1]))

    def floating(self, register: int) -> int:
        """Return the first 8 bytes of a floating-point or vector register, by its DWARF number."""
        first, _, first_in_dwarf = self._layout.floating
        place = register - first_in_dwarf
        number = first + (S390X_FLOATING[place] if self._layout.order == ">" else place)
        raw = bytes.fromhex(self._packet(f"p{number:x}"))
        return int(self._word.unpack(raw[:8])[0])

    def fill_floating(self, random_: random.Random) -> None:
        """Fill the first floating-point or vector registers with random bytes: otherwise they hold copied values."""
        first, size, _ = self._layout.floating
        for number in range(first, first + _FILLED):
            assert self._packet(f"P{number:x}={random_.randbytes(size).hex()}") == "OK"

    def step(self) -> bool:
        """Execute an instruction; return whether it was executed."""
        answer = self._packet("s")
        if answer[:1] in "WX":
            raise ConnectionError("the program ended")
        return answer[:1] in "ST" and int(answer[1:3], 16) == _TRAP
