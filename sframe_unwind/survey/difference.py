"""Compares two surveys, for example before and after an update of the toolchain.

Files are matched by their names below the roots of the surveys, without the versions of packages and libraries.
Findings are matched without addresses, which any change of the code moves.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from sframe_unwind.errors import counted
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.report.columns import aligned
from sframe_unwind.survey.store import Store

_PACKAGES = (
    re.compile(r"([^/_]+)_[^/_]+(_[^/_]+\.u?deb)(?=/|$)"),
    re.compile(r"([^/]+)-[^/-]+-[^/-]+(\.[^/.-]+\.rpm)(?=/|$)"),
    re.compile(r"([^/]+?)[-_]v?\d[^/]*?(\.(?:tar(?:\.\w+)?|tgz|txz|zip))(?=/|$)"),
)
"""Matches a package with its version in a path; the groups are the texts before and after the version."""
_MERGED = re.compile(r"(^|\.u?deb/|\.rpm/)(?=(?:s?bin|lib\w*)/)")
"""Matches the position before a folder that distributions have moved below ``usr``."""
_LIBRARY = re.compile(r"\.so\.(\d+)[\d.]*$")
_NUMBERS = re.compile(r"0x[0-9a-f]+|\d+")
_MOST = 20
"""Maximum number of lines of each kind."""


class File(NamedTuple):
    """The parts of one file's results that are compared."""

    digest: str
    state: str
    origin: str
    code: int
    covered: int
    sframe: int
    eh_frame: int
    sframe_wrong: int
    dwarf_wrong: int
    disagreements: int


_SUMS = ("code", "covered", "sframe", "eh_frame", "sframe_wrong", "dwarf_wrong", "disagreements")
Problem = tuple[str, str, str, str, str, str]
"""Path, judge, kind, table, rule of the table, and expected rule; the last two without numbers."""


class Survey(NamedTuple):
    """The part of a database that is compared."""

    files: dict[str, File]
    """The files by path, without versions."""
    problems: Counter[Problem]


def read(store: Store) -> Survey:
    """Return the results of the last run of a database.

    :raises FileError: there was none.
    """
    plan = store.last_plan()
    names: dict[str, set[str]] = {}
    files: dict[str, File] = {}
    columns = ", ".join(f'"{name}"' for name in File._fields)
    for root, path, *values in store.rows(
        f"SELECT root, path, {columns} FROM files JOIN paths USING (digest) WHERE plan = ? ORDER BY path", (plan,)
    ):
        below = path[len(root) :] if path.startswith(f"{root}/") else path.rpartition("/")[2]
        # A file that was surveyed by its own name, not as a part of a directory, keeps this name.
        is_package = any(pattern.search(root) for pattern in _PACKAGES)
        name = plain(f"{root.rpartition('/')[2]}/{below.lstrip('/')}" if is_package else below)
        names.setdefault(str(values[0]), set()).add(name)
        files[name] = File(*values)
    problems = Counter[Problem]()
    for digest, *problem in store.rows(
        'SELECT digest, judge, kind, "table", says, expected FROM findings JOIN files ON files.id = file'
        " WHERE plan = ? AND level != 'note'",
        (plan,),
    ):
        for name in names.get(digest, ()):
            judge, kind, table, *texts = problem
            says, expected = (_NUMBERS.sub("N", text) if judge == "lint" else text for text in texts)
            problems[name, judge, kind, table, says, re.sub(r" since .*", "", expected)] += 1
    return Survey(files, problems)


def plain(path: str) -> str:
    """Return a path without the versions of packages and libraries, and with moved folders below ``usr``."""
    path = path.lstrip("/")
    for pattern in _PACKAGES:
        path = pattern.sub(r"\1\2", path)
    path = _MERGED.sub(r"\1usr/", path)
    return _LIBRARY.sub(r".so.\1", path)


