"""The stack of a kernel with ORC: functions, a switch of stacks, exceptions, and both ends."""

from __future__ import annotations

import pytest

from sframe_unwind.arch import PlaceKind
from sframe_unwind.errors import FormatError, StepError
from sframe_unwind.kernel.linux import EXCEPTION
from sframe_unwind.kernel.orc_of_kernel import find_orc
from sframe_unwind.kernel.orc_places import assembly_places, orc_places
from sframe_unwind.kernel.orc_unwinder import NAME
from sframe_unwind.kernel.tasks import TaskList
from sframe_unwind.kernel.unwinder import KernelUnwinder
from sframe_unwind.orc import HASH_SIZE, OrcKind
from sframe_unwind.unwind.step import Caller
from sframe_unwind.unwind.walk import Registers
from tests.kernel.fake import Memory
from tests.kernel.fake_amd64 import (
    DRAP,
    ERROR_ENTRY,
    FUNCTION,
    INTERRUPT,
    ORC,
    PT_REGS,
    SAVED,
    START,
    SWITCH,
    SYMBOLS,
    SYSCALL,
    TABLE,
    WITH_BP,
    kernel,
    table,
)
from tests.orc.entries import packed

TASK_STACK, IRQ_STACK = 0xFFFFC90000800000, 0xFFFFC90000100000
KERNEL_CS, USER_CS = 0x10, 0x33
USER_PC = 0x401234


@pytest.fixture
def memory() -> Memory:
    one = Memory()
    for start in (TASK_STACK, IRQ_STACK):
        one.fill(start, 0x400)
    return one


def saved(memory: Memory, at: int, cs: int, **registers: int) -> None:
    """Write ``struct pt_regs``."""
    for name, value in {**registers, "cs": cs}.items():
        memory.write(at + PT_REGS[name], value)


def test_from_an_interrupt_to_user_space(memory: Memory) -> None:
    """A function on the interrupt stack; another function switched there from the task's stack."""
    memory.write(IRQ_STACK + 0x10, 0x1111)  # rbp
    memory.write(IRQ_STACK + 0x18, SWITCH + 5)
    memory.write(IRQ_STACK + 0x20, TASK_STACK)  # the old stack pointer
    memory.write(TASK_STACK + 8, 0x2222)
    memory.write(TASK_STACK + 0x10, INTERRUPT + 0x25)
    memory.write(TASK_STACK + 0x18, 0)
    saved(memory, TASK_STACK + 0x18, KERNEL_CS, ip=FUNCTION, sp=TASK_STACK + 0x100, bp=0x3333, bx=0x4444)
    memory.write(TASK_STACK + 0x110, 0x5555)
    memory.write(TASK_STACK + 0x118, SAVED + 5)
    saved(memory, TASK_STACK + 0x120, USER_CS, ip=USER_PC)
    unwinder = KernelUnwinder(kernel(memory), memory.word)

    function = unwinder.unwind(Registers(FUNCTION + 9, IRQ_STACK, 0), interrupted=True)
    assert function is not None
    assert (function.caller, function.unwinder) == (
        Caller(IRQ_STACK + 0x20, SWITCH + 5, IRQ_STACK + 0x20, 0x1111),
        NAME,
    )
    switch = unwinder.unwind(Registers(SWITCH + 5, IRQ_STACK + 0x20, 0x1111), interrupted=False)
    assert switch is not None
    assert switch.caller == Caller(TASK_STACK + 0x18, INTERRUPT + 0x25, TASK_STACK + 0x18, 0x2222)
    assert switch.switches_stack
    exception = unwinder.unwind(Registers(INTERRUPT + 0x25, TASK_STACK + 0x18, 0x2222), interrupted=False)
    assert exception is not None
    assert exception.caller is not None
    assert exception.caller[1:] == (FUNCTION, TASK_STACK + 0x100, 0x3333)
    assert (exception.signal, exception.unwinder) == (True, EXCEPTION)
    assert exception.read_register is not None
    assert exception.read_register(3) == 0x4444
    interrupted = unwinder.unwind(Registers(FUNCTION, TASK_STACK + 0x100, 0x3333), interrupted=True)
    assert interrupted is not None
    assert interrupted.caller == Caller(TASK_STACK + 0x120, SAVED + 5, TASK_STACK + 0x120, 0x5555)
    call = unwinder.unwind(Registers(SAVED + 5, TASK_STACK + 0x120, 0x5555), interrupted=False)
    assert call is not None
    assert (call.caller, call.end) == (None, PlaceKind.USER_ENTRY.value)


def test_an_interrupt_frame_has_pc_and_sp(memory: Memory) -> None:
    """The processor has pushed a word and the frame: ``ip``, ``cs``, ``flags``, ``sp``, ``ss``."""
    for at, value in enumerate((FUNCTION, KERNEL_CS, 0, TASK_STACK + 0x200, 0), 1):
        memory.write(TASK_STACK + 8 * at, value)
    found = KernelUnwinder(kernel(memory), memory.word).unwind(Registers(INTERRUPT, TASK_STACK, 0x77), True)
    assert found is not None
    assert found.caller is not None
    assert found.caller[1:] == (FUNCTION, TASK_STACK + 0x200, 0x77)
    assert found.read_register is not None
    with pytest.raises(StepError):
        found.read_register(3)


