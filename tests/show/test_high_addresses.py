"""The pages name the addresses of kernels, which lie beyond the integers that a browser tells apart as numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from sframe_unwind.cli import main
from tests.elf.objects import run, tools_for
from tests.show.pages import acted

_START = 0xFFFF_FFFF_8100_0123
_SOURCE = """
.cfi_sections .eh_frame, .sframe
.text
.globl start_kernel
.type start_kernel, @function
start_kernel:
.cfi_startproc
push %rbx
.cfi_adjust_cfa_offset {adjusted}
pop %rbx
.cfi_adjust_cfa_offset -{adjusted}
ret
.cfi_endproc
.size start_kernel, .-start_kernel
"""


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """Return a program at the addresses of a kernel; both of its tables are wrong about ``push``."""
    source, linkable, result = tmp_path / "kernel.s", tmp_path / "kernel.o", tmp_path / "kernel"
    source.write_text(_SOURCE.format(adjusted=16))
    tools = tools_for("amd64", 3)
    run(tools / "as", "--gsframe", "-o", linkable, source)
    run(tools / "ld", f"-Ttext={_START:#x}", "-e", "start_kernel", "-o", result, linkable)
    return result


def test_show(kernel: Path, tmp_path: Path) -> None:
    """Also a link finds an address, and the search."""
    page = tmp_path / "show.html"
    assert main(["show", str(kernel), "--html", str(page)]) == 0
    found = acted(
        page,
        f"""
        const addresses = () => [...document.querySelectorAll("tr.instruction")].map((row) => row.cells[0].textContent);
        type("{_START + 2:#x}");
        const inside = names();
        type("{_START + 3:#x}");
        const outside = names();
        location.hash = "#{_START + 1:#x}";
        await until(() => lines().length);
        return {{ inside, outside, title: text("title"), addresses: addresses(), at: byId("frame").dataset.at,
                  hash: location.hash }};
        """,
    )
    assert found["inside"] == ["start_kernel"]
    assert found["outside"] == []
    assert found["title"] == f"start_kernel, {_START:#x}, 3 bytes"
    assert found["addresses"] == [f"{_START + at:#x}" for at in range(3)]
    assert found["at"] == f"{_START + 1:#x}"
    assert found["hash"] == "#start_kernel+0x1"


def test_verify(kernel: Path, tmp_path: Path) -> None:
    page = tmp_path / "verify.html"
    assert main(["verify", str(kernel), "--html", str(page)]) == 0
    (row,) = acted(page, """return [...document.querySelectorAll("#functions tbody tr")].map(cells);""")
    assert row[-1] == f"kernel {_START:#x}"


def test_survey(kernel: Path, tmp_path: Path) -> None:
    """Addresses are hexadecimal, as everywhere, and are found by the search."""
    page = tmp_path / "survey.html"
    command = ["survey", str(kernel), "--store", str(tmp_path / "store"), "--html", str(page), "-j", "1"]
    assert main([*command, "--against", "code"]) == 1
    found = acted(
        page,
        """
        const heads = [...document.querySelectorAll("#findings th")].map((head) => head.textContent);
        const rows = [...document.querySelectorAll("#findings tbody tr")].map(cells);
        const [judge, address] = ["judge", "address"].map((name) => heads.indexOf(name));
        return { made: text("made"), rows: rows.map((row) => [row[judge], row[address]]) };
        """,
    )
    assert {address for judge, address in found["rows"] if judge == "code"} == {f"{_START + 1:#x}"}
    assert ", with --against code; " in found["made"]