class Difference:
    """The changes in the second of two surveys, compared with the first.

    :raises FileError: one has no run.
    """

    def __init__(self, old: Store, new: Store) -> None:
        self._old, self._new = read(old), read(new)
        both = self._old.files.keys() & self._new.files.keys()
        self.gone = sorted(self._old.files.keys() - both)
        self.added = sorted(self._new.files.keys() - both)
        self.changed = sorted(name for name in both if self._old.files[name] != self._new.files[name])
        self._both = both
        self.solved = self._in_both(self._old.problems - self._new.problems)
        self.arisen = self._in_both(self._new.problems - self._old.problems)

    def _in_both(self, problems: Counter[Problem]) -> Counter[Problem]:
        return Counter({problem: count for problem, count in problems.items() if problem[0] in self._both})

    @property
    def is_worse(self) -> bool:
        """Whether a file of both databases has a new finding, or can no longer be surveyed."""
        return bool(self.arisen) or any(
            self._old.files[name].state == "surveyed" != self._new.files[name].state for name in self._both
        )

    def lines(self) -> Iterator[str]:
        """Yield lines that describe the changes."""
        same = len(self._new.files) - len(self.added) - len(self.changed)
        others = f"{len(self.changed)} changed, {len(self.added)} new, {len(self.gone)} gone"
        yield f"{counted(same, 'file is', 'files are')} the same, {others}"
        yield from self._totals()
        yield from _listed("changed", [line for name in self.changed if (line := self._change(name))])
        yield from _listed("new", self.added)
        yield from _listed("gone", self.gone)
        yield from _listed("findings that arose", _problems(self.arisen))
        yield from _listed("findings that are gone", _problems(self.solved))

    def _totals(self) -> Iterator[str]:
        rows: list[tuple[str, ...]] = [("", "old", "new", "change")]
        for name in _SUMS:
            old, new = (sum(getattr(file, name) for file in one.files.values()) for one in (self._old, self._new))
            change = f"{100 * (new - old) / old:+.2f} %" if old else f"{new - old:+}"
            rows.append((name.replace("_", " "), f"{old:,}", f"{new:,}", change))
        ratios = [_share(one, "sframe", "eh_frame", 1) for one in (self._old, self._new)]
        covered = [_share(one, "covered", "code", 100) for one in (self._old, self._new)]
        rows.append((".sframe / .eh_frame", *(f"{ratio:.3f}" for ratio in ratios), f"{ratios[1] - ratios[0]:+.3f}"))
        rows.append(("covered, %", *(f"{share:.2f}" for share in covered), f"{covered[1] - covered[0]:+.2f}"))
        yield from (f"  {line}" for line in aligned(rows))

    def _change(self, name: str) -> str:
        """Return how a file changed; empty: at most its contents did."""
        old, new = self._old.files[name], self._new.files[name]
        parts = [f"{what} {getattr(old, what)} -> {getattr(new, what)}" for what in ("state", "origin")]
        parts += [f"{what} {getattr(old, what):,} -> {getattr(new, what):,}" for what in _SUMS]
        differ = [getattr(old, what) != getattr(new, what) for what in ("state", "origin", *_SUMS)]
        told = [part for part, is_other in zip(parts, differ) if is_other]
        return f"{name}: {', '.join(told)}" if told else ""


def _share(survey: Survey, part: str, whole: str, unit: int) -> float:
    total = sum(getattr(file, whole) for file in survey.files.values())
    return unit * sum(getattr(file, part) for file in survey.files.values()) / total if total else 0.0


def _problems(problems: Counter[Problem]) -> list[str]:
    return [
        f"{path}: {kind}: {table}: {says}"
        + (f"; expected {expected}" if expected else "")
        + f" ({counted(count, 'time')})"
        for (path, _, kind, table, says, expected), count in sorted(problems.items())
    ]


def _listed(title: str, entries: list[str]) -> Iterator[str]:
    if entries:
        yield f"{title}:"
        yield from (f"  {entry}" for entry in entries[:_MOST])
    if len(entries) > _MOST:
        yield f"  ... {len(entries) - _MOST} more"