def test_the_frame_pointer_below_an_interrupt_frame(memory: Memory) -> None:
    """ORC counts from the interrupt frame."""
    for at, value in enumerate((0x88, FUNCTION, KERNEL_CS, 0, TASK_STACK + 0x200, 0), 1):
        memory.write(TASK_STACK + 8 * at, value)
    found = KernelUnwinder(kernel(memory), memory.word).unwind(Registers(WITH_BP, TASK_STACK, 0x77), True)
    assert found is not None
    assert found.caller is not None
    assert found.caller[1:] == (FUNCTION, TASK_STACK + 0x200, 0x88)


@pytest.mark.parametrize(("pc", "end"), [(START, PlaceKind.TASK_START), (SYSCALL, PlaceKind.USER_ENTRY)])
def test_ends(pc: int, end: PlaceKind, memory: Memory) -> None:
    found = KernelUnwinder(kernel(memory), memory.word).unwind(Registers(pc, TASK_STACK, 0), interrupted=True)
    assert found is not None
    assert (found.caller, found.end) == (None, end.value)


@pytest.mark.parametrize("pc", [START - 1, START + 0x30, SWITCH + 0x40])
def test_code_without_orc(pc: int, memory: Memory) -> None:
    assert KernelUnwinder(kernel(memory), memory.word).unwind(Registers(pc, TASK_STACK, 0), True) is None


def test_a_stack_that_comes_back_to_an_exception(memory: Memory) -> None:
    saved(memory, TASK_STACK, KERNEL_CS, ip=SAVED, sp=TASK_STACK)
    unwinder = KernelUnwinder(kernel(memory), memory.word)
    assert unwinder.unwind(Registers(SAVED, TASK_STACK, 0), True) is not None
    with pytest.raises(StepError, match="for the second time"):
        unwinder.unwind(Registers(SAVED, TASK_STACK, 0), True)


def test_a_task_that_does_not_run(memory: Memory) -> None:
    """Its registers are at its SP, and its pc is the return address there."""
    one = kernel(memory)
    memory.fill(SYMBOLS["init_task"], 0x200)
    memory.write(SYMBOLS["init_task"] + 136, TASK_STACK)
    for at, value in enumerate((15, 14, 13, 12, 3, 6, FUNCTION + 9)):
        memory.write(TASK_STACK + 8 * at, value)
    task = TaskList(one).read(SYMBOLS["init_task"])
    assert task.registers == {15: 15, 14: 14, 13: 13, 12: 12, 3: 3, 6: 6, 7: TASK_STACK + 56, 16: FUNCTION + 9}


def test_the_places_that_cfi_does_not_have() -> None:
    places = [(place.start, place.end, place.kind) for place in orc_places(table(), lambda pc: pc >= SYSCALL)]
    assert places == [
        (START, START + 0x21, PlaceKind.TASK_START),  # also where the last call returns to
        (SWITCH, SWITCH + 0x40, PlaceKind.STACK_SWITCH),
        (SYSCALL, SAVED + 1, PlaceKind.USER_ENTRY),  # likewise
        (SAVED + 1, INTERRUPT, PlaceKind.EXCEPTION),
        (INTERRUPT, INTERRUPT + 0x20, PlaceKind.EXCEPTION),
        (INTERRUPT + 0x20, WITH_BP, PlaceKind.EXCEPTION),
        (WITH_BP, ERROR_ENTRY, PlaceKind.EXCEPTION),
        (ERROR_ENTRY, ERROR_ENTRY + 0x40, PlaceKind.FUNCTION),
    ]


def test_places_of_assembly_outside_of_entry_code() -> None:
    """Stack switches, ends of stacks and entry code are left out."""
    code = [(START, FUNCTION + 8), (FUNCTION + 0x20, FUNCTION + 0x60), (SWITCH, SYSCALL + 0x1000)]
    places = assembly_places(table(), code, lambda pc: pc >= SYSCALL)
    assert [(place.start, place.end, place.kind) for place in places] == [
        (FUNCTION, FUNCTION + 8, PlaceKind.FUNCTION),
        (FUNCTION + 0x20, DRAP, PlaceKind.FUNCTION),
        (DRAP, FUNCTION + 0x60, PlaceKind.FUNCTION),
    ]


def test_the_table_is_found_by_its_symbols(memory: Memory) -> None:
    addresses, start, entries = packed(TABLE, ORC)
    at = start + 0x1000
    memory.put(start, addresses)
    memory.put(at, entries)
    symbols = {
        "__start_orc_unwind_ip": start,
        "__stop_orc_unwind_ip": start + len(addresses),
        "__start_orc_unwind": at,
        "__stop_orc_unwind": at + len(entries),
    }
    found = find_orc(symbols.get, memory.read)
    assert found is not None
    assert list(found) == list(table())
    assert found.find(DRAP) is not None
    memory.put(at + 0x1000, bytes(HASH_SIZE))
    with pytest.raises(FormatError, match="no known layout"):
        find_orc({**symbols, "__start_orc_header": at + 0x1000}.get, memory.read)
    thunks = {"__indirect_thunk_start": START, "__indirect_thunk_end": FUNCTION}
    without_thunks = find_orc({**symbols, **thunks}.get, memory.read)
    assert without_thunks is not None
    assert [at for (at, one), (_, other) in zip(found, without_thunks) if one != other] == [START]
    assert [one.kind for at, one in without_thunks if at in (START, SYSCALL)] == [OrcKind.UNDEFINED, OrcKind.END]
    assert without_thunks.rows(START, START + 1) == ([START], [None])
    del symbols["__stop_orc_unwind"]
    assert find_orc(symbols.get, memory.read) is None
