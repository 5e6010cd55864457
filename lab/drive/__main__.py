"""The command line of the package."""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Callable

from lab.drive import corners, session
from lab.drive.building import built
from lab.drive.channel import Died, Hang
from lab.drive.debuggers import DEBUGGERS, MODES, STRICT, WITHOUT, Debugger
from lab.drive.dimensions import corner_of
from lab.drive.programs import BUILDS, Build, named
from lab.drive.scene import Scene
from lab.drive.session import Kind, Outcome

_WITH = "with --corners: the session has this value, as in mode=auto or version=none"


def main() -> int:
    """Run the command; return its exit status: 1 after a failure."""
    parser = argparse.ArgumentParser(prog="python -m lab.drive", description="Drive programs with and without us.")
    parser.add_argument("--sessions", type=int, default=100, metavar="N", help="in each debugger (default: 100)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first session's seed (default: 0)")
    parser.add_argument("--debugger", action="append", choices=list(DEBUGGERS), help="default: all four")
    parser.add_argument("--program", choices=[build.name for build in BUILDS], metavar="NAME-LEVEL", help="this alone")
    parser.add_argument("--mode", action="append", choices=[*MODES, STRICT, WITHOUT], help="default: all but strict")
    parser.add_argument("--length", type=int, default=session.LENGTH, metavar="N", help="commands in a session")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="how many sessions at a time")
    parser.add_argument("--log", type=Path, metavar="FILE", help="keep outcomes there; do not run again what it has")
    parser.add_argument("--seed", type=int, metavar="SEED", help="this session alone")
    parser.add_argument("--show", action="store_true", help="with --seed: show what was typed and what was printed")
    parser.add_argument("--corners", action="store_true", help="where builds, clients, places and modes meet")
    parser.add_argument("--with", action="append", default=[], dest="wanted", metavar="DIMENSION=VALUE", help=_WITH)
    options = parser.parse_args()
    wanted = dict(pair.split("=", 1) for pair in options.wanted)
    if options.corners:
        if options.program or options.mode:
            parser.error("--corners: the seed chooses program and mode; see --with")
        if options.seed is not None and options.show:
            return corners.show(options.seed, DEBUGGERS[(options.debugger or list(DEBUGGERS))[0]], wanted)
    build = named(options.program) if options.program else None
    debuggers = options.debugger or list(DEBUGGERS)
    modes = tuple(options.mode or MODES)
    if options.seed is not None and options.show:
        return _show(options.seed, debuggers[0], build, modes, options.length)
    seeds = [options.seed] if options.seed is not None else range(options.first, options.first + options.sessions)

    def one(seed: int, debugger: Debugger) -> Outcome:
        if options.corners:
            corner = corner_of(seed, debugger.is_gdb, debugger.has_adapter, wanted)
            return corners.run(seed, debugger, corner, judges_speed=True)
        return session.run(seed, debugger, modes, build, options.length)

    status, outcomes = _campaign(debuggers, seeds, one, options.jobs, options.log)
    if options.corners:
        for name in debuggers:
            print(f"{name}:", *corners.met(outcomes, DEBUGGERS[name], wanted), sep="\n")
    return status


def _campaign(
    debuggers: list[str],
    seeds: Iterable[int],
    run: Callable[[int, Debugger], Outcome],
    jobs: int,
    log: Path | None,
) -> tuple[int, list[Outcome]]:
    started = time.monotonic()
    known = {(done.debugger, done.seed): done for done in _logged(log)}
    wanted = [(name, seed) for seed in seeds for name in debuggers]

    def one(job: tuple[str, int]) -> Outcome:
        return known[job] if job in known else run(job[1], DEBUGGERS[job[0]])

    outcomes = []
    with ThreadPoolExecutor(jobs) as pool:
        for job, outcome in zip(wanted, pool.map(one, wanted)):
            outcomes.append(outcome)
            if log is not None and job not in known:
                with log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(outcome)) + "\n")
            for line in _lines(outcome):
                print(line, flush=True)
            if sys.stderr.isatty():
                print(f"\r{len(outcomes)} of {len(wanted)}", end="", file=sys.stderr, flush=True)
    print("\n".join(table(outcomes)))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = f"{used.ru_utime + used.ru_stime:.0f} s of processor time"
    print(f"{len(outcomes)} sessions, {time.monotonic() - started:.0f} s, {processor}")
    return (1 if any(outcome.failures for outcome in outcomes) else 0), outcomes


