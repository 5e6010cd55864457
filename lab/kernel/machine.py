"""Boots the kernel in QEMU, and runs debuggers with it, always with a time limit."""

from __future__ import annotations

import json
import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.hanging import HANG, hang_after
from tests.ports import free_port
from tests.waiting import wait_until
from tools.debian_kernel import DebianKernel
from tools.kernel import Built, steps

SECONDS = hang_after(40)
"""Default time limit for a machine, in seconds."""
IS_UP = "guest is up"
_ATTEMPTS = 8
_AGAIN = ("failed to get reply to handshake packet", "RegisterContextUnwind::InitializeNonZerothFrame()")
"""What LLDB prints where it has to be started again."""


class Machine(NamedTuple):
    """A running guest."""

    port: int
    """Port of its gdbstub, on this machine."""
    process: subprocess.Popen[bytes]
    built: Built
    control: Path
    """The socket of QEMU's control protocol (QMP)."""


@contextmanager
def booted(
    built: Built,
    folder: Path,
    seconds: float = SECONDS,
    more: str = "",
    *,
    is_moved: bool = False,
    module: Path | None = None,
    ready: str = IS_UP,
) -> Iterator[Machine]:
    """Boot the kernel by the command of docs/kernel.md, and wait for its program.

    :param folder: folder for the files of the machine.
    :param seconds: time limit.
    :param more: options for QEMU.
    :param is_moved: whether the kernel moves itself (KASLR), by a seed that QEMU gives it.
    :param module: the file of a module that its program loads.
    :param ready: what the kernel or its program prints when the machine is ready.
    """
    tree = folder / "linux"
    (tree / "arch/arm64/boot").mkdir(parents=True)
    for name, path in (("vmlinux", built.vmlinux), ("arch/arm64/boot/Image", built.image), ("initrd", built.initrd)):
        (tree / name).symlink_to(path)
    if module is not None:
        (tree / "initrd").unlink()
        (folder / "root").mkdir()
        shutil.copyfile(module, folder / "root/module.ko")
        # The kernel also unpacks appended archives.
        (tree / "initrd").write_bytes(built.initrd.read_bytes() + _packed(folder / "root", folder).read_bytes())
    port = free_port()
    boot = steps().boot.replace("1234 &", f"{port} -device vmcoreinfo {more}")
    command = shlex.split(boot.replace(" nokaslr", "") if is_moved else boot)
    with _running(
        command=command, built=built, folder=folder, console=tree / "console", port=port, seconds=seconds, ready=ready
    ) as machine:
        yield machine


@contextmanager
def booted_debian(debian: DebianKernel, folder: Path, seconds: float = SECONDS, more: str = "") -> Iterator[Machine]:
    """Boot Debian's kernel for AMD64 on two processors with the same program; the parameters are those of `booted`.

    :param more: parameters for the kernel.
    """
    root, port = folder / "root", free_port()
    root.mkdir()
    command = ["gcc", "-static", "-O2", "-w", str(Path(__file__).parent / "guest/init.c"), "-o", str(root / "init")]
    subprocess.run(command, check=True, timeout=HANG)
    shutil.copyfile(debian.vmcoreinfo_module, root / "module.ko")
    built = Built(debian.vmlinux, debian.image, _packed(root, folder), debian.folder)
    command = ["qemu-system-x86_64", "-M", "q35", "-cpu", "max", "-smp", "2", "-m", "512", "-nic", "none"]
    command += ["-display", "none", "-serial", "file:console", "-append", f"console=ttyS0 {more}"]
    command += ["-kernel", str(built.image), "-initrd", str(built.initrd), "-gdb", f"tcp:127.0.0.1:{port}"]
    command += ["-device", "vmcoreinfo"]
    with _running(
        command=command, built=built, folder=folder, console=folder / "console", port=port, seconds=seconds
    ) as machine:
        yield machine


