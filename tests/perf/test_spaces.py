"""The mappings of processes that are created, and that execute other programs."""

from __future__ import annotations

from sframe_unwind.arch import amd64
from sframe_unwind.perf.mappings import Mapping
from sframe_unwind.perf.spaces import Spaces
from sframe_unwind.perf.tasks import Comm, Fork
from sframe_unwind.process.files import Files

OLD, NEW = (
    Mapping(pid=7, start=0x1000, end=0x3000, offset=0, path="/nonexistent/old", build_id="", executable=True),
    "/nonexistent/new",
)


def spaces() -> Spaces:
    """Return a process 7 with one mapping."""
    files = Files([""], [], (amd64.ARCH.elf_machine, "little"), lambda _: None)
    made = Spaces(amd64.ARCH, files, {}, convert=False)
    made.take(Comm(7, 7, "parent", is_exec=True))
    made.take(OLD)
    return made


def path(made: Spaces, pid: int, pc: int = 0x2000) -> str:
    return made.of(pid).place(pc)[0]


def test_a_child_has_the_mappings_of_its_parent() -> None:
    made = spaces()
    made.take(Fork(8, 7, 8, 7))
    assert path(made, 8) == OLD.path
    assert made.name(8) == "parent"
    made.take(OLD._replace(pid=8, path=NEW))
    assert (path(made, 7), path(made, 8)) == (OLD.path, NEW)


def test_mappings_of_the_parent_do_not_reach_a_child_later() -> None:
    made = spaces()
    made.take(Fork(8, 7, 8, 7))
    made.take(OLD._replace(start=0x8000, end=0x9000, path=NEW))
    assert (path(made, 7, 0x8000), path(made, 8, 0x8000)) == (NEW, "")


def test_a_process_that_executes_a_program_has_no_mapping_of_its_parent() -> None:
    """perf 6.1 keeps the mappings of the parent, and ends stacks early."""
    made = spaces()
    made.take(Fork(8, 7, 8, 7))
    made.take(Comm(8, 8, "child", is_exec=True))
    made.take(OLD._replace(pid=8, start=0x5000, end=0x6000, path=NEW))
    assert (path(made, 8), path(made, 8, 0x5000)) == ("", NEW)
    assert path(made, 7) == OLD.path
    assert (made.name(7), made.name(8)) == ("parent", "child")


def test_a_thread_shares_the_mappings_of_its_process() -> None:
    made = spaces()
    made.take(Fork(7, 7, 9, 7))
    made.take(Comm(7, 9, "worker", is_exec=False))
    assert path(made, 7) == OLD.path
    assert (made.name(7), made.name(9)) == ("parent", "worker")


def test_a_mapping_over_another_leaves_what_is_around_it() -> None:
    made = spaces()
    made.take(Mapping(pid=7, start=0x1800, end=0x2000, offset=0, path=NEW, build_id="", executable=True))
    assert [path(made, 7, pc) for pc in (0x17FF, 0x1800, 0x1FFF, 0x2000)] == [OLD.path, NEW, NEW, OLD.path]
    assert made.of(7).offset(0x2000) == 0x1000
    made.take(Mapping(pid=7, start=0x1000, end=0x3000, offset=0, path=NEW, build_id="", executable=False))
    assert path(made, 7) == ""
