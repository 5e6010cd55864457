#!/usr/bin/env python3
"""Downloads Debian packages to survey: the base system, and the packages that most others depend on.

    python3 tools/survey_packages.py [--suite SUITE] [--architecture NAME ...] [--count N] [--largest BYTES]

They are kept in the checkout's `.cache/survey/SUITE-ARCHITECTURE`; apt has verified them. Their paths are printed.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
if str(CHECKOUT) not in sys.path:  # when run as a script
    sys.path.insert(0, str(CHECKOUT))

from tools.debian import FetchError, download  # noqa: E402
from tools.ending import exit_with  # noqa: E402

CACHE = CHECKOUT / ".cache" / "survey"
ARCHITECTURES = ("amd64", "arm64", "s390x")
SUITE = "bookworm"
COUNT = 300
LARGEST = 4 << 20

_BASE = ("required", "important", "standard")
"""Priorities of the base system."""
_WITHOUT_PROGRAMS = re.compile(r"-(dev|doc|dbg|dbgsym|data|common|locales?)$|^(lib.*-perl|python3?-.*|gir1.*)$")
"""Names of packages without ELF files, or with object files."""


def popular(index: Sequence[Mapping[str, str]], count: int, largest: int) -> list[str]:
    """Return the names of the base system's packages, and of those that most other packages depend on.

    :param count: how many there are beside the base system.
    :param largest: bytes of a package; larger ones are left out.
    """
    wanted = Counter(
        name
        for fields in index
        for name in {re.split(r"[ (:|]", one.strip(), maxsplit=1)[0] for one in fields.get("Depends", "").split(",")}
    )
    usable = {
        fields["Package"]: fields
        for fields in index
        if fields.get("Architecture") != "all"
        and not _WITHOUT_PROGRAMS.search(fields["Package"])
        and int(fields.get("Size", 0)) <= largest
    }
    base = sorted(name for name, fields in usable.items() if fields.get("Priority") in _BASE)
    rest = sorted(usable.keys() - set(base), key=lambda name: (-wanted[name], name))
    return [*base, *rest[:count]]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--suite", default=SUITE)
    parser.add_argument("--architecture", action="append", choices=ARCHITECTURES)
    parser.add_argument("--count", type=int, default=COUNT, help="packages beside the base system")
    parser.add_argument("--largest", type=int, default=LARGEST, help="bytes that a package may have")
    options = parser.parse_args()
    choose = partial(popular, count=options.count, largest=options.largest)
    for architecture in options.architecture or ARCHITECTURES:
        folder = CACHE / f"{options.suite}-{architecture}"
        try:
            packages = download(options.suite, architecture, choose, folder)
        except FetchError as error:
            print(f"{architecture}: {error}", file=sys.stderr)
            return 1
        print(*packages, sep="\n")
    return 0


if __name__ == "__main__":
    exit_with(main)
