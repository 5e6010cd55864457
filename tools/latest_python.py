#!/usr/bin/env python3
"""Provides the newest Python that the wheel is tried with, from a later Debian release.

As with the binutils, it is unpacked into the checkout's `.cache` folder and runs there with its own C library.

    python3 tools/latest_python.py
"""

from __future__ import annotations

import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
if str(CHECKOUT) not in sys.path:  # when run as a script
    sys.path.insert(0, str(CHECKOUT))

from tools.debian import FetchError, unpack  # noqa: E402
from tools.kept import kept  # noqa: E402

SUITE = "testing"
MINOR = 14
NAME = f"python3.{MINOR}"
CACHE = CHECKOUT / ".cache" / NAME

_LIBRARIES = "usr/lib/x86_64-linux-gnu"

# A virtual environment links to the interpreter, which finds the environment by the name with which it was run.
WRAPPER = """\
#!/bin/sh
root="{root}"
exec "$root/{libraries}/ld-linux-x86-64.so.2" --argv0 "$0" --library-path "$root/{libraries}" "$root/usr/{name}" "$@"
"""


def provide() -> Path:
    """Return the path of the interpreter; fetch it if necessary.

    :raises FetchError: it cannot be had.
    """
    root = kept(CACHE, lambda folder: unpack(SUITE, [NAME, f"{NAME}-venv"], folder)) / "root"
    program, binary = root / "usr" / "bin" / NAME, root / "usr" / NAME
    if not binary.exists():
        program.rename(binary)
    text = WRAPPER.format(root=root, libraries=_LIBRARIES, name=NAME)
    if not program.exists() or program.read_text(encoding="utf-8") != text:  # the checkout may have moved
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)
    return program


def main() -> int:
    """Provide it and print where it is; exit status 1 if it cannot be had."""
    try:
        print(provide())
    except (FetchError, OSError) as error:
        print(f"{NAME}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
