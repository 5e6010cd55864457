"""The names of stubs, compared with objdump, which decodes them independently."""

from __future__ import annotations

import re
import subprocess

import pytest

from sframe_unwind import elf
from tests.elf.objects import tools_for
from tests.hanging import HANG
from tests.missing import toolchain_needed
from tests.samples.build import build
from tests.samples.catalogue import SAMPLES, WITH_LIBC

NAMED = re.compile(r"^([0-9a-f]+) <([^*>]+@plt)>:$", re.MULTILINE)
CASES = [(sample, abi) for sample in ("plt", "plt_now", "plt_ibt") for abi in SAMPLES[sample].abis]


@pytest.mark.parametrize(("sample", "abi"), CASES)
@pytest.mark.parametrize("pie", [True, False], ids=["pie", "fixed"])
def test_stubs_are_those_of_objdump(sample: str, abi: str, pie: bool) -> None:
    with toolchain_needed():
        program = build(sample, abi, 3, "pac" if abi == "aarch64" else "O2", pie=pie)
    command = [str(tools_for(abi, 3) / "objdump"), "-d", str(program)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=HANG).stdout
    expected = {int(address, 16): name for address, name in NAMED.findall(printed)}
    with elf.opened(program) as binary:
        found = {stub.address: stub.name for stub in binary.stubs}
    assert found == expected
    assert "shared_apply@plt" in found.values()


def test_every_abi_is_covered() -> None:
    assert {abi for _, abi in CASES} == set(WITH_LIBC)
