"""Fetches binary and source packages of any Debian release into a folder, without installing them.

apt fetches the packages and verifies them: the signature of the release, the index, and every package. It uses
separate folders, so that the system's sources, lists and packages are not changed.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

TIMEOUT = 600
"""Time limit for one run of apt or dpkg-deb, in seconds."""

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
"""File of the package debian-archive-keyring with the keys of all supported releases."""

CHECKING_SIGNATURES = ("sqv", "gpgv")
"""The programs with which apt checks the signature of a release: it chooses one that is installed."""

CONFIGURATION = """\
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Dir::Etc "{base}/etc";
Dir::Etc::netrc "/etc/apt/auth.conf";
Dir::Etc::netrcparts "/etc/apt/auth.conf.d";
Dir::State "{base}/state";
Dir::State::status "{base}/state/status";
Dir::Cache "{base}/cache";
APT::Architecture "{architecture}";
APT::Architectures {{ "{architecture}"; }};
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
APT::Install-Recommends "false";
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::http::Timeout "30";
"""
"""Configuration of apt: private folders, no hooks of the system, failed downloads are errors, minimal indexes."""


Choice = Callable[[Sequence[Mapping[str, str]]], Sequence[str]]
"""Chooses names from the entries of an index of packages; an entry has the fields of its package by name."""

_AT_ONCE = 50
"""Number of packages that one run of apt downloads: more could take longer than :data:`TIMEOUT`."""


class FetchError(Exception):
    """The packages are not available; the message is one line with the reason."""


@dataclass(frozen=True)
class Mirror:
    """The Debian mirror of this machine, and its trusted keys."""

    uri: str
    keyring: Path


def system_mirror() -> Mirror:
    """Return the Debian mirror that the apt of this machine uses.

    Raises FetchError if there is none: no apt, another distribution, another architecture, no keys.
    """
    if platform.machine() != "x86_64":
        raise FetchError(f"the packages are for x86_64, and this machine is {platform.machine()}")
    for commands in (("apt-get",), ("dpkg-deb",), CHECKING_SIGNATURES):
        if not any(map(shutil.which, commands)):
            raise FetchError(f"{' or '.join(commands)} is not installed")
    if not KEYRING.exists():
        raise FetchError(f"{KEYRING} does not exist (package debian-archive-keyring)")
    uris = _run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Origin: Debian", "Label: Debian"])
    if not uris.split():
        raise FetchError("apt has no Debian mirror, or has not fetched its index yet (apt-get update)")
    return Mirror(uris.split()[0], KEYRING)


def unpack(suite: str, packages: Sequence[str], folder: Path) -> None:
    """Fetch `packages` of the release `suite` with their dependencies, and unpack them into `folder`/root.

    `folder` must exist and have no `root` yet; the downloads are removed from it at the end.
    Raises FetchError if a package is not available or fails verification.
    """
    base = folder / "apt"
    apt = _private_apt("deb", suite, base)
    _run([*apt, "install", "--download-only", *packages])
    for package in sorted((base / "cache/archives").glob("*.deb")):
        _run(["dpkg-deb", "--extract", str(package), str(folder / "root")])
    shutil.rmtree(base)


def download(suite: str, architecture: str, choose: Choice, folder: Path) -> list[Path]:
    """Fetch packages of the release `suite` for an architecture into `folder`; return their paths, sorted by name.

    A package that is already complete in the folder is not fetched again.
    Raises FetchError if a package is not available or fails verification.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        apt = _private_apt("deb", suite, Path(temporary), architecture)
        index = list(_entries(_run(["apt-cache", *apt[1:3], "dumpavail"])))
        names = list(choose(index))
        for first in range(0, len(names), _AT_ONCE):
            _run([*apt, "download", *names[first : first + _AT_ONCE]], folder)
    chosen = set(names)
    return sorted(path for path in folder.glob("*.deb") if path.name.partition("_")[0] in chosen)


def _entries(index: str) -> Iterator[dict[str, str]]:
    """Yield the fields of each package in an index, without the continuation lines."""
    for entry in index.split("\n\n"):
        lines = (line.partition(": ") for line in entry.splitlines() if not line.startswith(" "))
        if fields := {name: value for name, _, value in lines}:
            yield fields


def fetch_sources(suite: str, packages: Sequence[str], folder: Path) -> None:
    """Fetch the files of source packages of the release `suite` into `folder`, which must exist.

    Raises FetchError if a package is not available or fails verification.
    """
    base = folder / "apt"
    apt = _private_apt("deb-src", suite, base)
    _run([*apt, "source", "--download-only", *packages], folder)
    shutil.rmtree(base)


def fetch_archives(suite: str, package: str, folder: Path) -> list[Path]:
    """Fetch the archives of a source package, without its description, into `folder`, which must exist.

    `package` may name a version, as in `binutils=2.46-3`.

    Mirrors can lack the description of a package that has just been replaced. The archives are verified by the index.
    Raises FetchError if the package is not available or fails verification.
    """
    base = folder / "apt"
    apt = _private_apt("deb-src", suite, base)
    _run([*apt, "source", "--download-only", "--tar-only", package], folder)
    shutil.rmtree(base)
    return sorted(folder.glob(f"{package.partition('=')[0]}_*"))


def _private_apt(kind: str, suite: str, base: Path, architecture: str = "amd64") -> list[str]:
    """Return the start of a command line for an apt with its folders in `base` and one release."""
    mirror = system_mirror()
    for part in ("etc/preferences.d", "etc/sources.list.d", "state/lists/partial", "cache/archives/partial"):
        (base / part).mkdir(parents=True)
    # With nothing installed, apt resolves every dependency down to the C library.
    (base / "state/status").touch()
    (base / "etc/sources.list").write_text(f"{kind} [signed-by={mirror.keyring}] {mirror.uri} {suite} main\n")
    configuration = base / "apt.conf"
    configuration.write_text(CONFIGURATION.format(base=base, architecture=architecture))
    apt = ["apt-get", "-c", str(configuration), "-qq", "--yes"]
    _run([*apt, "update"])
    return apt


def _run(command: Sequence[str], folder: Path | None = None) -> str:
    """Run a command; return its standard output. Raises FetchError with its first error line if it fails."""
    environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, env=environment, cwd=folder)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FetchError(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.startswith("E:")] or done.stderr.splitlines()
        raise FetchError(f"{command[0]}: {lines[0] if lines else f'exit status {done.returncode}'}")
    return done.stdout
