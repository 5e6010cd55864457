"""ORC against DWARF CFI, SFrame and the code of an object file, as objtool leaves a kernel's module."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from sframe_unwind.cli import main
from sframe_unwind.errors import FormatError
from sframe_unwind.verify import Plan, verify
from sframe_unwind.verify.orc_report import OrcReport
from sframe_unwind.verify.terms import Side
from tests.code.assembled import assemble
from tests.hanging import HANG
from tests.verify.orc_source import FUNCTION, ORC

HEADER = """
.pushsection .orc_header,"a",@progbits
.byte {}
.popsection
"""


def report(folder: Path, pushed: int = 16, bp: int = -16, header: bytes = b"", call: int = 0) -> OrcReport:
    """Return the comparison of the ORC of a function with its DWARF CFI.

    :param pushed: the distance of the CFA from SP after the push, by ORC.
    :param bp: the distance of the saved frame pointer from the CFA, by ORC.
    :param header: the contents of ``.orc_header``; empty: there is none.
    :param call: the number of ``ORC_TYPE_CALL``, which newer kernels have changed.
    """
    path = folder / "function.s"
    of_header = HEADER.format(", ".join(map(str, header))) if header else ""
    orc = ORC.replace("flags=0", f"flags={call}")
    path.write_text(orc + FUNCTION.format(pushed=pushed, bp=bp) + of_header)
    made = path.with_suffix(".o")
    subprocess.run(["gcc", "-c", str(path), "-o", str(made)], check=True, timeout=HANG)
    found = verify(made, Plan(dwarf=False, code=True, orc=True)).orc
    assert found is not None
    return found


def test_right_orc(tmp_path: Path) -> None:
    found = report(tmp_path)
    assert (found.table, found.both, found.addresses_compared) == ("dwarf", 1, 3)
    assert (found.disagreements, found.other_only) == ((), ())


def test_the_layout_of_newer_kernels(tmp_path: Path) -> None:
    header = bytes.fromhex("fe5d32bf 581bd63b 2ca9a5c6 5ba5a625 eab3fe24")
    found = report(tmp_path, header=header, call=2)
    assert (found.both, found.addresses_compared, found.disagreements) == (1, 3, ())
    with pytest.raises(FormatError, match=r"ORC entry \w+: type and flags 0x7"):
        report(tmp_path, header=header, call=7)
    with pytest.raises(FormatError, match=f"no known layout of ORC has the hash {bytes(20).hex()}"):
        report(tmp_path, header=bytes(20), call=2)


def test_a_function_in_assembly_has_only_orc(tmp_path: Path) -> None:
    ((name, place),) = report(tmp_path).orc_only
    assert (name, str(place)) == ("assembly", ".text+0x8..0x9")


@pytest.mark.parametrize(
    ("pushed", "bp", "what", "orc", "other"),
    [(24, -16, "cfa", "rsp + 24", "rsp + 16"), (16, -24, "fp", "in memory at CFA - 24", "in memory at CFA - 16")],
)
def test_the_code_says_who_is_wrong(pushed: int, bp: int, what: str, orc: str, other: str, tmp_path: Path) -> None:
    (found,) = report(tmp_path, pushed, bp).disagreements
    assert (str(found.spot), found.function, found.what) == (".text+0x1", "function+0x1", what)
    assert found.code is Side.DWARF
    assert (found.orc, found.other) == (orc, other)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = assemble("amd64", ORC + FUNCTION.format(pushed=24, bp=-16), tmp_path / "function.o")
    assert main(["verify", "--against", "orc", "--against", "code", str(path)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{path}: 1 function in ORC and SFrame, 1 in ORC only, 0 in SFrame only; 3 addresses compared, 1 disagreement",
        "  .text+0x1 function+0x1: cfa: ORC rsp + 24; SFrame rsp + 16; the code agrees with SFrame",
        "  ORC only: .text+0x8 assembly",
        f"{path}: code of 2 functions, 5 instructions: SFrame 4 proved, 0 wrong, 0 unknown, 1 not examined;"
        " DWARF 4 proved, 0 wrong, 0 unknown, 1 not examined; ORC 3 proved, 2 wrong, 0 unknown",
        "  .text+0x1 function+0x1: cfa: the code has CFA = rsp + 16 since `push %rbp` at .text+0x0; ORC says rsp + 24",
    ]
    known = tmp_path / "known.json"
    assert main(["verify", "--against", "orc", "--write-baseline", str(known), str(path)]) == 0
    capsys.readouterr()
    assert main(["verify", "--against", "orc", "--baseline", str(known), "--json", str(path)]) == 0
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert file["known_by_baseline"] == 1
    assert file["orc"] == {
        "with": "sframe",
        "both": 1,
        "addresses_compared": 3,
        "disagreements": [],
        "orc_only": [{"address": 8, "section": ".text", "size": 1, "function": "assembly"}],
        "other_only": [],
    }


def test_a_file_without_orc(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = assemble("amd64", ".cfi_startproc\nret\n.cfi_endproc\n", tmp_path / "plain.o")
    assert main(["verify", "--against", "orc", str(path)]) == 2
    assert "no ORC (.orc_unwind)" in capsys.readouterr().err
