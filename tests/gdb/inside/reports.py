"""Collects the messages of the plugin while backtraces are shown."""

from __future__ import annotations

from typing import Any

from tests.gdb.inside.program import execute, stopped


def collect(programs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return, for each program, all output while it shows its stack several times, and the backtraces by mode."""
    answers = []
    for program in programs:
        with stopped(program):
            output = [execute("set sframe mode always"), execute(f"break {program['place']}"), execute("run")]
            shown: dict[str, list[str]] = {mode: [] for mode in ("always", "fallback", "off")}
            for mode, texts in shown.items():
                output.append(execute(f"set sframe mode {mode}"))
                for _ in range(2):
                    texts.append(execute("bt"))
            execute("set sframe mode always")
            output += [execute("up"), execute("bt"), execute("stepi"), execute("bt")]
            commands = [execute(f"sframe {name}") for name in ("status", "bt", "compare", "explain")]
            answers.append({"output": output + shown["always"] + shown["fallback"], "shown": shown, "sframe": commands})
    return answers