def _logged(log: Path | None) -> Iterator[Outcome]:
    if log is not None and log.exists():
        for line in log.read_text(encoding="utf-8").splitlines():
            yield Outcome(**json.loads(line))


def _lines(outcome: Outcome) -> Iterator[str]:
    """Yield the lines about a session that failed."""
    place = f"--seed {outcome.seed} --debugger {outcome.debugger} --program {outcome.build}"
    if "/" in outcome.build:
        place = f"--corners --seed {outcome.seed} --debugger {outcome.debugger} # {outcome.build}"
    for mode, failure in outcome.failures.items():
        chosen = "" if "/" in outcome.build else f" --mode {mode}"
        yield f"python -m lab.drive{chosen} --show {place}: {failure}"
    for mode, failure in outcome.unsteady.items():
        yield f"unsteady: {place} --mode {mode}: {failure}"
    for failure in outcome.alone.values():
        yield f"the debugger alone, too: {place}: {failure}"
    if outcome.dropped:
        yield f"dropped: {place}: {outcome.dropped}"


def table(outcomes: list[Outcome]) -> Iterator[str]:
    """Yield the lines of the final table: a row for each debugger."""
    modes = list(dict.fromkeys(mode for outcome in outcomes for mode in outcome.times if mode != WITHOUT))
    shown = ", ".join(kind.value for kind in Kind)
    yield (
        "| debugger | sessions | commands | dropped | alone too | unsteady | fail | "
        + " | ".join(f"{mode}: {shown} | {mode}: time" for mode in modes)
        + " |"
    )
    yield "|---|" + "--:|" * (6 + 2 * len(modes))
    for name in dict.fromkeys(outcome.debugger for outcome in outcomes):
        own = [outcome for outcome in outcomes if outcome.debugger == name]
        whole = [outcome for outcome in own if not outcome.dropped]
        cells = [
            name,
            str(len(own)),
            f"{sum(outcome.commands for outcome in whole):,}",
            str(len(own) - len(whole)),
            str(sum(bool(outcome.alone) for outcome in whole)),
            str(sum(bool(outcome.unsteady) for outcome in whole)),
            str(sum(bool(outcome.failures) for outcome in whole)),
        ]
        for mode in modes:
            failed = [outcome for outcome in whole if mode in outcome.failures]
            counted = Counter(Kind.of(outcome.failures[mode]) for outcome in failed)
            cells.append(", ".join(str(counted[kind]) for kind in Kind))
            right = [outcome for outcome in whole if mode in outcome.times and outcome not in failed]
            base = sum(outcome.times[WITHOUT] for outcome in right)
            cells.append(f"{sum(outcome.times[mode] for outcome in right) / base:.2f}" if base else "-")
        yield f"| {' | '.join(cells)} |"


def _show(seed: int, name: str, build: Build | None, modes: tuple[str, ...], length: int) -> int:
    debugger = DEBUGGERS[name]
    build = build or session.choose_build(seed, debugger)
    terminal = debugger.at_terminal(seed)
    scene = Scene(debugger, build, built(build), terminal)
    try:
        moves = session.record(seed, scene, length)
    except (Hang, Died) as error:
        print(f"without the plugin: {error}")
        return 1
    status = 0
    for number, move in enumerate(moves):
        print(f"--- move {number} ({move.seconds:.2f} s): {'; '.join(move.lines)}\n{move.text}")
        for frame in move.state.get("frames", ())[:8]:
            print(f"    {frame}")
    for mode in modes:
        failure, seconds = session.replay(moves, scene, mode)
        print(f"=== {mode}: {failure or 'equal'} ({seconds:.1f} s)")
        status |= bool(failure)
    print("program:", scene.executable)
    return status


if __name__ == "__main__":
    raise SystemExit(main())
