"""`bt` of every sample is the same in the modes `always` and `off`: functions, pcs, and arguments at the CFA."""

from __future__ import annotations

import pytest

from tests.expectations import STOPS, Stop, shows_frames_beyond_start
from tests.gdb.driver import Debugger, call
from tests.gdb.programs import built, program, variants
from tests.gdb.stacks import check_frames, check_functions, check_unwinders, text_address, up_to, without_arguments
from tests.pairing import paired
from tests.samples import readelf
from tests.samples.build import toolchain

ABI = "amd64"
NEWER_ROWS = ("plt", "plt_ibt", "plt_now", "realign", "free_walk")
"""The samples whose functions differ between versions: stubs, flexible rows, outermost frames."""
BUILDS = [
    *((stop, 3) for stop in STOPS),
    # tests/abis/test_matrix.py has all stops in every version.
    *((stop, version) for version in (1, 2) for stop in STOPS if stop.sample in NEWER_ROWS),
]


@pytest.mark.parametrize(
    ("stop", "version"), [pytest.param(*build, id=f"{build[0].name}-{build[1]}") for build in BUILDS]
)
def test_backtrace_is_the_same_in_both_modes(debugger: Debugger, stop: Stop, version: int) -> None:
    builds = [(*which, built(stop.sample, ABI, version, *which)) for which in variants(stop.sample, ABI)]
    answers = call(debugger, "backtraces.collect", programs=[program(stop, path, ABI) for _, _, path in builds])
    tools = toolchain(ABI, version)
    for (variant, _, path), stops in paired(builds, answers):
        sframe, text = readelf.read_sframe(tools, path), text_address(tools, path)
        assert len(stops) == stop.hits
        for shown in stops:
            always, off = shown["always"], shown["off"]
            assert shown["again"] == always["bt"]
            check_functions(stop, always)
            check_frames(always, off)
            if shows_frames_beyond_start(stop, version):
                for modes in (always, off):
                    modes["past main"] = up_to(modes["past main"], "_start")
            for what in ("bt", "threads", "past main"):
                assert without_arguments(always[what]) == without_arguments(off[what])
            if variant == "O0":
                # Beyond main is the C library, which is always optimised.
                assert always["bt"] == off["bt"]
            threads = shown["compare"]["threads"]
            assert all(thread["agrees"] for thread in threads), threads
            assert " frames agree" in shown["verdict"]
            assert all(check_unwinders(thread, shown["ranges"], sframe, text) for thread in threads)
