"""Writes the names of functions of ``program.rs`` anew: ``python -m tests.report.rust``, with a rustc in ``PATH``.

They are kept beside the source, because few machines have a Rust compiler.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from tests.hanging import HANG

FOLDER = Path(__file__).parent
PREFIXES = {"v0": "_R", "legacy": "_ZN"}
"""By form of mangling: how its names begin."""
MOST = 200


def names(form: str) -> list[str]:
    """Return names of a form from the program, evenly spread over their sorted list; most are from Rust's library."""
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder, "program"))
        options = ["-Z", "unstable-options", "-C", f"symbol-mangling-version={form}"]
        command = ["rustc", *options, str(FOLDER / "program.rs"), "-o", program]
        subprocess.run(command, check=True, timeout=HANG, env={**os.environ, "RUSTC_BOOTSTRAP": "1"})
        listed = subprocess.run(["nm", program], check=True, capture_output=True, text=True, timeout=HANG).stdout
    found = sorted({line.split()[-1] for line in listed.splitlines() if line.split()[-1].startswith(PREFIXES[form])})
    return found[:: -(-len(found) // MOST)]


if __name__ == "__main__":
    for form in PREFIXES:
        (FOLDER / f"{form}.txt").write_text("\n".join(names(form)) + "\n", encoding="ascii")
