"""`verify` on the samples reports only the known errors of producers, and it finds planted errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.verify.samples import account, comparable, total
from sframe_unwind.cli import main
from sframe_unwind.verify import verify
from tests.abis.rewrite import rewritten_copy
from tests.samples.build import build
from tests.samples.catalogue import ABIS, SAMPLES, Build
from tests.verify.planting import plant
from tests.verify.producers import KNOWN

CELLS = [(abi, version) for abi in ABIS for version in ABIS[abi].versions]


def some_builds(abi: str, version: int) -> list[Build]:
    """Return every sample once for optimised code, and once with signed return addresses."""
    return [
        wanted
        for wanted in comparable()
        if (wanted.abi, wanted.version) == (abi, version)
        and wanted.variant in ("O2", "pac")
        and (wanted.pie or SAMPLES[wanted.name].freestanding)
    ]


@pytest.mark.parametrize(("abi", "version"), CELLS)
def test_samples_agree_but_for_what_the_producers_have_wrong(abi: str, version: int) -> None:
    whole = total(map(account, some_builds(abi, version)))
    assert whole.unexplained == []
    assert whole.compared > 80
    expected = {known.reason for known in KNOWN if abi in known.abis and version in known.versions}
    assert set(whole.explained) == expected


def test_s390x_in_version_2(tmp_path: Path) -> None:
    """No assembler writes this version for s390x: the encoder converts the assembler's sections of version 3."""
    compared = 0
    for number, wanted in enumerate(some_builds("s390x", 3)):
        folder = tmp_path / str(number)
        folder.mkdir()
        program = build(wanted.name, wanted.abi, wanted.version, wanted.variant, wanted.pie)
        verdict = verify(rewritten_copy(program, folder, 2))
        assert verdict.disagreements == ()
        compared += verdict.addresses_compared
    assert compared > 80


@pytest.mark.parametrize("what", ["cfa", "ra", "fp"])
@pytest.mark.parametrize("abi", list(ABIS))
def test_planted_disagreement_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str], abi: str, what: str) -> None:
    source, program = build("free_walk", abi, 3, "O0"), tmp_path / "program"
    assert main(["verify", str(source)]) == 0
    addresses = plant(source, program, what)
    capsys.readouterr()
    assert main(["verify", "--json", str(program)]) == 1
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert {entry["what"] for entry in file["disagreements"]} == {what}
    assert addresses & {entry["address"] for entry in file["disagreements"]}
    assert file["covered_in_part"] == file["not_compared"] == file["problems"] == []
    assert main(["verify", str(program)]) == 1
    printed = capsys.readouterr().out
    assert any(f"{address:#x}" in printed for address in addresses)
