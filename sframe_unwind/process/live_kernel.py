"""Checks whether the memory of the running kernel, ``/proc/kcore``, can be read, and names a remedy if not."""

from __future__ import annotations

import os
from errno import EPERM
from pathlib import Path

from sframe_unwind.errors import FileError

KCORE = "/proc/kcore"
_ABSENT = "the running kernel was built without CONFIG_PROC_KCORE, or /proc is not mounted; a crash dump can be read"
_HIDDEN = "hidden, as containers do: run the command on the host"
_NOT_ROOT = "only root may read the memory of the running kernel"
_REFUSED = (
    "the kernel refuses to show its memory: that needs CAP_SYS_RAWIO, which containers do not have, and no lockdown"
    " (/sys/kernel/security/lockdown; Secure Boot turns it on); a crash dump can be read"
)


def check_readable(path: str = KCORE) -> None:
    """Check that the memory of the running kernel can be read.

    :param path: of the file.
    :raises FileError: it cannot be read; the message says why and what to do.
    """
    try:
        with Path(path).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
    except FileNotFoundError as error:
        raise FileError(f"{path}: not there: {_ABSENT}") from error
    except PermissionError as error:
        # The mode of the file is 0400.  If the kernel refuses to open it for root, the error is EPERM.
        raise FileError(f"{path}: {_REFUSED if error.errno == EPERM else _NOT_ROOT}") from error
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from error
    if not size:  # a container puts /dev/null there
        raise FileError(f"{path}: {_HIDDEN}")
