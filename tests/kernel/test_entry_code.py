"""The places of entry code, and the frames there: exceptions, stack switches, and the two ends of a stack."""

from __future__ import annotations

import pytest

from sframe_unwind.arch import PlaceKind
from sframe_unwind.errors import KernelError, MemoryReadError, StepError
from sframe_unwind.kernel.entry_code import find_places
from sframe_unwind.kernel.linux import EXCEPTION as BY_PT_REGS
from sframe_unwind.kernel.types import Types
from sframe_unwind.kernel.unwinder import NAME, KernelUnwinder
from sframe_unwind.unwind.step import Caller
from sframe_unwind.unwind.walk import Registers
from tests.kernel.fake import (
    ARCH,
    CODE,
    EXCEPTION,
    FORK,
    HANDLER,
    STRUCTURES,
    SWITCH,
    SYMBOLS,
    TO_KERNEL,
    USER,
    VECTORS,
    Memory,
    branch,
    kernel,
)

PARTLY_SAVED = "an exception of which not all registers are saved yet, or still"
TASK_STACK, IRQ_STACK = 0xFFFFFF8000100000, 0xFFFFFF8000900000
TYPES = Types(STRUCTURES.get)


def test_calls_are_found_as_the_machine_encodes_them() -> None:
    words = CODE[EXCEPTION]
    assert words[2] == branch(EXCEPTION + 8, HANDLER, True)
    assert ARCH.call_target(words[2].to_bytes(4, "little"), EXCEPTION + 12) == HANDLER


def test_the_places_are_the_calls_of_the_entry_code_and_the_instruction_after_each() -> None:
    found = list(find_places(ARCH, SYMBOLS.get, Memory().read))
    assert [(place.start, place.end, place.function, place.kind) for place in found] == [
        (EXCEPTION, EXCEPTION + 8, "el1h_64_irq", PlaceKind.PARTLY_SAVED),
        (EXCEPTION + 8, EXCEPTION + 16, "el1h_64_irq", PlaceKind.EXCEPTION),
        (USER, USER + 4, "el0t_64_sync", PlaceKind.USER_ENTRY),
        (USER + 4, USER + 12, "el0t_64_sync", PlaceKind.USER_ENTRY),
        (SWITCH + 4, SWITCH + 12, "call_on_irq_stack", PlaceKind.STACK_SWITCH),
        (FORK, FORK + 8, "ret_from_fork", PlaceKind.TASK_START),
        (FORK + 8, FORK + 16, "ret_from_fork", PlaceKind.TASK_START),
        (VECTORS, VECTORS + 0x400, "vectors", PlaceKind.PARTLY_SAVED),
        (VECTORS + 0x400, VECTORS + 0x800, "vectors", PlaceKind.USER_ENTRY),
        (TO_KERNEL, TO_KERNEL + 8, "ret_to_kernel", PlaceKind.PARTLY_SAVED),
    ]


def test_a_stack_overflow_is_an_exception() -> None:
    """``__bad_stack`` saves the registers as the other vectors do, but on a separate stack."""
    symbols = {"__bad_stack": EXCEPTION, "handle_bad_stack": HANDLER}
    found = list(find_places(ARCH, symbols.get, Memory().read))
    assert [(place.start, place.function, place.kind) for place in found] == [
        (EXCEPTION, "__bad_stack", PlaceKind.PARTLY_SAVED),
        (EXCEPTION + 8, "__bad_stack", PlaceKind.EXCEPTION),
    ]


def test_code_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(MemoryReadError):
        list(find_places(ARCH, {**SYMBOLS, "call_on_irq_stack": 0x1000}.get, Memory().read))


def test_a_member_of_anonymous_structures_and_an_element_of_an_array() -> None:
    assert TYPES.place("pt_regs", "pc") == (256, 8)
    assert TYPES.place("pt_regs", "regs.30") == (240, 8)
    assert TYPES.place("task_struct", "thread.cpu_context.sp") == (128 + 88, 8)
    assert not TYPES.has("task_struct", "state")


@pytest.mark.parametrize(
    ("tag", "path", "complaint"),
    [
        ("pt_regs", "nothing", "struct pt_regs of the kernel has no member nothing"),
        ("nothing", "pc", "the kernel's debug information has no struct nothing"),
    ],
)
def test_what_the_debug_information_lacks(tag: str, path: str, complaint: str) -> None:
    with pytest.raises(KernelError, match=complaint):
        TYPES.place(tag, path)


