"""The Debug Adapter Protocol of editors: GDB 18's own adapter, and lldb-dap."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lab.drive.building import built
from lab.drive.programs import named
from tests.abis.debuggers import debugger
from tests.clients.dap import Client
from tests.clients.homes import gdb_environment, lldb_environment
from tests.clients.process import Process
from tests.gdb.compiling import compiled
from tests.lldb.beside_programs import program as beside
from tests.missing import absent
from tools.debian import FetchError
from tools.lldb_dap import provide

SESSIONS = (("calls-O2", "growing"), ("calls-O0", "sorted"), ("objects-O2", "check"))
"""A program, and the function in which it stops."""
STEPS = ("next", "stepIn", "stepOut", "next", "next", "stepIn")
DEEP = 4
"""Number of frames whose variables and registers are requested."""

REGISTERS = ("rip", "rsp", "rbx", "rbp", "r12", "r13", "r14", "r15")


def look(client: Client, thread: int) -> list[Any]:
    """Request what an editor requests at each stop: threads, frames, and their contents."""
    shown: list[Any] = [client.ask("threads")]
    frames = client.ask("stackTrace", threadId=thread)["stackFrames"]
    shown += frames
    for frame in frames[:DEEP]:
        for scope in client.ask("scopes", frameId=frame["id"])["scopes"]:
            # If a variable is optimized out, GDB's adapter may return only an error for all of them.
            response = client.respond("variables", variablesReference=scope["variablesReference"])
            variables = response["body"]["variables"] if response["success"] else [response["message"]]
            if scope["name"] == "Globals":  # LLDB indexes them in several threads, and their order varies
                variables = sorted(variables, key=lambda each: masked(json.dumps(each, sort_keys=True)))
            registers = scope["name"] == "Registers"
            shown += [scope["name"], *(each for each in variables if not registers or each["name"] in REGISTERS)]
    return shown


def session(process: Process, executable: Path, function: str, arguments: Sequence[str] = ()) -> list[str]:
    """Return an editor's session: everything that it shows, and then all events, errors and output that it received."""
    client = Client(process)
    client.ask("initialize", adapterID="test", clientID="test", linesStartAt1=True, columnsStartAt1=True)
    client.launch(str(executable), args=list(arguments))
    client.ask("setFunctionBreakpoints", breakpoints=[{"name": function}])
    client.ask("configurationDone")
    stopped = client.event("stopped")["body"]
    shown: list[Any] = [stopped, *look(client, stopped["threadId"])]
    for step in STEPS:
        client.ask(step, threadId=stopped["threadId"])
        event = client.event("stopped", "terminated")
        shown.append(event["body"])
        if event["event"] == "terminated":
            break
        shown += look(client, stopped["threadId"])
    told = [
        message
        for message in client.messages
        if message.get("event") in ("thread", "breakpoint", "continued", "exited", "terminated")
        or message.get("success") is False
    ]
    client.send("disconnect", terminateDebuggee=True)
    # Other threads of the adapter send events, so only their contents can be compared.
    told += [{category: text} for category, text in client.output().items()]
    texts = [[masked(json.dumps(entry, sort_keys=True)) for entry in entries] for entries in (shown, told)]
    return [*texts[0], *sorted(texts[1])]


def masked(line: str) -> str:
    """Return a message without the numbers that count messages and processes."""
    line = re.sub(r'"(seq|request_seq|systemProcessId|threadId)": \d+', r'"\1": N', line)
    line = re.sub(r'"(declarationLocationReference|variablesReference)": [1-9]\d*', r'"\1": N', line)
    line = re.sub(r'\{"id": \d+, "name"', '{"id": N, "name"', line)  # a thread
    return re.sub(r"\b(LWP|process) \d+", r"\1 N", line)


@pytest.mark.parametrize(("build", "function"), SESSIONS)
@pytest.mark.usefixtures("fixed_addresses")
def test_gdbs_adapter_shows_what_it_shows_without_the_plugin(build: str, function: str, tmp_path: Path) -> None:
    gdb = debugger("pypi", "amd64")
    shown = []
    for folder, plugin in (("without", False), ("plugin_", True)):
        (tmp_path / folder).mkdir()
        environment = gdb_environment(tmp_path / folder / "home", plugin)
        with Process([gdb.path, "-q", "-i", "dap"], environment, tmp_path / folder) as process:
            shown.append(session(process, built(named(build)), function))
            assert process.errors() == ""
    assert len(shown[0]) > 100
    assert shown[1] == shown[0]


