"""QEMU for AArch64 with the registers that hold the masks of signed return addresses, as QEMU 8.1 and later have them.

The module is a program that takes QEMU's arguments after the name of the emulator, the first of them ``-g SOCKET``.
The debugger's packets go to QEMU, except those about these registers.  An emulator that has them is used unchanged.
"""

from __future__ import annotations

import functools
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from sframe_unwind.address import WORD_SIZE, ByteOrder
from tests.gdb.programs import built
from tests.samples.catalogue import ABIS
from tests.waiting import wait_until

MASK = 0x007F_0000_0000_0000
"""The bits of an address that hold its authentication code in QEMU, and under Linux with 48-bit addresses."""
_FIRST = 0x1F0
"""Number of the first of these registers in the protocol, above those of QEMU."""
_DESCRIPTION = "qXfer:features:read:"
_FEATURE = f"""<?xml version="1.0"?><!DOCTYPE feature SYSTEM "gdb-target.dtd">
<feature name="org.gnu.gdb.aarch64.pauth">
<reg name="pauth_dmask" bitsize="64" regnum="{_FIRST}"/><reg name="pauth_cmask" bitsize="64" regnum="{_FIRST + 1}"/>
</feature>"""
_FILE = "aarch64-pauth.xml"


def command(emulator: Sequence[str], folder: Path) -> list[str]:
    """Return the command of an emulator with the registers.

    :param folder: gets the script that the command runs.
    """
    name, *arguments = emulator
    path, checkout = folder / name, Path(__file__).resolve().parents[2]
    path.write_text(
        f'#!/bin/sh\nunset PYTHONHOME; PYTHONPATH="{checkout}" exec "{sys.executable}" -m {__name__} {name} "$@"\n'
    )
    path.chmod(0o755)
    return [str(path), *arguments]


def packet(content: bytes) -> bytes:
    """Return a packet of GDB's remote protocol."""
    return b"$%b#%02x" % (content, sum(content) & 0xFF)


def packets(connection: socket.socket) -> Iterator[bytes]:
    """Yield what a side sends: packets whole, everything else byte by byte; end when it closes the connection."""
    unread = b""
    while received := connection.recv(1 << 16):
        unread += received
        while found := re.match(rb"(?s)\$[^#]*#..|[^$]", unread):
            yield found[0]
            unread = unread[found.end() :]


@functools.cache
def has_masks(abi: str) -> bool:
    """Return whether the emulator of an ABI has the registers without the proxy."""
    name, *arguments = ABIS[abi].emulator
    if "aarch64" not in name:
        return False
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/qemu"
        program = built("free_walk", abi, 3)
        with subprocess.Popen([name, "-g", path, *arguments, str(program)], stdin=subprocess.DEVNULL) as process:
            try:
                return Emulator(path, "little").has_masks
            finally:
                process.kill()


class Emulator:
    """The connection to QEMU.

    :param path: its socket.
    """

    def __init__(self, path: str, byteorder: ByteOrder) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        wait_until(lambda: self.socket.connect_ex(path) == 0, f"QEMU listens at {path}")
        self._byteorder = byteorder
        whole = self._ask(f"{_DESCRIPTION}target.xml:0,ffb")[1:]
        added = f'<xi:include href="{_FILE}"/></target>'.encode()
        self._files = {"target.xml": whole.replace(b"</target>", added), _FILE: _FEATURE.encode()}
        self.has_masks = b"pauth" in whole
        """QEMU itself has the registers."""
        if self.has_masks:
            self._files.clear()

    def _ask(self, question: str) -> bytes:
        self.socket.sendall(packet(question.encode()))
        answer = next(part for part in packets(self.socket) if part.startswith(b"$"))
        self.socket.sendall(b"+")
        return answer[1:-3]

    def own_answer(self, sent: bytes) -> bytes | None:
        """Return the answer to a packet about the mask registers; ``None``: QEMU answers it."""
        question = sent[1:-3].decode("latin-1")
        if question in (f"p{_FIRST:x}", f"p{_FIRST + 1:x}"):
            return MASK.to_bytes(WORD_SIZE, self._byteorder).hex().encode()
        name, _, place = question[len(_DESCRIPTION) :].partition(":")
        if not question.startswith(_DESCRIPTION) or name not in self._files:
            return None
        start, size = (int(number, 16) for number in place.split(","))
        part = self._files[name][start : start + size]
        return (b"m" if start + size < len(self._files[name]) else b"l") + part


def _pass_on(debugger: socket.socket, emulator: Emulator) -> None:
    """Pass on the packets of both sides until one closes the connection."""

    def answers() -> None:
        with suppress(OSError):  # the debugger has closed the connection
            while received := emulator.socket.recv(1 << 16):
                debugger.sendall(received)
            debugger.shutdown(socket.SHUT_RDWR)

    threading.Thread(target=answers, daemon=True).start()
    for sent in packets(debugger):
        own = emulator.own_answer(sent) if sent.startswith(b"$") else None
        if own is None:
            emulator.socket.sendall(sent)
        else:
            debugger.sendall(b"+" + packet(own))


def main(name: str, option: str, path: str, *arguments: str) -> None:
    """Become the emulator; a child process is between the debugger and its socket."""
    assert option == "-g"
    own_path = f"{path}.qemu"
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen()
    if os.fork():
        os.execvp(name, [name, option, own_path, *arguments])
    emulator = Emulator(own_path, "big" if name.endswith("_be") else "little")
    with suppress(OSError):  # one side has ended
        _pass_on(listening.accept()[0], emulator)


if __name__ == "__main__":
    main(*sys.argv[1:])
