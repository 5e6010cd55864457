"""Decompresses by a program, which gets all data at once."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Generator, Sequence

from sframe_unwind.errors import DecompressionError

_PIECE = 1 << 16


class ProgramDecompressor:
    """Collects the data in a temporary file, which the program decompresses in :meth:`finish`.

    :param command: the program with its arguments; it reads standard input, and writes standard output.
    :param premature: a part of the program's message about data that ends within a frame.
    """

    def __init__(self, command: Sequence[str], premature: str) -> None:
        self._command, self._premature = command, premature
        self._given = tempfile.TemporaryFile()  # noqa: SIM115  # it is closed with this object
        self.is_within_frame = True

    def decompress(self, data: bytes, enough: int | None = None) -> bytes:  # noqa: ARG002  # the interface
        """Keep the next piece, and return nothing."""
        self._given.write(data)
        return b""

    def finish(self) -> Generator[bytes, None, None]:
        """Yield the decompressed contents; the program ends with the generator.

        :raises DecompressionError: the data is damaged, or the program cannot be run.
        """
        self._given.flush()
        self._given.seek(0)
        with tempfile.TemporaryFile() as said:
            try:
                running = subprocess.Popen(self._command, stdin=self._given, stdout=subprocess.PIPE, stderr=said)
            except OSError as error:
                raise DecompressionError(f"{self._command[0]}: {error.strerror or error}") from error
            with running:
                try:
                    if running.stdout is not None:
                        while piece := running.stdout.read(_PIECE):
                            yield piece
                    running.wait()
                finally:
                    if running.returncode is None:  # nobody wants the rest
                        running.kill()
            said.seek(0)
            self._check(running.returncode, said.read().decode("utf-8", "replace"))

    def _check(self, status: int, message: str) -> None:
        self.is_within_frame = self._premature in message
        if status and not self.is_within_frame:
            raise DecompressionError((message.strip().splitlines() or [f"{self._command[0]}: status {status}"])[-1])
