"""The user's folder of generated sections: files that are read as data, and only if they are complete.

A file begins with the digest of the rest: the key of the section, and the section.
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
"""Changes whenever the same CFI would give another section."""
_DIGEST = hashlib.sha256().digest_size
_MAX_SIZE = 1 << 28
"""Maximum size in bytes; the largest generated section has some millions."""


def folder() -> Path:
    """Return the folder: ``$XDG_CACHE_HOME/sframe-unwind``, by default ``~/.cache/sframe-unwind``."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # XDG Base Directory Specification 0.8: a relative path must be ignored.
    return (base if base.is_absolute() else Path.home() / ".cache") / "sframe-unwind"


def load(build_id: str, made_for: str) -> bytes | None:
    """Return the section of a module; ``None``: there is none, or it is incomplete.

    :param made_for: the input of the section besides the build ID.
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
    """Keep the section of a module, if the folder is writable."""
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
