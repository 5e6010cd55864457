"""What workers of a cluster do with files in tests: some files do them harm."""

from __future__ import annotations

import time

from sframe_unwind.survey.rows import NOTHING, FileRow, Surveyed, SurveyPlan

PAUSE = 0.2
GREEDY = b"memory"
"""How a file ends that takes all memory."""


def work(data: bytes, _: SurveyPlan) -> Surveyed:
    """Take a while, or all the memory that there is."""
    if data.endswith(GREEDY):
        taken = []
        while True:
            taken.append(b"x" * (1 << 24))
            time.sleep(0.01)
    time.sleep(PAUSE)
    return Surveyed(FileRow(NOTHING, bytes=len(data)))
