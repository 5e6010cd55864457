"""No row of random functions is proved that an execution shows to be wrong, and no right row is called wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.code.generated.judging import judged
from lab.code.recipes import MACHINES
from tests.missing import toolchain_needed

_COUNT = 100
_SEED = 0
"""On s390x, `lr %r11,%r11` was once called a write to the frame pointer in functions of this seed."""


@pytest.mark.parametrize("machine", MACHINES)
def test_what_is_proved_holds_in_each_execution(machine: str, tmp_path: Path) -> None:
    with toolchain_needed():
        functions = list(judged(machine, _SEED, _COUNT, tmp_path))
    assert len(functions) == _COUNT
    for function in functions:
        assert not function.proved_falsely, str(function)
        assert not function.accused, str(function)
    right, proved = sum(each.right for each in functions), sum(each.proved for each in functions)
    wrong, found = sum(each.wrong for each in functions), sum(each.found for each in functions)
    # The executions would show false proofs: a row in six is wrong, and most of these are called wrong.
    assert wrong > 100
    assert found > wrong / 2
    assert proved > 0.9 * right
