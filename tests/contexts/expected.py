"""The program with contexts that do not run, commands for these contexts, and the required output."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

from sframe_unwind.arch import BY_NAME
from tests.hanging import HANG
from tests.missing import toolchain_needed
from tests.samples.build import COMMON_FLAGS, SAMPLES_FOLDER, toolchain
from tests.samples.catalogue import ABIS

SOURCE = Path(__file__).resolve().parent / "contexts.c"
STOPS = 6
"""Number of stops, all in sample_stop except the third: before the instruction in trap that raises a signal."""
SIGNAL = "<signal handler called>"

SWITCHED = {
    "amd64": "pc=switched[6],sp=switched+7,fp=switched[5]",
    "aarch64": "pc=switched[1], sp=switched + 14, fp=switched[0], lr=switched[1]",
    "s390x": "pc=switched[14],sp=switched,fp=switched[11]",
}
"""The places where `switch_stack` of contexts.c saves the registers."""

BY_HAND = {
    "amd64": {"rip": "gregs[16]", "rsp": "gregs[15]", "rbp": "gregs[10]"},
    "aarch64": {"pc": "pc", "sp": "sp", "x29": "regs[29]", "x30": "regs[30]"},
    "s390x": {"pc": "gregs[14]", "r15": "gregs[15]", "r11": "gregs[11]", "r14": "gregs[14]"},
}
"""The member of `mcontext_t` for each register, according to the C library's headers."""

CONTEXTS = {
    "-ucontext fiber": ("fiber_inner", "fiber_body"),
    "-ucontext &jumping": ("jump_inner", "jump_body"),
    "-jmpbuf jump": ("jump_inner", "jump_body"),
    "-jmpbuf &signal_jump": ("jump_inner", "jump_body"),
    "-ucontext handling": ("trap", "trap_body"),
    "-ucontext &interrupted": ("trap", "trap_body"),
    "-regs SWITCHED": ("switched_inner", "switched_start"),
}
"""For each context, the function in which it was left (for a signal handler, the interrupted one), and the outermost
one."""

FRESH = "-ucontext fresh"
USAGE = "Usage: sframe backtrace [N] [-all] [-regs "
WRONG = {
    "sframe bt -ucontext": USAGE,
    "sframe bt -all -ucontext fiber": USAGE,
    "sframe bt x -jmpbuf jump": "'x'",
    "sframe compare -ucontext fiber": "not comparable",
    "sframe compare --json -regs pc=1,sp=1,fp=1": "not comparable",
    "sframe status -ucontext fiber": "Usage: sframe status",
    "sframe bt -ucontext nonsense": "nonsense",
    "sframe bt -ucontext +": "",
    "sframe bt -ucontext empty.context": "is 0, nothing is saved there",
    "sframe bt -ucontext nothing->context": "cannot read 8 bytes of memory at 0x",
    "sframe bt -ucontext 0xfffffffffffffff0": "ucontext_t at 0xfffffffffffffff0: cannot read",
    "sframe bt -jmpbuf empty.jump": "jmp_buf at 0x",
    "sframe bt -jmpbuf 8": "jmp_buf at 0x8: cannot read 8 bytes",
    "sframe bt -regs": USAGE,
    "sframe bt -regs pc=1,fp=2": "no value for sp",
    "sframe bt -regs pc=1,sp=2,fp=3,rax0=4": "has no register 'rax0'",
    "sframe bt -regs pc=1,sp=2,fp=3,pc=4": "register pc is given twice",
    "sframe bt -regs pc=nonsense,sp=2,fp=3": "nonsense",
    "sframe bt -regs main": "'main' is not of the form REGISTER=VALUE",
    "sframe explain -jmpbuf empty.jump": "jmp_buf at 0x",
}
"""Commands that fail, with a part of their one line."""

SHORT = {
    "sframe bt -regs pc=1,sp=2,fp=3": "end: no unwind data: no module has code there",
    "sframe bt -regs pc=0xffffffffffffffff,sp=0xfffffffffffffff8,fp=0xfffffffffffffff8": "end: no unwind data",
    "sframe bt -regs pc=-1,sp=-8,fp=-8": "end: no unwind data",
    "sframe bt -regs pc=(long)fiber_inner+200,sp=0x1230,fp=0": "end: ",
    "sframe bt -regs pc=fiber_inner,sp=&empty,fp=0": "end: ",
}
"""Commands that succeed, with the start of their last line."""


def built(abi: str, folder: Path, *more: str) -> Path:
    """Build the program, with more flags; skip the test if there is no toolchain for it."""
    with toolchain_needed():
        tools = toolchain(abi, 3)
    executable = folder / f"contexts-{abi}"
    flags = [*COMMON_FLAGS, *ABIS[abi].flags, "-O2", f"-B{tools}/", f"-I{SAMPLES_FOLDER}"]
    subprocess.run([ABIS[abi].compiler, *flags, *more, str(SOURCE), "-o", str(executable)], check=True, timeout=HANG)
    return executable


