"""The work that workers of a cluster do in tests: some files do them harm."""

from __future__ import annotations

import time

from sframe_unwind.survey.rows import NOTHING, FileRow, Surveyed, SurveyPlan

PAUSE = 0.2
GREEDY = b"memory"
"""The end of a file that makes its worker take all memory."""


def work(data: bytes, _: SurveyPlan) -> Surveyed:
    """Take a while; for a greedy file, take memory until this process is ended."""
    if data.endswith(GREEDY):
        taken = []
        while True:
            taken.append(b"x" * (1 << 24))
            time.sleep(0.01)
    time.sleep(PAUSE)
    return Surveyed(FileRow(NOTHING, bytes=len(data)))
