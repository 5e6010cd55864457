"""The script that GDB sources: it calls one function with the test's arguments and writes the result to a file."""

import importlib
import json
import os
import sys
from pathlib import Path

_JOB = json.loads(Path(os.environ["SFRAME_TEST_JOB"]).read_text(encoding="utf-8"))
if _JOB["checkout"] not in sys.path:
    sys.path.append(_JOB["checkout"])
_MODULE = importlib.import_module(_JOB["module"])
_ANSWER = getattr(_MODULE, _JOB["function"])(**_JOB["arguments"])
Path(_JOB["answer"]).write_text(json.dumps(_ANSWER), encoding="utf-8")