def commands(abi: str) -> list[str]:
    """Return the commands, in the order in which `check` expects their output."""
    right = [f"sframe bt {context}".replace("SWITCHED", SWITCHED[abi]) for context in (*CONTEXTS, FRESH)]
    explained = [f"sframe explain {context}".replace("SWITCHED", SWITCHED[abi]) for context in CONTEXTS]
    return [*right, *explained, "sframe bt 2 -ucontext fiber", *WRONG, *SHORT]


def check(
    abi: str,
    stops: list[list[dict[str, Any]]],
    said: list[tuple[bool, str]],
    calm: bool = False,
    has_trampoline: bool = True,
) -> None:
    """Check the output of the commands against the stacks that a debugger alone gave while each context ran.

    :param calm: no signal came.
    :param has_trampoline: the code that calls the signal handler can be read.  Core files of QEMU 10 lack it.
    """
    outputs = dict(zip(commands(abi), said))
    assert len(outputs) == len(commands(abi)) <= len(said)
    for context, (innermost, outermost) in CONTEXTS.items():
        named = context.replace("SWITCHED", SWITCHED[abi])
        succeeded, text = outputs[f"sframe bt {named}"]
        if calm and innermost == "trap":
            assert not succeeded, text
            continue
        assert succeeded, f"{context}: {text}"
        expected = left_in(stops, innermost)
        handling = context == "-ucontext handling"
        if handling:
            text = check_handler(text, has_trampoline)
        if has_trampoline or not handling:
            check_stack(abi, context, text, expected, outermost)
        succeeded, explained = outputs[f"sframe explain {named}"]
        assert succeeded, f"{context}: {explained}"
        cfa = expected[1]["sp"] - BY_NAME[abi].sp_from_cfa
        if not handling:
            assert f"CFA = {cfa:#x}" in explained, f"{context}: {explained}"
    succeeded, text = outputs["sframe bt 2 -ucontext fiber"]
    assert [succeeded, *text.splitlines()[2:]] == [True, "end: only the innermost 2 frames were asked for"]
    for command, expected_text in SHORT.items():
        succeeded, text = outputs[command]
        assert succeeded, f"{command}: {text}"
        assert text.splitlines()[-1].startswith(expected_text), f"{command}: {text}"
    for command, expected_text in WRONG.items():
        succeeded, text = outputs[command]
        assert not succeeded, f"{command}: {text}"
        assert expected_text in text, f"{command}: {text}"
        assert len(text.strip().splitlines()) == 1, f"{command}: {text}"


def check_handler(text: str, has_trampoline: bool) -> str:
    """Check the two frames of a signal handler; return the lines of the frames that the signal interrupted."""
    (name, pc), (caller, trampoline), *interrupted = shown(text)
    assert (name, caller) == ("handler", SIGNAL if has_trampoline else "??"), text
    assert trampoline != pc, text
    if has_trampoline:
        assert trampoline != interrupted[0][1], text
    else:
        assert (interrupted, text.splitlines()[-1]) == ([], "end: no unwind data: no module has code there"), text
    return "\n".join(text.splitlines()[2:])


def check_stack(abi: str, context: str, text: str, expected: list[dict[str, Any]], outermost: str) -> None:
    """Check one stack against the frames of a debugger when the context ran."""
    found = shown(text)
    names = [frame["name"] for frame in expected]
    count = names.index(outermost) + 1
    assert [name for name, _ in found[:count]] == names[:count], f"{context}:\n{text}"
    # The stop is in one call of the innermost function, and the context was left in its next call: the pcs differ.
    # Only the instruction that raises a signal is at the same pc; on s390x, the pc of the signal is after it.
    exact = 0 if names[0] == "trap" and abi != "s390x" else 1
    pcs = [frame["pc"] for frame in expected]
    assert [pc for _, pc in found[exact:count]] == pcs[exact:count], f"{context}:\n{text}"
    if outermost == "switched_start":
        assert [len(found), text.splitlines()[-1]] == [count, "end: outermost frame"], text
    else:  # the C library's code that ends a context, which lacks unwind data on some ABIs
        assert [pc for _, pc in found[count:]] in ([], pcs[count : count + 1]), f"{context}:\n{text}"


def left_in(stops: list[list[dict[str, Any]]], function: str) -> list[dict[str, Any]]:
    """Return the frames of the first stop in a function, from the innermost one of the function on."""
    for stop in stops:
        names = [frame["name"] for frame in stop]
        if function in names:
            return stop[names.index(function) :]
    raise AssertionError(f"no stop in {function}")


def shown(text: str) -> list[tuple[str, int]]:
    """Return function and pc of each frame that `sframe bt` prints."""
    rows = re.findall(r"^#\d+ +(0x[0-9a-f]+)  (<signal handler called>|\S+)", text, re.MULTILINE)
    return [(name, int(pc, 16)) for pc, name in rows]
