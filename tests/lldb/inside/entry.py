"""The script that LLDB imports: it calls one function with the test's arguments and writes the result to a file."""

import importlib
import json
import os
import sys
from pathlib import Path


def __lldb_init_module(debugger, _internal_dict):  # type: ignore[no-untyped-def]  # LLDB's name for it
    job = json.loads(Path(os.environ["SFRAME_TEST_JOB"]).read_text(encoding="utf-8"))
    sys.path.insert(0, job["checkout"])  # LLDB's Python may have another checkout's tests in its path
    module = importlib.import_module(job["module"])
    answer = getattr(module, job["function"])(debugger, **job["arguments"])
    Path(job["answer"]).write_text(json.dumps(answer), encoding="utf-8")