def exception_frame(memory: Memory, at: int, pc: int, sp: int, fp: int) -> Registers:
    """Write ``pt_regs`` like entry code; return the registers of the frame of the entry code."""
    memory.fill(at, 336)
    for number in range(29):
        memory.write(at + 8 * number, 0x100 + number)
    memory.write(at + 8 * 29, fp)
    memory.write(at + 248, sp)
    memory.write(at + 256, pc)
    return Registers(EXCEPTION + 12, at, at + 304)


def test_item_36_an_exception_leads_to_the_interrupted_function_with_all_its_registers() -> None:
    memory = Memory()
    registers = exception_frame(memory, TASK_STACK, 0xFFFFFFC008111111, TASK_STACK + 336, 0x77)
    found = KernelUnwinder(kernel(memory), memory.word).unwind(registers, interrupted=False)
    assert found is not None
    assert found.caller == Caller(TASK_STACK + 336, 0xFFFFFFC008111111, TASK_STACK + 336, 0x77)
    assert (found.signal, found.unwinder) == (True, BY_PT_REGS)
    assert found.read_register is not None
    assert [found.read_register(number) for number in (0, 28)] == [0x100, 0x11C]


def test_pt_regs_that_are_not_there_are_refused() -> None:
    memory = Memory()
    registers = exception_frame(memory, TASK_STACK, 0xFFFFFFC008111111, TASK_STACK + 336, 0x77)
    with pytest.raises(StepError, match=r"el1h_64_irq: the frame pointer is 0x1, expected the record in pt_regs at"):
        KernelUnwinder(kernel(memory), memory.word).unwind(registers._replace(fp=1), interrupted=False)


@pytest.mark.parametrize("old_stack", [TASK_STACK, IRQ_STACK + 0x10000])
def test_item_36_a_stack_switch_leads_to_the_other_stack_wherever_that_is(old_stack: int) -> None:
    memory = Memory()
    memory.write(old_stack, 0x77)
    memory.write(old_stack + 8, 0xFFFFFFC008222222)
    found = KernelUnwinder(kernel(memory), memory.word).unwind(Registers(SWITCH + 8, IRQ_STACK, old_stack), False)
    assert found is not None
    assert found.caller == Caller(old_stack + 16, 0xFFFFFFC008222222, old_stack + 16, 0x77)
    assert (found.signal, found.switches_stack, found.unwinder) == (False, True, NAME)


def test_item_36_stacks_that_lead_to_each_other_end() -> None:
    memory = Memory()
    memory.write(TASK_STACK, TASK_STACK)
    memory.write(TASK_STACK + 8, SWITCH + 8)
    unwinder = KernelUnwinder(kernel(memory), memory.word)
    registers = Registers(SWITCH + 8, TASK_STACK + 16, TASK_STACK)
    found = unwinder.unwind(registers, interrupted=False)
    assert found is not None
    assert found.caller is not None
    assert found.caller[1:] == registers  # the same frame again
    with pytest.raises(StepError, match=r"call_on_irq_stack is reached with SP .* for the second time"):
        unwinder.unwind(registers, interrupted=False)


@pytest.mark.parametrize(
    ("pc", "interrupted", "end"),
    [
        (USER + 8, False, "entry from user space"),
        (USER, True, "entry from user space"),
        (VECTORS + 0x480, True, "entry from user space"),
        *((pc, True, PARTLY_SAVED) for pc in (VECTORS + 0x280, EXCEPTION, EXCEPTION + 4, TO_KERNEL + 4)),
        (FORK + 4, False, "start of the task"),
        (FORK, True, "start of the task"),  # a task that has not run yet
    ],
)
def test_the_ends_of_a_stack(pc: int, interrupted: bool, end: str) -> None:
    memory = Memory()
    found = KernelUnwinder(kernel(memory), memory.word).unwind(Registers(pc, TASK_STACK, 0), interrupted)
    assert found is not None
    assert (found.caller, found.end) == (None, end)


@pytest.mark.parametrize("pc", [EXCEPTION, TO_KERNEL + 12, HANDLER + 4])
def test_other_code_is_left_to_others(pc: int) -> None:
    memory = Memory()
    assert KernelUnwinder(kernel(memory), memory.word).unwind(Registers(pc, TASK_STACK, 0), False) is None
