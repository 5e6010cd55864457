"""Runs the tools of set-up, and prints what it does."""

from __future__ import annotations

import subprocess


def say(line: str) -> None:
    """Print a line of set-up."""
    print(f"set-up: {line}", flush=True)


def run(command: list[str], seconds: float = 60) -> subprocess.CompletedProcess[str]:
    """Run a tool and capture its output. A tool that is missing or exceeds the time limit counts as failed."""
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, f"no answer within {seconds:.0f} s")
    except OSError as error:
        return subprocess.CompletedProcess(command, 127, str(error))


def tail(output: str, lines: int = 8) -> str:
    """Return the end of a tool's output, without the notices that pip prints after the cause."""
    remarks = ("note:", "hint:", "\N{MULTIPLICATION SIGN}", "╰─>", "│", "[end of output]")
    told = [line.strip() for line in output.splitlines() if line.strip() and not line.strip().startswith(remarks)]
    # Without a network pip tells the cause five times per package, before the package that it then does not find.
    retries = [line for line in told if line.startswith("WARNING: Retrying ")]
    told = [line for line in told if line not in retries[1:]]
    return "\n".join("    " + line for line in told[-lines:])