@contextmanager
def booted_s390x(debian: DebianKernel, folder: Path, seconds: float = SECONDS) -> Iterator[Machine]:
    """Boot Debian's kernel for s390x on two processors with the same program; the parameters are those of `booted`."""
    root, port = folder / "root", free_port()
    root.mkdir()
    source = str(Path(__file__).parent / "guest/init.c")
    command = ["s390x-linux-gnu-gcc", "-static", "-O2", "-w", source, "-o", str(root / "init")]
    subprocess.run(command, check=True, timeout=HANG)
    built = Built(debian.vmlinux, debian.image, _packed(root, folder), debian.folder)
    command = ["qemu-system-s390x", "-M", "s390-ccw-virtio", "-cpu", "max", "-smp", "2", "-m", "512", "-nic", "none"]
    command += ["-display", "none", "-serial", "file:console", "-append", "console=ttyS0 nokaslr"]
    command += ["-kernel", str(built.image), "-initrd", str(built.initrd), "-gdb", f"tcp:127.0.0.1:{port}"]
    with _running(
        command=command, built=built, folder=folder, console=folder / "console", port=port, seconds=seconds
    ) as machine:
        yield machine


def _packed(root: Path, folder: Path) -> Path:
    """Return the initial file system of a guest."""
    initrd = folder / "initrd"
    pack = f"find . | cpio --quiet -o -H newc > {shlex.quote(str(initrd))}"
    subprocess.run(["bash", "-c", pack], cwd=root, check=True, timeout=HANG)
    return initrd


@contextmanager
def _running(
    command: Sequence[str], built: Built, folder: Path, console: Path, port: int, seconds: float, ready: str = IS_UP
) -> Iterator[Machine]:
    control = folder / "control"
    command = [*command, "-qmp", f"unix:{control},server=on,wait=off"]
    process = subprocess.Popen(
        ["timeout", str(seconds), *command], cwd=folder, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT
    )
    try:
        wait_until(lambda: console.exists() and ready in console.read_text("utf-8", "replace"), "the guest runs", 120)
        yield Machine(port, process, built, control)
    finally:
        process.terminate()
        process.wait(HANG)


def dump_memory(machine: Machine, path: Path, kind: str = "elf") -> None:
    """Write the memory of a machine to a file; the machine then continues.

    :param kind: the file's format: ``elf``, or one of ``kdump-zlib`` and others that QEMU was built with.
    """
    arguments = {"paging": False, "protocol": f"file:{path}", "format": kind}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(HANG)
        connection.connect(str(machine.control))
        with connection.makefile("rw", encoding="utf-8") as stream:
            stream.readline()  # the greeting
            for request in ({"execute": "qmp_capabilities"}, {"execute": "dump-guest-memory", "arguments": arguments}):
                stream.write(json.dumps(request))
                stream.flush()
                answer = json.loads(stream.readline())
                while "event" in answer:
                    answer = json.loads(stream.readline())
                assert "return" in answer, answer


def run(command: Sequence[str], seconds: float = 110) -> str:
    """Return a debugger's output.

    QEMU does not always answer LLDB's first packet in time; and LLDB 23.1 can crash where the kernel of s390x happens
    to be stopped, also without the plugin.  LLDB is started again then.

    :raises AssertionError: it fails, hangs, or prints a traceback.
    """
    for _ in range(_ATTEMPTS):
        status, said = _run(command, seconds)
        if not any(text in said for text in _AGAIN):
            break
    assert status == 0, f"exit status {status}: {said[-3000:]}"
    assert "Traceback (most recent call last)" not in said, said[-3000:]
    assert "internal error" not in said, said[-3000:]
    return said


def _run(command: Sequence[str], seconds: float) -> tuple[int, str]:
    try:
        done = subprocess.run(
            ["timeout", "--kill-after=5", str(seconds), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    finally:
        time.sleep(0.2)  # QEMU's stub takes a moment to notice that a debugger has gone
    return done.returncode, done.stdout
