"""The kernel for s390x: its code is from Debian's Linux 6.1.176, with other addresses."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from elftools.dwarf.callframe import FDE
from elftools.dwarf.dwarf_expr import DWARFExprParser
from elftools.elf.elffile import ELFFile

from sframe_unwind.arch import BY_NAME, PlaceKind
from sframe_unwind.debugger.contexts import walk
from sframe_unwind.errors import StepError
from sframe_unwind.kernel.linux import EXCEPTION, Kernel
from sframe_unwind.kernel.symbol_file import symbol_file
from sframe_unwind.kernel.tasks import TaskList
from sframe_unwind.kernel.unwinder import NAME, KernelUnwinder
from sframe_unwind.sframe.constants import AbiNumber
from sframe_unwind.sframe.encode import SectionSpec, encode, usual_table
from sframe_unwind.sframe.encode_rule import function
from sframe_unwind.sframe.section import Section
from sframe_unwind.unwind.modules import Module, Modules
from sframe_unwind.unwind.saved_context import from_registers
from sframe_unwind.unwind.step import Caller
from sframe_unwind.unwind.walk import Registers
from tests.kernel import fake
from tests.kernel.fake import STRUCTURES, TASK_MEMBERS, Memory, array, number, structure
from tests.unwind.world import sp_based

ARCH, EM_S390 = BY_NAME["s390x"], 22
SWITCH, LEAF, BEGIN = 0x10D0D8, 0x10D200, 0x10D300
INTERRUPT, SYSCALL, FORK, HANDLER, TASK = 0xA332F0, 0xA31990, 0xA31A40, 0xA22698, 0xEC0900
CODE = {
    # do_irq_async, from its first instruction up to the return
    SWITCH: "c00400000000ebaff0680024b90400efe3f0ffc0ff71a7593fffe3e0f098002441b0f040b904004be31003500004b9820041"
    "ec45001ac065e310f0a00024b90400afe3f0f0a00004e3b0f0980024c0e5fffffdedb90400fae340f0c80004ebaff0a8000407f4",
    # psw_idle
    LEAF: "e3e0f0880024e330f0000024c0100000001de310f0080024c01000435a3ae31010000016b9020011a7840005eb152038"
    "00179620028f47000000b27c2018b2092028b2b2f00007fe",
    # the end of arch_call_rest_init: stg; la; xc; brasl; mc
    BEGIN: "e3b00348002441f0b000d707f098f098c0e5ffd8ada1af000000",
    # the end of io_int_handler
    INTERRUPT: "eb89b0080024b904002bc0e5{}d20f0290b008a7820001a7e4000deb110390002f9101c006a7840004b2e8c000b20902c8"
    "47000000eb0fb0180004" + "47f00400",
    SYSCALL: "b904003ec0e5{}eb110390002f" + "47f00400",
    FORK: "b904003bc0e5{}eb110390002f" + "47f00400",
}
LOWCORE_LPSWE = 0x400
"""The target of ``b 1024``, the last instruction of ``system_call`` and the others."""
CALL = {SWITCH: SWITCH + 78, BEGIN: BEGIN + 16, INTERRUPT: INTERRUPT + 10, SYSCALL: SYSCALL + 4, FORK: FORK + 4}
"""Addresses of the calls."""
SYMBOLS = {
    "_stext": SWITCH,
    "_etext": BEGIN + 26,
    "psw_idle": LEAF,
    "init_task": TASK,
    "io_int_handler": INTERRUPT,
    "do_io_irq": HANDLER,
    "system_call": SYSCALL,
    "__do_syscall": HANDLER + 0x200,
    "ret_from_fork": FORK,
    "__ret_from_fork": HANDLER + 0x400,
}
CALLED = {INTERRUPT: "do_io_irq", SYSCALL: "__do_syscall", FORK: "__ret_from_fork"}
_PSW = structure(16, mask=(0, number()), addr=(8, number()))
TYPES = {
    **STRUCTURES,
    "pt_regs": structure(200, psw=(8, _PSW), gprs=(24, array(number(), 16))),
    "stack_frame": structure(160, gprs=(72, array(number(), 10)), back_chain=(152, number())),
    "task_struct": structure(512, **TASK_MEMBERS, thread=(128, structure(128, ksp=(64, number())))),
}
TASK_STACK, ASYNC_STACK = 0x37FFFD90000, 0x37FFFDC8000
USER_PSW, KERNEL_PSW = 0x0705100180000000, 0x0704C00180000000


class BigMemory(Memory):
    """Memory of a big-endian machine."""

    def write(self, address: int, value: int, size: int = 8) -> None:
        self.put(address, value.to_bytes(size, "big"))

    def word(self, address: int) -> int:
        return int.from_bytes(self.read(address, 8), "big")


@pytest.fixture
def memory() -> BigMemory:
    one = BigMemory()
    one.fill(SWITCH, 0x400)
    for start, text in CODE.items():
        one.fill(start, 0x400)
        called = SYMBOLS[CALLED[start]] if start in CALLED else 0
        one.put(
            start,
            bytes.fromhex(text.format(((called - CALL.get(start, 0)) // 2).to_bytes(4, "big", signed=True).hex())),
        )
    for start in (TASK_STACK, ASYNC_STACK):
        one.fill(start, 0x1000)
    return one


def kernel(memory: BigMemory) -> Kernel:
    return fake.kernel(memory, SYMBOLS, ARCH, TYPES)


def test_places(memory: BigMemory) -> None:
    found = [(start, end, place.kind, place.function) for start, end, place in kernel(memory).places]
    assert found == [
        (LOWCORE_LPSWE, LOWCORE_LPSWE + 4, PlaceKind.PARTLY_SAVED, "return_lpswe"),
        (CALL[SWITCH], CALL[SWITCH] + 8, PlaceKind.STACK_SWITCH, ""),
        (LEAF, LEAF + 72, PlaceKind.LEAF, "psw_idle"),
        (CALL[BEGIN], CALL[BEGIN] + 8, PlaceKind.TASK_START, ""),
        (SYSCALL, SYSCALL + 4, PlaceKind.USER_ENTRY, "system_call"),
        (SYSCALL + 4, SYSCALL + 12, PlaceKind.USER_ENTRY, "system_call"),
        (SYSCALL + 12, SYSCALL + 18, PlaceKind.USER_ENTRY, "system_call"),
        (FORK, FORK + 4, PlaceKind.TASK_START, "ret_from_fork"),
        (FORK + 4, FORK + 12, PlaceKind.TASK_START, "ret_from_fork"),
        (FORK + 12, FORK + 18, PlaceKind.TASK_START, "ret_from_fork"),
        (INTERRUPT, INTERRUPT + 10, PlaceKind.PARTLY_SAVED, "io_int_handler"),
        (INTERRUPT + 10, INTERRUPT + 18, PlaceKind.EXCEPTION, "io_int_handler"),
        (INTERRUPT + 18, INTERRUPT + 64, PlaceKind.PARTLY_SAVED, "io_int_handler"),
    ]


def test_a_function_that_does_not_save_the_frame_pointer_is_left_out(memory: BigMemory) -> None:
    """Any inner function may have saved the frame pointer of its caller."""
    memory.put(SWITCH + 6, bytes.fromhex("ebcff0780024"))  # stmg %r12,%r15,120(%r15)
    assert kernel(memory).places.get(CALL[SWITCH]) is None


def test_from_the_asynchronous_stack_to_the_idle_task(memory: BigMemory) -> None:
    """The compiler's CFI counts from the SP of the other stack; the back chain there leads to the caller's caller."""
    sp, interrupted = TASK_STACK + 0x200, TASK_STACK + 0x800
    memory.write(ASYNC_STACK + 152, sp)
    memory.write(sp + 72 + 8 * 5, 0x1111)
    memory.write(sp + 72 + 8 * 8, INTERRUPT + 16)
    found = kernel(memory)
    unwinder = KernelUnwinder(found, memory.word)
    assert found.leaves_stack(CALL[SWITCH] + 5)
    switch = unwinder.unwind(Registers(CALL[SWITCH] + 6, ASYNC_STACK, 0), interrupted=False)
    assert switch is not None
    assert (switch.caller, switch.switches_stack) == (Caller(sp + 160, INTERRUPT + 16, sp, 0x1111), True)

    for at, value in ((8, KERNEL_PSW), (16, LEAF + 70), (24 + 8 * 15, interrupted), (24 + 8 * 14, FORK), (24 + 88, 7)):
        memory.write(sp + 160 + at, value)
    exception = unwinder.unwind(Registers(INTERRUPT + 16, sp, 0x1111), interrupted=False)
    assert exception is not None
    assert (exception.caller, exception.signal, exception.unwinder) == (
        Caller(sp + 360, LEAF + 70, interrupted, 7),
        True,
        EXCEPTION,
    )
    leaf = unwinder.unwind(Registers(LEAF + 70, interrupted, 7), True, exception.read_register)
    assert leaf is not None
    assert (leaf.caller, leaf.signal) == (Caller(interrupted + 160, FORK, interrupted, 7), False)
    with pytest.raises(StepError, match="psw_idle: the register with the return address is not known"):
        unwinder.unwind(Registers(LEAF + 70, interrupted, 7), interrupted=False)


def test_rows_of_a_function_that_leaves_the_stack_are_not_used(memory: BigMemory) -> None:
    """SFrame made from the compiler's CFI has its CFA, which counts from the SP of the other stack."""
    table = usual_table(3, AbiNumber.S390X_ENDIAN_BIG)
    row = sp_based(ARCH, 224, ra_at=-24)
    data = encode(SectionSpec(0, (table._replace(functions=(function(table, SWITCH, 0x66, [(0, row)]),)),)))
    modules = Modules(ARCH, [Module("vmlinux", [(SWITCH, SWITCH + 0x66)], lambda: Section(data, 0))])
    memory.write(ASYNC_STACK + 224 - 24, HANDLER)
    memory.write(ASYNC_STACK + 152, TASK_STACK)
    memory.write(TASK_STACK + 72 + 8 * 8, FORK + 10)
    context = from_registers(ARCH, {ARCH.pc: CALL[SWITCH] + 6, ARCH.sp: ASYNC_STACK, ARCH.fp: 0}, memory.read)
    by_rows, by_kernel = (
        [frame.pc for frame in walk(context, modules, memory.read, None, found)] for found in (None, kernel(memory))
    )
    assert by_rows[:2] == [CALL[SWITCH] + 6, HANDLER]
    assert by_kernel == [CALL[SWITCH] + 6, FORK + 10]


