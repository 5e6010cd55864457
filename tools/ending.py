"""How the scripts of this repository end."""

from __future__ import annotations

import sys
from typing import Callable, NoReturn

INTERRUPTED = 130
"""Exit status of a script that SIGINT has ended: 128 plus the number of the signal, as shells give it."""


def exit_with(main: Callable[[], int]) -> NoReturn:
    """Exit with the status that `main` returns; after an interrupt with :data:`INTERRUPTED`, without a traceback."""
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
