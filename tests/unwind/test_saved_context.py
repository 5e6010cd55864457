"""Saved contexts: which pcs follow a call, and what cannot be a context."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from sframe_unwind.arch import BY_NAME, Arch
from sframe_unwind.debugger.contexts import walk
from sframe_unwind.errors import ContextError, MemoryReadError
from sframe_unwind.memory import ReadMemory, WordReader
from sframe_unwind.unwind.modules import Modules
from sframe_unwind.unwind.saved_context import (
    SavedContext,
    assignments,
    from_jump_buffer,
    from_registers,
    from_ucontext,
    pointer_guards,
)
from tests.hanging import HANG
from tests.missing import absent
from tests.samples.catalogue import ABIS, WITH_LIBC

CALLS = {
    "amd64": """
        call 0f; call *%rax; call *%r11; call *(%rax); call *(%r12); call *(%rsp); call *(%rax,%rbx,4)
        call *8(%rax); call *8(%rsp); call *8(%r13); call *(%rbp); call *-8(%rax,%r9,8); call *0x1234(%rax)
        call *0x1234(%rsp); call *0x1234(,%rax,8); call *0x1234(%rip); call *0x12345678; call *0x1234(%r12,%r13)
    """,
    "aarch64": "bl 0f; blr x3; blraa x3, x4; blrab x3, sp; blraaz x3; blrabz x3",
    "s390x": "brasl %r14, 0f; bras %r14, 0f; basr %r14, %r1; basr %r14, %r12",
}
OTHERS = {
    "amd64": "jmp 0f; jmp *%rax; push (%rax); push 8(%rsp); jmp *0x1234(%rip); inc %eax; ret; lea 8(%rax), %rbx",
    "aarch64": "b 0f; br x3; ret; retaa; braa x3, x4; nop; udf #0",
    "s390x": "br %r14; brcl 15, 0f; larl %r14, 0f; nopr %r7; lgr %r1, %r2",
}


@pytest.mark.parametrize("abi", WITH_LIBC)
def test_instructions_that_are_calls(abi: str, tmp_path: Path) -> None:
    """Each kind of call, as the assembler encodes it, after bytes that are not part of a call."""
    arch = BY_NAME[abi]
    for expected, text in ((True, CALLS[abi]), (False, OTHERS[abi])):
        for instruction in text.replace("\n", ";").split(";"):
            if instruction.strip():
                code = assembled(abi, instruction.strip(), tmp_path)
                assert arch.ends_call((bytes(8) + code)[-8:]) is expected, f"{instruction}: {code.hex()}"


def assembled(abi: str, instruction: str, folder: Path) -> bytes:
    """Return the bytes of an instruction."""
    compiler = ABIS[abi].compiler
    if shutil.which(compiler) is None:
        absent(f"{compiler} is not installed")
    source, object_file, binary = (folder / name for name in ("code.s", "code.o", "code.bin"))
    march = ".arch armv8.3-a" if abi == "aarch64" else ""
    # gas fills up .text.
    parts = (march, ".text", "1:", instruction, "2:", ".data", "0: .byte 2b - 1b", "")
    source.write_text("\n".join(parts), encoding="utf-8")
    subprocess.run([compiler, "-c", str(source), "-o", str(object_file)], check=True, timeout=HANG)
    objcopy = compiler.replace("gcc", "objcopy")
    contents = []
    for section in (".text", ".data"):
        command = [objcopy, "-O", "binary", "-j", section, str(object_file), str(binary)]
        subprocess.run(command, check=True, timeout=HANG)
        contents.append(binary.read_bytes())
    return contents[0][: contents[1][0]]


ARCH = BY_NAME["amd64"]
CODE = 0x1000


def unreadable(address: int, size: int) -> bytes:
    raise MemoryReadError(address, size)


def zeros(_: int, size: int) -> bytes:
    return bytes(size)


def nowhere(_: int) -> bool:
    return False


def calling(address: int, size: int) -> bytes:
    """Return memory that is full of calls through a register."""
    return (b"\xff\xd0" * size)[address % 2 :][:size]


def test_item_32_whether_pc_is_a_return_address() -> None:
    """A call must end at the pc, and SP be aligned as it is after a call; at the entry of a function it is not."""
    registers = {ARCH.pc: CODE, ARCH.sp: 0x7000, ARCH.fp: 0}
    assert not from_registers(ARCH, registers, calling).interrupted
    assert from_registers(ARCH, {**registers, ARCH.sp: 0x7008}, calling).interrupted
    assert from_registers(ARCH, registers, zeros).interrupted
    assert from_registers(ARCH, registers, unreadable).interrupted
    assert from_registers(ARCH, {**registers, ARCH.pc: 0}, unreadable).interrupted


def test_assignments_with_commas_and_equations() -> None:
    text = "pc = f(a, b) , sp=x == 1 ? y : z, fp=w[1, 2],rbx=3"
    found = {ARCH.register_name(number): value for number, value in assignments(ARCH, text).items()}
    assert found == {"rip": "f(a, b)", "rsp": "x == 1 ? y : z", "rbp": "w[1, 2]", "rbx": "3"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not of the form REGISTER=VALUE"),
        ("pc=", "'pc=' is not of the form REGISTER=VALUE"),
        ("pc==1,sp=1,fp=1", "'pc==1' is not of the form REGISTER=VALUE"),
        ("pc=1", "no value for sp and fp, expected pc=VALUE,sp=VALUE,fp=VALUE"),
        ("pc=1,rip=2,sp=1,fp=1", "register rip is given twice"),
        ("pc=1,sp=1,fp=1,lr=1", "amd64 has no register 'lr'"),
    ],
)
def test_what_is_no_list_of_registers(text: str, message: str) -> None:
    with pytest.raises(ContextError) as caught:
        assignments(ARCH, text)
    assert str(caught.value) == message


def test_a_jump_buffer_of_musl_is_not_mangled() -> None:
    words = [11, 0x7100, 12, 13, 14, 15, 0x7000, CODE]

    def read(address: int, size: int) -> bytes:
        data = b"".join(word.to_bytes(8, "little") for word in words)
        return data[address - 0x2000 :][:size] if address >= 0x2000 and address + size <= 0x2040 else unreadable(0, 0)

    context = from_jump_buffer(ARCH, 0x2000, read, [], (CODE - 1).__eq__)
    assert context.innermost == (CODE, 0x7000, 0x7100)
    assert context.read_register(3) == 11
    with pytest.raises(ContextError, match="the pointer guard of the C library is not found"):
        from_jump_buffer(ARCH, 0x2000, read, [], nowhere)
    with pytest.raises(ContextError, match="with the pointer guard of the C library or without"):
        from_jump_buffer(ARCH, 0x2000, read, [1], nowhere)


@pytest.mark.parametrize("abi", list(BY_NAME))
def test_nothing_is_saved_in_zeros(abi: str) -> None:
    with pytest.raises(ContextError, match="ucontext_t at 0x2000: its pc is 0, nothing is saved there"):
        from_ucontext(BY_NAME[abi], 0x2000, zeros)


def test_where_the_pointer_guard_is() -> None:
    """The guard is in the thread control block, in a variable, or in the random bytes from the kernel."""
    memory = {0x9030: 1, 0x9028: 2, 0x5000: 3, 0x6000: 0xFF << 56 | 4, 0x6008: 5}
    names = {"fs_base": 0x9000, "acr0": 0, "acr1": 0x9000}

    def read_word(address: int) -> int:
        if address not in memory:
            raise MemoryReadError(address, 8)
        return memory[address]

    def guards(abi: str, symbol: int = 0x5000) -> list[int]:
        return list(pointer_guards(BY_NAME[abi], read_word, names.get, lambda _: [symbol], 0x6000))

    assert [guards("amd64"), guards("aarch64"), guards("s390x")] == [[1, 5], [3, 3, 5], [2, 4]]
    names.clear()
    assert [guards("amd64"), guards("aarch64", 0x5001), guards("s390x")] == [[5], [5], [4]]


def random_memory(random: Random) -> tuple[int, ReadMemory]:
    """Return the start of a page of random bytes, and a function that reads only that page."""
    memory = random.randbytes(4096)
    start = random.choice((0, 0x2000, (1 << 64) - 4096))

    def read(address: int, size: int) -> bytes:
        if not start <= address <= address + size <= start + len(memory):
            raise MemoryReadError(address, size)
        return memory[address - start :][:size]

    return start, read


def contexts_in_random_memory(arch: Arch, random: Random) -> Iterator[tuple[SavedContext, ReadMemory]]:
    start, read = random_memory(random)
    address = start + random.randrange(-64, 4096) & (1 << 64) - 1
    with suppress(ContextError):
        yield from_ucontext(arch, address, read), read
    guards = pointer_guards(arch, WordReader(read, arch.byteorder), lambda _: 0x2000, lambda _: [], start)
    with suppress(ContextError):
        yield from_jump_buffer(arch, address, read, guards, lambda _: random.random() < 0.3), read


@pytest.mark.parametrize("abi", list(BY_NAME))
def test_any_bytes_are_a_context_or_an_error(abi: str) -> None:
    """Random structures, in memory of which parts cannot be read: if one is a context, the walk from it ends."""
    arch, contexts = BY_NAME[abi], 0
    for seed in range(400):
        for context, read in contexts_in_random_memory(arch, Random(seed)):
            contexts += 1
            steps = walk(context, Modules(arch, []), read, None)
            assert len(list(steps)) == 1
            assert steps.end is not None
    assert contexts > 100