@pytest.mark.parametrize(("mask", "pc"), [(KERNEL_PSW, 0x1234), (USER_PSW, 0)])
def test_gdb_does_not_go_on_in_user_space(mask: int, pc: int, memory: BigMemory) -> None:
    """GDB's own unwinder would read megabytes in search of a prologue.  pyelftools decodes the expression."""
    found = kernel(memory)
    made = symbol_file(ARCH, EM_S390, [place for _, _, place in found.places], found.saved_registers)
    elf = ELFFile(io.BytesIO(made))
    info = elf.get_dwarf_info(relocate_dwarf_sections=False)
    tables = {
        one["initial_location"]: one.get_decoded().table[-1] for one in info.CFI_entries() if isinstance(one, FDE)
    }
    assert not tables.keys() & {CALL[SWITCH], CALL[BEGIN]}  # they have CFI
    row = tables[CALL[INTERRUPT]]
    assert (row["cfa"].reg, row["cfa"].offset) == (ARCH.sp, 360)
    memory.write(TASK_STACK + 160 + 8, mask)
    memory.write(TASK_STACK + 160 + 16, 0x1234)
    stack = [TASK_STACK + 360]
    actions: dict[str, Callable[[], object]] = {
        "DW_OP_dup": lambda: stack.append(stack[-1]),
        "DW_OP_swap": lambda: stack.append(stack.pop(-2)),
        "DW_OP_deref": lambda: stack.append(memory.word(stack.pop())),
        "DW_OP_plus": lambda: stack.append(stack.pop() + stack.pop()),
        "DW_OP_mul": lambda: stack.append(stack.pop() * stack.pop()),
        "DW_OP_and": lambda: stack.append(stack.pop() & stack.pop()),
        "DW_OP_xor": lambda: stack.append(stack.pop() ^ stack.pop()),
        "DW_OP_shr": lambda: stack.append(stack.pop(-2) >> stack.pop()),
    }
    assert row[ARCH.pc].type == "VAL_EXPRESSION"
    for operation in DWARFExprParser(info.structs).parse_expr(row[ARCH.pc].arg):
        if operation.op_name.startswith("DW_OP_lit"):
            stack.append(int(operation.op_name[9:]))
        elif operation.args:
            stack.append(operation.args[0])
        else:
            actions[operation.op_name]()
    assert stack == [pc]


def test_ends(memory: BigMemory) -> None:
    memory.write(TASK_STACK + 160 + 8, USER_PSW)
    unwinder = KernelUnwinder(kernel(memory), memory.word)
    ends = {INTERRUPT + 16: "entry from user space", SYSCALL + 10: "entry from user space"}
    ends[LOWCORE_LPSWE + 1] = PlaceKind.PARTLY_SAVED.value
    for pc, end in {**ends, FORK + 10: "start of the task", CALL[BEGIN] + 6: "start of the task"}.items():
        found = unwinder.unwind(Registers(pc, TASK_STACK, 0), interrupted=False)
        assert found is not None
        assert (found.caller, found.end, found.unwinder) == (None, end, NAME)


def test_the_registers_of_a_task_that_does_not_run(memory: BigMemory) -> None:
    """``__switch_to`` saves them in the frame of its caller."""
    memory.fill(TASK, 0x1000)
    memory.write(TASK + 128 + 64, TASK_STACK)
    for register in range(6, 16):
        memory.write(TASK_STACK + 72 + 8 * (register - 6), register)
    task = TaskList(kernel(memory)).read(TASK)
    assert task.registers == {**{register: register for register in range(6, 16)}, ARCH.pc: 14}
