"""The cases as files for decoders in any language; ``conformance/README.md`` describes them.

    python -m lab.readers.conformance [FOLDER]

writes them to FOLDER, by default to ``conformance`` of the checkout, and removes the folders of cases that no longer
exist.  The files have the same bytes on every machine.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.readers.corpus import SHORT, Case, cases
from lab.readers.running import CHECKOUT
from sframe_unwind.sframe.constants import AbiNumber

VERSION = "1.0"
"""The version of the files.  The first number grows when a case changes or is removed, or when the form of the files
changes; the second one, when cases are added."""
LICENCE = "MIT"
HOME = CHECKOUT / "conformance"
_CASES = "cases"


def to_json(case: Case) -> dict[str, Any]:
    """Return the contents of ``expected.json``.

    Addresses are texts: not every language has integers of 64 bits in JSON.
    """
    start = {"address": hex(case.address), "valid": case.is_valid}
    if not case.is_valid:
        return {**start, "pcs": [hex(pc) for pc, _ in case.expected]}
    return {**start, "rows": [{"pc": hex(pc), "row": row} for pc, row in case.expected]}


def index(made: Sequence[Case]) -> dict[str, Any]:
    """Return the contents of ``index.json``."""
    return {"version": VERSION, "licence": LICENCE, "cases": [_entry(case) for case in made]}


def write(folder: Path) -> int:
    """Write all files, and return the number of cases."""
    made = cases()
    shutil.rmtree(folder / _CASES, ignore_errors=True)
    for case in made:
        place = folder / _CASES / case.name
        place.mkdir(parents=True)
        (place / "section.sframe").write_bytes(case.section)
        (place / "description.txt").write_text(f"{case.tests}\n", encoding="utf-8")
        (place / "expected.json").write_text(_lines(to_json(case)), encoding="utf-8")
    (folder / "index.json").write_text(_lines(index(made)), encoding="utf-8")
    shutil.copyfile(CHECKOUT / "LICENSE", folder / "LICENSE")
    return len(made)


def _entry(case: Case) -> dict[str, Any]:
    return {
        "name": case.name,
        "description": case.tests,
        "sframe_version": case.version,
        "abi": SHORT.get(AbiNumber(case.abi)) if case.abi in list(AbiNumber) else None,
        "valid": case.is_valid,
        "section": f"{_CASES}/{case.name}/section.sframe",
        "expected": f"{_CASES}/{case.name}/expected.json",
        "size": len(case.section),
        "sha256": hashlib.sha256(case.section).hexdigest(),
    }


def _lines(value: dict[str, Any]) -> str:
    """Return an object as JSON with a line for each member, and one for each item of a list in it."""
    members = []
    for name, member in value.items():
        items = ",\n".join(json.dumps(item) for item in member) if isinstance(member, list) else None
        members.append(f"{json.dumps(name)}: {json.dumps(member) if items is None else f'[{chr(10)}{items}{chr(10)}]'}")
    return "{\n" + ",\n".join(members) + "\n}\n"


if __name__ == "__main__":
    print(f"{write(Path(sys.argv[1]) if len(sys.argv) > 1 else HOME)} cases")
