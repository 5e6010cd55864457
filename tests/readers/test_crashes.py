"""The smallest sections at which readers crash, as ``docs/readers.md`` lists them; ``lint`` refuses each."""

from __future__ import annotations

import re
from typing import Callable

import pytest

from lab.readers.mutated import profile_of
from lab.readers.readers import UnavailableError, glibc, libsframe
from lab.readers.running import CHECKOUT, Reader, Request, ask
from sframe_unwind.lint import gather
from sframe_unwind.lint.judging import judge
from sframe_unwind.lint.verdict import Outcome
from sframe_unwind.sframe.constants import ARCH_BY_ABI, AbiNumber
from tests.lint.sections import subject
from tests.missing import absent

ROW = re.compile(
    r"^\| ((?:libsframe|glibc) [\d.]+) \| (SIG\w+) .*\| `([0-9a-f]*)` \| (0x[0-9a-f]+) \| (0x[0-9a-f]+)? ?\|$"
)
READERS: dict[str, Callable[[], Reader]] = {
    "libsframe 2.47": lambda: libsframe("2.47"),
    "libsframe 2.44": lambda: libsframe("2.44"),
    "libsframe 2.40": lambda: libsframe("2.40"),
    "glibc 2.43": glibc,
}


def listed(name: str) -> list[tuple[str, Request]]:
    """Return signal and section from each row of the page for a reader."""
    lines = (CHECKOUT / "docs" / "readers.md").read_text(encoding="utf-8").splitlines()
    rows = [found for found in map(ROW.match, lines) if found is not None and found[1] == name]
    return [
        (row[2], Request(bytes.fromhex(row[3]), int(row[4], 16), [int(row[5], 16)] if row[5] else [])) for row in rows
    ]


@pytest.mark.parametrize("name", READERS)
def test_readers_crash_and_lint_refuses(name: str) -> None:
    rows = listed(name)
    assert len(rows) >= 3
    try:
        reader = READERS[name]()
    except UnavailableError as error:
        absent(str(error))
    answers = ask(reader.of_all_rows, [request for _, request in rows])
    assert [answer.get("crashed") for answer in answers] == [signal for signal, _ in rows]
    for _, request in rows:
        abi = request.section[4:5] or b"\3"
        around = subject(data=request.section, arch=ARCH_BY_ABI[AbiNumber(abi[0])], text=(0, 1 << 64))
        judgement, _ = judge(gather(around._replace(address=request.address)), profile_of(reader))
        assert judgement.outcome is Outcome.REFUSED, request.section.hex()
