"""Reads SFrame sections by libsframe of GNU binutils, each in a process of its own: it aborts and crashes on some.

    python tests/lint/libsframe_reader.py LIBRARY < REQUESTS

A request is one line of JSON: the section in hexadecimal digits, and for each function its start, counted from the
section, its size and its number of rows.  The answer is one line: ``refused`` or, for each function, how many of its
addresses have no row.  ``-N`` says that the reader was ended by signal N.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import sys

_ENTRY = 512
"""Bytes of a buffer that holds a row entry of any version of the library."""
_SECONDS = 5


def answer(library: ctypes.CDLL, section: bytes, functions: list[tuple[int, int, int]]) -> object:
    """Decode a section, read all rows one by one, and look every address up."""
    error = ctypes.c_int()
    context = library.sframe_decode(section, len(section), ctypes.byref(error))
    if not context:
        return "refused"
    entry = ctypes.create_string_buffer(_ENTRY)
    missing = []
    for number, (start, size, rows) in enumerate(functions):
        for row in range(rows):
            library.sframe_decoder_get_fre(context, number, row, entry)
        missing.append(sum(bool(library.sframe_find_fre(context, pc, entry)) for pc in range(start, start + size)))
    return missing


def main() -> None:
    """Answer the requests on standard input."""
    library = ctypes.CDLL(sys.argv[1])
    library.sframe_decode.restype = ctypes.c_void_p
    library.sframe_decode.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p]
    library.sframe_decoder_get_fre.argtypes = [ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint, ctypes.c_char_p]
    library.sframe_find_fre.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_char_p]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what assert prints
    for line in sys.stdin:
        data, functions = json.loads(line)
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
            try:
                os.write(writing, json.dumps(answer(library, bytes.fromhex(data), functions)).encode())
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as stream:
            said = stream.read()
        _, status = os.waitpid(child, 0)
        print(-os.WTERMSIG(status) if os.WIFSIGNALED(status) else said, flush=True)


if __name__ == "__main__":
    main()
