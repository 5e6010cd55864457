"""Stop-hooks of the user, beside which the plugin needs hooks of its own."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.hanging import HANG
from tests.lldb.driver import IMPORT, batch
from tests.lldb.hearing import telling
from tests.missing import toolchain_needed
from tests.samples.build import build, toolchain
from tests.waiting import wait_until_it_worked

LIST = "target stop-hook list"
STAYS = "target stop-hook add -o \"script print('mine')\""
CONTINUES = "target stop-hook add -G true -o \"script print('mine')\""
IN_PYTHON = """
class Continues:
    def __init__(self, target, extra_args, internal_dict):
        pass
    def handle_stop(self, exe_ctx, stream):
        stream.Print("mine\\n")
        return False
"""
RUNNING = """
#include <unistd.h>
static volatile int sum;
__attribute__((noinline)) int run(int number) { while (sum + number) sum = sum % 1000 + 1; return sum; }
int main(void) { alarm(100); return run(1); }
"""

LOADING = """
#include <dlfcn.h>
#include <unistd.h>
__attribute__((noinline)) void loaded(void) { __asm__ volatile(""); }
int main(int argc, char **argv)
{
    void *library = dlopen("./library.so", RTLD_NOW);
    while (access(argv[1], F_OK))
        usleep(1000);
    loaded();
    return library == 0;
}
"""
LIBRARY = "int twice(int number) { return number + number; }"


def states(said: str) -> list[list[str]]:
    """The states of the hooks in each list."""
    return [re.findall(r"State: (\w+)", part.partition("(lldb)")[0]) for part in said.split(f"(lldb) {LIST}\n")[1:]]


def shown(lldb: str, plugin: bool, *commands: str) -> str:
    """What is shown from the start of a program on, which stops in `main` and then in `sample_stop`."""
    start = ("breakpoint set -n main", "process launch -o /dev/null")
    then = ("breakpoint delete -f", "breakpoint set -n sample_stop")
    load = ("-O", IMPORT) if plugin else ()
    lines = [part for command in (*start, *then, *commands) for part in ("-o", command)]
    said = batch(lldb, *load, *lines, str(build("leaf"))).partition("(lldb) process launch")[2]
    return re.sub(r"\b[Pp]rocess \d+|Stop hook #\d+|tid = \d+", "N", said)


@pytest.mark.parametrize("hook", [STAYS, CONTINUES], ids=["stays", "continues"])
@pytest.mark.usefixtures("fixed_addresses")
def test_a_hook_of_the_users_does_what_it_does_without_the_plugin(lldb: str, hook: str) -> None:
    commands = (hook, "continue")
    expected = shown(lldb, False, *commands)
    assert "\nmine\n" in expected
    assert ("exited with status = 0" in expected) == (hook == CONTINUES)
    assert shown(lldb, True, *commands) == expected


@pytest.mark.usefixtures("fixed_addresses")
def test_a_hook_in_python_continues(lldb: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(IN_PYTHON, encoding="utf-8")
    add = "target stop-hook add -P mine.Continues"
    commands = (f'command script import "{tmp_path}/mine.py"', add, "continue")
    expected = shown(lldb, False, *commands)
    assert "exited with status = 0" in expected
    assert shown(lldb, True, *commands) == expected


def test_a_library_with_a_relative_path_whose_rows_are_those_of_its_cfi_needs_no_hook(
    lldb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LLDB gives the path as the program did, and opens it itself from the folder in which it runs."""
    monkeypatch.chdir(tmp_path)
    with toolchain_needed():
        flags = ("-O1", "-Wa,--gsframe", "-fno-use-linker-plugin", f"-B{toolchain('amd64', 3)}/")
    for made, text, more in (("loading", LOADING, ()), ("library.so", LIBRARY, ("-shared", "-fPIC"))):
        Path("source.c").write_text(text, encoding="utf-8")
        subprocess.run(["gcc", *flags, *more, "-Wl,--build-id", "source.c", "-o", made], check=True, timeout=HANG)
    heard = tmp_path / "heard"
    lines = [IMPORT, telling("library.so", heard), "target create loading", "breakpoint set -n main"]
    lines += [f"process launch -o /dev/null -- {heard}"]
    lines += ["breakpoint set -n loaded", CONTINUES, "continue", "target modules list -b"]
    said = batch(lldb, *(part for line in lines for part in ("-o", line)))
    continued = said.partition("(lldb) continue")[2]
    assert "] library.so\n" in continued
    assert "\nmine\n" in continued
    assert "- Hook" not in continued
    assert "exited with status = 0" in continued


def test_the_plugins_hook_is_active_while_sframe_changes_stacks(lldb: str) -> None:
    start = ("breakpoint set -n sample_stop", "process launch -o /dev/null")
    commands = [*start, LIST, "sframe strict on", "thread step-inst", LIST]
    commands += ["sframe strict off", "thread step-inst", LIST]
    said = batch(lldb, "-O", IMPORT, *(part for command in commands for part in ("-o", command)), str(build("leaf")))
    assert states(said) == [[], ["enabled"], ["disabled"]]


def test_no_header_at_the_first_stop_of_a_second_target(lldb: str) -> None:
    start = ("breakpoint set -n sample_stop", "process launch -o /dev/null", LIST)
    commands = [*start, f'target create "{build("leaf")}"', LIST, *start]
    arguments = [part for command in commands for part in ("-o", command)]
    said = batch(lldb, "-O", IMPORT, *arguments, str(build("sframe_only_stripped")))
    assert states(said) == [["enabled"], [], []]
    assert said.count("stop reason = breakpoint") == 2
    assert "- Hook" not in said


def test_attached_without_a_target(lldb: str, tmp_path: Path) -> None:
    """The program has the rows of its CFI, so the plugin needs no hook."""
    (tmp_path / "running.c").write_text(RUNNING, encoding="utf-8")
    running = tmp_path / "running"
    with toolchain_needed():
        flags = ("-O1", "-Wa,--gsframe", f"-B{toolchain('amd64', 3)}/")
    subprocess.run(["gcc", *flags, tmp_path / "running.c", "-o", running], check=True, timeout=HANG)
    process = subprocess.Popen([running], stdout=subprocess.DEVNULL)
    wait_until_it_worked(process.pid, 0.05)
    try:
        commands = (STAYS, f"process attach -p {process.pid}", LIST, "thread step-inst", LIST)
        options = [part for command in commands for part in ("-o", command)]
        said = batch(lldb, "-O", IMPORT, *options, MALLOC_PERTURB_="165")
        attached, _, later = said.partition(f"(lldb) {LIST}")
        assert states(said) == [["enabled"], ["enabled"]]  # that of the user
        assert attached.count("\nmine\n") == later.count("\nmine\n") == 1
        assert "- Hook" not in later
    finally:
        process.kill()
        process.wait()
