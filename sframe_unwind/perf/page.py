"""The page of ``sframe-unwind perf``: tables, and flame graphs of the methods and of their differences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sframe_unwind.perf.call_tree import CallTree
from sframe_unwind.perf.judging import Verdict
from sframe_unwind.perf.methods import TITLES
from sframe_unwind.perf.summary import Summary
from sframe_unwind.perf.text import sentence
from sframe_unwind.report.page import filled, page_of_functions
from sframe_unwind.report.terminal import printable

TEMPLATE = Path(__file__).with_name("page.html")


def page(
    summary: Summary, tree: CallTree, advice: Sequence[str], recording: str, version: str, folder: Path | None = None
) -> str:
    """Return the HTML page.

    :param tree: the stacks by the methods of ``summary``.
    :param advice: sentences about how more stacks can become complete.
    :param recording: the path of the recording.
    :param version: version of this project.
    :param folder: the folder of the page, which has links to the pages of ``show`` there; ``None``: it has no links.
    """
    modules = {one.name.module for one in summary.blockers()} if folder is not None else set()
    shown = {printable(path): found for path in modules if folder and (found := page_of_functions(path, folder))}
    nodes = tree.to_json()
    nodes["texts"] = [printable(text) for text in nodes["texts"]]
    data = {
        "recording": printable(recording),
        "sentence": printable(sentence(summary)),
        "advice": [printable(line) for line in advice],
        "samples": summary.samples,
        "user_samples": summary.user_samples,
        "methods": [{"name": name, "title": TITLES[name]} for name in summary.methods],
        "verdicts": [verdict.value for verdict in Verdict],
        "counts": [[summary.count(name, verdict) for verdict in Verdict] for name in summary.methods],
        "frames": [summary.frames(name) for name in summary.methods],
        "frames_by_cfi": summary.frames_by_cfi,
        "blockers": [
            [one.samples, one.method, printable(one.name.function), printable(one.name.module), one.explanation]
            for one in summary.blockers()
        ],
        "show": shown,
        "threads": [[one.samples, one.pid, one.tid, printable(one.name), *one.complete] for one in summary.threads()],
        "tree": nodes,
    }
    return filled(TEMPLATE, data, version)
