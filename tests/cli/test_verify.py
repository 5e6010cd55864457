"""`verify`: silent where the producers are right, and it finds what was planted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sframe_unwind import elf
from sframe_unwind.cli import main
from sframe_unwind.encode import describe, encode
from sframe_unwind.format.constants import AbiNumber, FdeType
from sframe_unwind.verify import verify
from tests.samples.build import build
from tests.samples.catalogue import ABIS as SAMPLE_ABIS
from tests.samples.catalogue import SAMPLES

CELLS = [(abi, version) for abi in SAMPLE_ABIS for version in SAMPLE_ABIS[abi].versions]


def expected(abi: str, version: int) -> set[tuple[str, str, str]]:
    """What the producers are known to have wrong: what, SFrame's words, DWARF's words.

    - GNU ld describes `.plt.got`, whose stubs are a bare jump, as if they had pushed something (`disassemble` shows
      one `jmp`, or `endbr64` and a `jmp`).  In version 1 it has no FDE there, but describes `.plt.sec` so.
    - The assemblers before binutils 2.46 pass over `.cfi_undefined`: in `_start` they say that there is a caller.
    """
    known = set()
    if abi == "amd64":
        known.add(("cfa", "rsp + 16", "rsp + 8"))
        if version == 1:
            known.add(("cfa", "rsp + 24", "rsp + 8"))
        if version < 3:
            known.add(("ra", "in memory at CFA - 8", "undefined"))
    elif version < 3:
        known.add(("ra", "unchanged", "undefined"))
    return known


@pytest.mark.parametrize(("abi", "version"), CELLS)
def test_samples_agree_but_for_what_the_producers_have_wrong(abi: str, version: int) -> None:
    compared = 0
    for name, sample in SAMPLES.items():
        if abi not in sample.abis or "sframe_only" in name:
            continue
        for variant in {"O2", "pac"} & set(sample.variants_for(abi)):
            verdict = verify(str(build(name, abi, version, variant)))
            found = {(entry.what, entry.sframe, entry.dwarf) for entry in verdict.disagreements}
            assert found <= expected(abi, version), name
            assert not verdict.sframe_only
            assert verdict.both > 2
            compared += verdict.addresses_compared
    assert compared > 80


WORDS = {"cfa": 0, "ra": 1, "fp": 2}
"""Which data word of a default row says what; on AMD64 the return address has none, and FP the second."""


def planted(source: Path, target: Path, what: str) -> set[int]:
    """Copy a program with one value changed; return the addresses that it applies to, of which some are compared."""
    (section,) = elf.load(source)
    spec = describe(section)
    (table,) = spec.tables
    if table.abi is AbiNumber.AMD64_ENDIAN_LITTLE and what == "ra":
        changed = table._replace(fixed_ra_offset=-16)
        addresses = {function.start for function in table.functions}
    else:
        word = min(WORDS[what], 1) if table.abi is AbiNumber.AMD64_ENDIAN_LITTLE else WORDS[what]
        number, place = next(
            (number, place)
            for number, function in enumerate(table.functions)
            for place, row in enumerate(function.rows)
            if len(row.words) > word and function.fde_type is FdeType.DEFAULT
        )
        function = table.functions[number]
        row = function.rows[place]
        words = (*row.words[:word], row.words[word] + 8, *row.words[word + 1 :])
        rows = (*function.rows[:place], row._replace(words=words), *function.rows[place + 1 :])
        functions = (*table.functions[:number], function._replace(rows=rows), *table.functions[number + 1 :])
        changed = table._replace(functions=functions)
        addresses = {function.start + row.start}
    with elf.opened(source) as file:
        offset = elf.sframe_sections(file)[0]["sh_offset"]
    content = encode(spec._replace(tables=(changed,)))
    assert len(content) == section.size
    image = source.read_bytes()
    target.write_bytes(image[:offset] + content + image[offset + section.size :])
    return addresses


@pytest.mark.parametrize("what", ["cfa", "ra", "fp"])
@pytest.mark.parametrize("abi", ["amd64", "aarch64", "aarch64_be", "s390x"])
def test_planted_disagreement_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str], abi: str, what: str) -> None:
    source, program = build("free_walk", abi, 3, "O0"), tmp_path / "program"
    assert main(["verify", str(source)]) == 0
    addresses = planted(source, program, what)
    capsys.readouterr()
    assert main(["verify", "--json", str(program)]) == 1
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert {entry["what"] for entry in file["disagreements"]} == {what}
    assert addresses & {entry["address"] for entry in file["disagreements"]}
    assert set(file) == {"file", "functions", "addresses_compared", "disagreements"}
    assert main(["verify", str(program)]) == 1
    printed = capsys.readouterr().out
    assert any(f"{address:#x}" in printed for address in addresses)


def test_exit_statuses_and_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, without_cfi = build("leaf"), build("free_sframe_only")
    assert main(["verify", str(good)]) in (0, 1)
    capsys.readouterr()
    assert main(["verify", str(without_cfi)]) == 2
    assert capsys.readouterr().err == f"sframe-unwind: {without_cfi}: no DWARF CFI to compare with\n"
    (tmp_path / "text").write_text("no ELF")
    assert main(["verify", str(tmp_path / "text")]) == 2
    assert "not a readable ELF file" in capsys.readouterr().err
    assert main(["verify", str(tmp_path)]) == 0  # a directory without anything to compare
    assert capsys.readouterr().err == ""


def test_directory_stands_for_the_files_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, name in enumerate(("leaf", "recursion")):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / name).write_bytes(build(name, "aarch64", 3).read_bytes())
    assert main(["verify", "--json", "-j", "2", str(tmp_path)]) == 0
    files = json.loads(capsys.readouterr().out)["files"]
    assert [Path(file["file"]).name for file in files] == ["leaf", "recursion"]
    assert all(file["addresses_compared"] > 5 for file in files)


def test_functions_of_one_side_and_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """Before version 3 the assembler leaves out what it cannot say: a CFA based on r10."""
    assert main(["verify", str(build("realign", version=2))]) in (0, 1)
    out = capsys.readouterr().out
    assert "aligned_local (CFA r10, for which version 2 has no words)" in out
