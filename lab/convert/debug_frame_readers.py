"""Finds the unwinders that read the `.debug_frame` that `convert` makes from SFrame.

    python -m lab.convert.debug_frame_readers

prints how many of the 12 frames of a program each unwinder of Debian 12, 13 and unstable shows, for each kind of CFI.
The debuggers are tested in `test_to_debug_frame.py`.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sframe_unwind.convert.to_debug_frame import COPY, Wanted, convert_to_debug_frame
from tests.elf.objects import tools_for
from tests.hanging import HANG
from tests.process.programs import running
from tools import debian
from tools.binutils import ToolchainUnavailable

SECONDS = HANG
FRAMES = 12
"""``innermost``, and eleven times ``down``."""
BUILDS = (".eh_frame and index", ".eh_frame", "none", ".debug_frame from SFrame")
_CACHE = Path(__file__).resolve().parents[2] / ".cache" / "unwinders"
_SOURCES = Path(__file__).parent / "unwinders"
_PACKAGES = ("elfutils", "libunwind8", "libunwind-dev", "linux-perf")
_FLAGS = ("-O2", "-fomit-frame-pointer", "-fcf-protection=none", "-Wa,--gsframe")


class System(NamedTuple):
    """A release of Debian with its unwinders."""

    name: str
    root: Path

    @property
    def loader(self) -> tuple[str, ...]:
        """Return the start of each command: the dynamic linker of the release."""
        libraries = self.root / "usr/lib/x86_64-linux-gnu"
        if self.root == Path("/"):
            return ()
        return (str(libraries / "ld-linux-x86-64.so.2"), "--library-path", f"{libraries}:{libraries / 'elfutils'}")

    def run(self, program: str | Path, *arguments: str | Path) -> str:
        """Return the output of one of its programs; an unwinder that ends early may have any status."""
        command = [*self.loader, str(program), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False).stdout

    def tool(self, name: str) -> Path:
        """Return the path of a program.

        :raises ToolchainUnavailable: it is not installed.
        """
        path = self.root / "usr/bin" / name
        if not path.exists():
            raise ToolchainUnavailable(f"{path} is not there: what it reads stays untested")
        return path

    def compile(self, source: str, output: Path, *flags: str) -> None:
        """Compile a program with its libunwind."""
        places = [f"-L{self.root}/usr/lib/x86_64-linux-gnu", "-Wl,--allow-shlib-undefined"]
        includes = [f"-I{self.root}/usr/include/x86_64-linux-gnu", f"-I{self.root}/usr/include"]
        paths = [] if self.root == Path("/") else [*includes, *places]
        command = ["gcc", str(_SOURCES / source), "-o", str(output), *paths, *flags]
        subprocess.run(command, check=True, timeout=SECONDS)


def system(suite: str) -> System:
    """Return a release of Debian, unpacked; "" is the installed one."""
    if not suite:
        return System("installed", Path("/"))
    if not (_CACHE / suite).exists():
        _CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_CACHE) as name:
            debian.unpack(suite, _PACKAGES, Path(name))
            Path(name, "root").rename(_CACHE / suite)
    return System(suite, _CACHE / suite)


def builds(folder: Path, flags: Sequence[str] = ()) -> list[Path]:
    """Return the program with each kind of CFI, in the order of :data:`BUILDS`; all have SFrame."""
    with_index, with_frames, bare, copy = (folder / f"deep{number}" for number in range(4))
    for output, more in ((with_index, ()), (with_frames, ("-Wl,--no-eh-frame-hdr",))):
        command = ["gcc", *_FLAGS, f"-B{tools_for('amd64', 3)}/", _SOURCES / "deep.c", "-o", output, *flags, *more]
        subprocess.run(list(map(str, command)), check=True, timeout=SECONDS)
    command = ["objcopy", "--remove-section", ".eh_frame", str(with_frames), str(bare)]
    subprocess.run(command, check=True, timeout=SECONDS)
    convert_to_debug_frame(bare, copy, Wanted(COPY))
    return [with_index, with_frames, bare, copy]


def counted(printed: str) -> int:
    """Return how many frames of the program an unwinder has printed."""
    return len(re.findall(r"\b(?:down|innermost)\b", printed))


def attached(program: Path, on: System, unwinder: Path, *options: str) -> int:
    """Return how many frames of a waiting process an unwinder shows."""
    with running(program) as process:
        return counted(on.run(unwinder, *options, str(process)))


def in_perf(on: System, program: Path, folder: Path) -> int:
    """Return how many frames perf shows at most for a sample in the innermost function."""
    data = folder / "perf.data"
    record = ["perf", "record", "-q", "-e", "cpu-clock:u", "-F", "99", "--call-graph", "dwarf,8192", "-o", str(data)]
    subprocess.run([*record, str(program), "spin"], check=False, capture_output=True, timeout=SECONDS)
    printed = on.run(on.tool("perf"), "script", "-i", data, "-F", "ip,sym")
    return max(counted(sample) for sample in printed.split("\n\n") if "innermost" in sample)


def main() -> None:
    """Measure, and print a table."""
    print(f"| unwinder | {' | '.join(BUILDS)} |\n|---|{'--:|' * len(BUILDS)}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "local").mkdir()
        programs = builds(folder)
        for suite in ("", "trixie", "sid"):
            on = system(suite)
            remote, local = folder / f"remote{suite}", builds(folder / "local", ("-DLOCAL", "-lunwind"))
            on.compile("remote.c", remote, "-lunwind-ptrace", "-lunwind-generic", "-lunwind")
            rows = {
                "eu-stack": [attached(one, on, on.tool("eu-stack"), "-p") for one in programs],
                "libunwind, of a process": [attached(one, on, remote) for one in programs],
                "libunwind, in the process": [counted(on.run(one)) for one in local],
                "perf": [in_perf(on, one, folder) for one in programs],
            }
            for what, frames in rows.items():
                print(f"| {on.name}: {what} | {' | '.join(map(str, frames))} |", flush=True)


if __name__ == "__main__":
    main()
