"""Pages on which tests click and type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.browser import WAITING, render

HELPERS = """
    const text = (name) => byId(name).textContent;
    const lines = () => [...document.querySelectorAll("#listing tbody tr")].map((row) => row.textContent.trim());
    const until = async (ready) => { while (!ready()) await new Promise((done) => setTimeout(done, 5)); };
    const type = (wanted) => { byId("search").value = wanted; byId("search").dispatchEvent(new Event("input")); };
    const names = () => [...document.querySelectorAll("#functions tbody tr")].map((row) => row.cells[0].textContent);
    const key = (name) => document.dispatchEvent(new KeyboardEvent("keydown", { key: name, cancelable: true }));
    const links = () => [...document.querySelectorAll("#functions button.link")];
    const link = (name) => links().find((one) => one.textContent === name);
    const cells = (row) => [...row.cells].map((cell) => cell.textContent);
"""


def acted(path: Path, script: str, *flags: str) -> Any:
    """Run a script of asynchronous steps on a page, and return its result."""
    whole = f"""
        {HELPERS}
        (async () => {{ {script} }})().then(
            (value) => {{ byId("result").textContent = JSON.stringify(value); }},
            (error) => {{ byId("result").textContent = JSON.stringify("error: " + error.stack); }});
        return "";
    """
    return json.loads(render(path, WAITING, *flags, script=whole).by_id("result").text)
