"""Runs the same target under atheris, which keeps inputs that reach new code.

    python -m lab.fuzz.guided [-max_total_time=600] [libFuzzer's other options]

The corpus is in `.cache/fuzz/corpus` and begins with the seeds.  atheris is not a dependency of the tests: install it
into the environment first (`pip install atheris`).
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["sframe_unwind"]):
    from lab.fuzz import target
    from lab.fuzz.seeds import Seed, seeds

CORPUS = Path(__file__).resolve().parents[2] / ".cache" / "fuzz" / "corpus"
ADDRESS = 0x40_0000
"""Address of every section; an input consists only of the section."""


def try_one(data: bytes) -> None:
    """Try one input."""
    target.exercise(Seed("guided", data, ADDRESS), Counter())


def main() -> None:
    """Run the fuzzer; it does not return."""
    CORPUS.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds()):
        (CORPUS / f"seed-{number}").write_bytes(seed.data)
    options = ["-max_len=4096", "-timeout=5", "-rss_limit_mb=1024", f"-artifact_prefix={CORPUS.parent}/", *sys.argv[1:]]
    atheris.Setup([sys.argv[0], *options, str(CORPUS)], try_one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
