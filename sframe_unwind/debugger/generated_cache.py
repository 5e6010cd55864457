"""The user's folder of generated sections: files that are read as data, and only if they are whole.

A file begins with the digest of all that follows: what the section was made for, and the section.
"""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path

from sframe_unwind.errors import FileError
from sframe_unwind.replacing import replacing

_FORMAT = "1"
"""Changes whenever other sections would be made of the same CFI."""
_DIGEST = hashlib.sha256().digest_size
_MAX_SIZE = 1 << 28
"""Bytes; the largest section that was made has some millions."""


def folder() -> Path:
    """Return the folder: ``$XDG_CACHE_HOME/sframe-unwind``, by default ``~/.cache/sframe-unwind``."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # XDG Base Directory Specification 0.8: a relative path is to be ignored.
    return (base if base.is_absolute() else Path.home() / ".cache") / "sframe-unwind"


def load(build_id: str, made_for: str) -> bytes | None:
    """Return the section of a module; ``None``: there is none, or not a whole one.

    :param made_for: on what the section depends besides the build ID.
    """
    try:
        descriptor = os.open(_path(build_id), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as stream:  # noqa: PTH123  # it is a descriptor
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid() or status.st_size > _MAX_SIZE:
                return None
            contents = stream.read()
    except (OSError, RuntimeError):  # RuntimeError: there is no home folder
        return None
    digest, rest = contents[:_DIGEST], contents[_DIGEST:]
    head = _head(made_for)
    if hashlib.sha256(rest).digest() != digest or not rest.startswith(head):
        return None
    return rest[len(head) :]


def save(build_id: str, made_for: str, section: bytes) -> None:
    """Keep the section of a module, if the folder can be written to."""
    rest = _head(made_for) + section
    with suppress(OSError, RuntimeError, FileError):
        path = _path(build_id)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replacing(path, 0o600, follow=False) as temporary:
            temporary.write_bytes(hashlib.sha256(rest).digest() + rest)


def _path(build_id: str) -> Path:
    return folder() / f"{build_id}.sframe"


def _head(made_for: str) -> bytes:
    return f"sframe-unwind {_FORMAT} {made_for}\n".encode()
