"""The lines of docs/editors.md load the plugin in the debuggers that editors start, and its commands work there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pygdbmi import gdbmiparser

from tests.abis.debuggers import newest
from tests.clients.dap import Client
from tests.clients.homes import gdb_environment, lldb_environment
from tests.clients.process import Process
from tests.debugger import listing
from tests.gdb.conftest import debugger as debugger
from tests.gdb.driver import Debugger
from tests.missing import absent
from tests.samples.build import build
from tools.debian import FetchError
from tools.lldb_dap import provide

CHECKOUT = Path(__file__).resolve().parents[2]
PROMPT = b"(gdb) \n"


def configuration(kind: str) -> dict[str, Any]:
    """Return the launch configuration of the page for a type of VS Code, with the paths of this checkout."""
    page = (CHECKOUT / "docs" / "editors.md").read_text(encoding="utf-8")
    blocks = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL)]
    (found,) = (block for block in blocks if block["type"] == kind)
    text = json.dumps(found).replace("/path/to", str(CHECKOUT)).replace("${workspaceFolder}", str(build("plt").parent))
    result: dict[str, Any] = json.loads(text.replace('/program"', '/plt"'))
    return result


def in_console(client: Client, command: str) -> str:
    """Return what a command prints in the debug console of a stopped program, in its second frame."""
    stopped = client.event("stopped")["body"]
    frames = client.ask("stackTrace", threadId=stopped["threadId"])["stackFrames"]
    assert [frame["name"].partition("(")[0] for frame in frames[:2]] == ["sample_stop", "called_back"]
    client.ask("scopes", frameId=frames[1]["id"])  # an editor asks for them when the user selects a frame
    answer = client.ask("evaluate", expression=command, context="repl", frameId=frames[1]["id"])
    return str(answer["result"])


def test_lldb_dap_by_the_lines_of_the_page(tmp_path: Path) -> None:
    try:
        adapter = provide()
    except FetchError as error:
        absent(f"{error}: lldb-dap stays untested")
    launch = configuration("lldb-dap")
    environment = {**lldb_environment(tmp_path / "home", plugin=False), **adapter.environment}
    with Process(adapter.command, environment, tmp_path) as process:
        client = Client(process)
        client.ask("initialize", adapterID="lldb-dap", clientID="vscode", linesStartAt1=True)
        client.launch(launch["program"], initCommands=launch["initCommands"])
        client.ask("setFunctionBreakpoints", breakpoints=[{"name": "sample_stop"}])
        client.ask("configurationDone")
        shown = listing.read(in_console(client, "`sframe disassemble"))
        client.send("disconnect", terminateDebuggee=True)
    assert shown.function == "called_back"
    assert len(shown.arrows) == 1
    assert shown.cfa is not None


def test_cpptools_by_the_lines_of_the_page(debugger: Debugger, tmp_path: Path) -> None:
    """cpptools sends the set-up commands to GDB's MI as they are, and `-exec` as a command of the console."""
    launch = configuration("cppdbg")
    environment = gdb_environment(tmp_path / "home", plugin=False)
    with Process([debugger.path, "-q", "--interpreter=mi"], environment, tmp_path) as gdb:
        _answer(gdb)
        started = ["-break-insert sample_stop", "-exec-arguments > output.txt", "-exec-run"]
        commands = [setup["text"] for setup in launch["setupCommands"]]
        for command in (*commands, f'-file-exec-and-symbols "{launch["program"]}"', *started):
            gdb.send(f"{command}\n".encode())
            answer = _answer(gdb)
            while not any(record["message"] in ("done", "error", "stopped") for record in answer):
                answer += _answer(gdb)
            assert not any(record["message"] == "error" for record in answer), answer
        gdb.send(b'-interpreter-exec --thread 1 --frame 1 console "sframe disassemble"\n')
        text = "".join(record["payload"] for record in _answer(gdb) if record["type"] == "console")
    shown = listing.read(text)
    assert shown.function == "called_back"
    assert len(shown.arrows) == 1


def _answer(gdb: Process) -> list[dict[str, Any]]:
    def take(unread: bytes) -> tuple[bytes, bytes] | None:
        before, mark, rest = unread.partition(PROMPT)
        return (before, rest) if mark else None

    return [gdbmiparser.parse_response(line) for line in gdb.read(take).decode().splitlines()]


def test_gdbs_adapter_with_the_init_file(tmp_path: Path) -> None:
    """`gdb -i dap` of dape, nvim-dap, Zed and Helix reads `~/.gdbinit`, and its console takes the commands."""
    gdb = newest("amd64")
    environment = gdb_environment(tmp_path / "home", plugin=True)
    with Process([gdb.path, "-q", "-i", "dap"], environment, tmp_path) as process:
        client = Client(process)
        client.ask("initialize", adapterID="gdb", clientID="dape")
        client.launch(str(build("plt")))
        client.ask("setFunctionBreakpoints", breakpoints=[{"name": "sample_stop"}])
        client.ask("configurationDone")
        shown = listing.read(in_console(client, "sframe disassemble"))
        client.send("disconnect", terminateDebuggee=True)
    assert shown.function == "called_back"
    assert len(shown.arrows) == 1