@pytest.mark.parametrize(("build", "function"), SESSIONS)
@pytest.mark.usefixtures("fixed_addresses")
def test_lldbs_adapter_shows_what_it_shows_without_the_plugin(build: str, function: str, tmp_path: Path) -> None:
    try:
        adapter = provide()
    except FetchError as error:
        absent(f"{error}: lldb-dap stays untested")
    shown = []
    for folder, plugin in (("without", False), ("plugin_", True)):
        (tmp_path / folder).mkdir()
        environment = {**lldb_environment(tmp_path / folder / "home", plugin), **adapter.environment}
        with Process(adapter.command, environment, tmp_path / folder) as process:
            shown.append(session(process, built(named(build)), function))
            assert process.errors() == ""
    assert len(shown[0]) > 100
    assert shown[1] == shown[0]


@pytest.mark.parametrize("settings", [(), ("set sframe strict on",)], ids=["without", "strict"])
def test_item_34_gdbs_adapter_fails_where_the_bound_of_an_array_is_lost(
    settings: Sequence[str], tmp_path: Path
) -> None:
    """This also holds without the plugin if CFI marks a register as lost."""
    gdb = debugger("pypi", "amd64")
    executable = compiled("lost_bound.c", tmp_path, "-O2")
    environment = gdb_environment(tmp_path / "home", bool(settings), settings)
    with Process([gdb.path, "-q", "-i", "dap"], environment, tmp_path) as process:
        client = Client(process)
        client.ask("initialize", adapterID="test", clientID="test")
        client.launch(str(executable))
        client.ask("setFunctionBreakpoints", breakpoints=[{"name": "lose"}])
        client.ask("configurationDone")
        stopped = client.event("stopped")["body"]
        frames = client.ask("stackTrace", threadId=stopped["threadId"])["stackFrames"]
        scopes = client.ask("scopes", frameId=frames[1]["id"])["scopes"]
        (scope,) = (scope for scope in scopes if scope["name"] == "Locals")
        response = client.respond("variables", variablesReference=scope["variablesReference"])
    assert frames[1]["name"] == "sum"
    assert (response["success"], response.get("message")) == (False, "value has been optimized out")


WATCHES = ("1 + 2", "start", "this->start", "local", "no_such_thing", "this", "*this")
"""Expressions that an editor evaluates in a method: the object's members, a local, and missing names."""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_lldbs_adapter_evaluates_in_frames_of_methods_that_only_sframe_has(level: str, tmp_path: Path) -> None:
    try:
        adapter = provide()
    except FetchError as error:
        absent(f"{error}: lldb-dap stays untested")
    environment = {**lldb_environment(tmp_path / "home", True), **adapter.environment}
    executable = Path(beside(level)["executable"])
    with Process(adapter.command, environment, tmp_path) as process:
        client = Client(process)
        client.ask("initialize", adapterID="test", clientID="test", linesStartAt1=True, columnsStartAt1=True)
        client.launch(str(executable), args=[], initCommands=["sframe strict on"])
        client.ask("setFunctionBreakpoints", breakpoints=[{"name": "leaf"}])
        client.ask("configurationDone")
        thread = client.event("stopped")["body"]["threadId"]
        frames = client.ask("stackTrace", threadId=thread)["stackFrames"]
        assert "method" in frames[2]["name"]
        values = {}
        for frame in frames[1:4]:
            for scope in client.ask("scopes", frameId=frame["id"])["scopes"]:
                reference = scope["variablesReference"]
                client.respond("variables", variablesReference=reference)
                client.respond("setVariable", variablesReference=reference, name="local", value="5")
            for context in ("watch", "hover", "repl", "variables"):
                for text in WATCHES:
                    response = client.respond("evaluate", expression=text, frameId=frame["id"], context=context)
                    values[frame["id"], context, text] = response.get("body", {}).get("result")
        assert values[frames[2]["id"], "watch", "1 + 2"] == "3"
        if level == "-O0":
            assert values[frames[2]["id"], "watch", "start"] == "7"
            assert values[frames[2]["id"], "watch", "this->start"] == "7"
        assert process.errors() == ""
        client.send("disconnect", terminateDebuggee=True)
