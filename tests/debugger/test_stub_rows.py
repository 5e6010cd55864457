"""Which rows of PLT stubs are believed, for the rows that GNU ld really writes."""

from __future__ import annotations

from sframe_unwind import elf
from sframe_unwind.debugger.stub_rows import is_possible
from sframe_unwind.unwind.modules import Found, Module, Modules
from tests.samples.build import build


def test_the_rows_of_plt_got_are_impossible_and_those_of_plt_are_not() -> None:
    path = build("plt")
    with elf.opened(path) as file:
        sections = {
            section.name: range(section["sh_addr"], section["sh_addr"] + section["sh_size"])
            for section in file.iter_sections()
        }
    (section,) = elf.load(path)
    code = [(sections[name].start, sections[name].stop) for name in (".plt", ".plt.got")]
    modules = Modules(section.tables[0].arch, [Module("plt", code, lambda: section)])
    for name, expected in ((".plt", True), (".plt.got", False)):
        found = [result for pc in sections[name] if isinstance(result := modules.results[pc], Found)]
        assert found
        assert {is_possible(one, modules.arch) for one in found} == {expected}, name
