#!/usr/bin/env python3
"""lldb-dap, LLDB's adapter for editors, which the LLDB from PyPI comes without.

It comes from Debian, is unpacked into the checkout's `.cache` folder, and runs there with the libraries that it was
built with; the system stays as it is.

    python3 tools/lldb_dap.py
"""

from __future__ import annotations

import contextlib
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).resolve().parents[1]
if str(CHECKOUT) not in sys.path:  # when run as a script
    sys.path.insert(0, str(CHECKOUT))

from tools.debian import FetchError, unpack  # noqa: E402
from tools.ending import exit_with  # noqa: E402
from tools.kept import kept  # noqa: E402

SUITE = "sid"
VERSION = "23"
CACHE = CHECKOUT / ".cache" / "lldb-dap"

SERVER = """\
#!/bin/sh
exec {loader} --library-path {libraries} {program} "$@"
"""


class Adapter(NamedTuple):
    """How lldb-dap is started."""

    command: list[str]
    environment: dict[str, str]
    """Variables that it needs: its Python, and the server that runs programs for it."""


def provide() -> Adapter:
    """Return lldb-dap, and fetch it if it is missing.

    :raises FetchError: it cannot be had.
    """
    packages = [f"lldb-{VERSION}", f"python3-lldb-{VERSION}"]
    folder = kept(CACHE / VERSION, lambda folder: unpack(SUITE, packages, folder))
    root = folder / "root"
    llvm = root / f"usr/lib/llvm-{VERSION}"
    loader = root / "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
    libraries = f"{root}/usr/lib/x86_64-linux-gnu:{llvm}/lib"
    modules = next(iter(sorted(llvm.glob("lib/python3.*/site-packages"))), None)
    if modules is None or not loader.exists():
        raise FetchError(f"lldb-{VERSION}: the packages are not laid out as expected")
    server = folder / "lldb-server"
    quoted = (shlex.quote(str(part)) for part in (loader, libraries, llvm / "bin/lldb-server"))
    text = SERVER.format(**dict(zip(("loader", "libraries", "program"), quoted)))
    with contextlib.suppress(OSError):
        if not server.exists() or server.read_text() != text:  # the checkout may have moved
            server.write_text(text)
            server.chmod(0o755)
    command = [str(loader), "--library-path", libraries, str(llvm / "bin/lldb-dap")]
    python = {"PYTHONHOME": str(root / "usr"), "PYTHONPATH": str(modules)}
    return Adapter(command, {**python, "LLDB_DEBUGSERVER_PATH": str(server)})


def main() -> int:
    """Provide it and print where it is; exit status 1 if it cannot be had."""
    try:
        print(provide().command[-1])
    except (FetchError, OSError) as error:
        print(f"lldb-dap: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    exit_with(main)
