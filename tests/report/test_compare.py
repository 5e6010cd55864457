"""The verdict of a comparison, and its JSON."""

from __future__ import annotations

import re
from pathlib import Path

from sframe_unwind.report.compare import ByCode, compare, summary, to_text
from sframe_unwind.report.stack import ShownFrame, Stack
from sframe_unwind.report.stack import to_text as stack_to_text


def stack(*frames: tuple[int, int | None, int | None], end: str = "the end", unwinder: str = "sframe") -> Stack:
    """Return a stack of (pc, CFA, FP)."""
    shown = tuple(
        ShownFrame(level=level, pc=pc, cfa=cfa, fp=fp, function=f"f{level}", place="", module="", unwinder=unwinder)
        for level, (pc, cfa, fp) in enumerate(frames)
    )
    return Stack("1", 'Thread 1 "x"', shown, end)


def test_agreement() -> None:
    comparison = compare(stack((1, 16, 5), (2, 32, 5), unwinder="gdb"), stack((1, 16, 5), (2, None, 5)))
    assert compare(stack((1, 16, 5)), stack((1, 16, 5))).verdict() == "1 frame agrees"
    comparison = compare(stack((1, 16, 5), (2, 32, 5), unwinder="gdb"), stack((1, 16, 5), (2, 32, 5)))
    assert comparison.agrees
    assert comparison.verdict() == "2 frames agree"


def test_an_outermost_frame_without_cfa_neither_agrees_nor_differs() -> None:
    """Its return address is undefined: at least one of the unwinders had no reason to find its CFA."""
    for native, sframe in ((None, None), (32, None), (None, 32)):
        left, right = (stack((1, 16, 5), (2, cfa, 5)) for cfa in (native, sframe))
        comparison = compare(left, right)
        assert comparison.agrees
        assert comparison.verdict() == "1 frame agrees; 1 outermost frame has no CFA"
        assert [frame["agrees"] for frame in comparison.to_json()["frames"]] == [True, None]
        assert to_text(comparison)[2].endswith("f1 (outermost, no CFA)")
        assert summary([comparison] * 2) == "2 threads: 2 frames agree; 2 outermost frames have no CFA"
    differing = compare(stack((1, 16, 5), (2, None, 6)), stack((1, 16, 5), (2, None, 5)))
    assert differing.verdict() == "first difference at frame 1: FP 0x6 native, 0x5 by SFrame"
    assert [frame["agrees"] for frame in differing.to_json()["frames"]] == [True, False]
    no_fp = compare(stack((2, None, None)), stack((2, None, 5)))
    assert no_fp.verdict() == "0 frames agree; 1 not comparable, as FP is not known; 1 outermost frame has no CFA"


def test_a_frame_without_cfa_from_which_one_stack_continues_is_not_outermost() -> None:
    cut = stack((1, None, 5), end="no unwind data")
    comparison = compare(stack((1, 16, 5), (2, 32, 5)), cut)
    assert to_text(comparison)[1].endswith("f0  <-- CFA not known")
    assert comparison.verdict().startswith("first difference at frame 1: only native has it")


def test_frames_that_sframe_did_not_unwind_are_told() -> None:
    """They agree because the debugger unwound them both times, which proves nothing about SFrame."""
    native = stack((1, 16, 5), (2, 32, 5), unwinder="gdb")
    assert compare(native, native).verdict() == "2 frames agree, 0 of them by SFrame"
    mixed = native._replace(frames=(*native.frames[:1], native.frames[1]._replace(unwinder="sframe")))
    assert compare(native, mixed).verdict() == "2 frames agree, 1 of them by SFrame"


def test_value_that_is_not_known_on_both_sides_is_no_agreement() -> None:
    known = stack((1, 16, 5), (2, 32, 5))
    unknown = stack((1, None, 5), (2, 32, 5), unwinder="gdb")
    for left, right in ((unknown, known), (known, unknown), (unknown, unknown)):
        comparison = compare(left, right)
        assert comparison.agrees
        assert [frame["agrees"] for frame in comparison.to_json()["frames"]] == [None, True]
        assert to_text(comparison)[1].endswith("  <-- CFA not known")
    comparison = compare(unknown, known)
    assert comparison.verdict() == "1 frame agrees; 1 not comparable, as CFA is not known"
    for native in (None, 5):
        assert compare(stack((1, 16, native)), stack((1, 16, None))).verdict() == (
            "0 frames agree; 1 not comparable, as FP is not known"
        )
    assert summary([comparison, compare(known, known)]) == (
        "2 threads: 3 frames agree; 1 not comparable, as CFA is not known"
    )
    both = compare(stack((1, None, None), (2, 32, 5)), stack((1, None, None), (2, 32, 5)))
    assert both.verdict() == "1 frame agrees; 1 not comparable, as CFA and FP are not known"


def test_the_summary_speaks_of_all_threads() -> None:
    same = compare(stack((1, 16, 5), (2, 32, 5), unwinder="gdb"), stack((1, 16, 5), (2, 32, 5)))
    assert summary([same]) == "1 thread: 2 frames agree"
    assert summary([same, same]) == "2 threads: 4 frames agree"
    other = compare(stack((1, 16, 5)), stack((1, 24, 5)))
    assert summary([same, other]) == (
        "1 of 2 threads differ; thread 1: first difference at frame 0: CFA 0x10 native, 0x18 by SFrame"
    )


def test_first_difference_is_named() -> None:
    native = stack((1, 16, 5), (2, 32, 5), (3, 48, 5))
    assert compare(native, stack((1, 16, 5), (2, 40, 5), (9, 48, 5))).verdict() == (
        "first difference at frame 1: CFA 0x20 native, 0x28 by SFrame"
    )
    assert compare(native, stack((1, 16, 6), (2, 32, 5), (3, 48, 5))).verdict() == (
        "first difference at frame 0: FP 0x5 native, 0x6 by SFrame"
    )


def test_shorter_side_says_why_it_ended() -> None:
    long, short = stack((1, 16, 5), (2, 32, 5)), stack((1, 16, 5), end="no unwind data")
    first = "first difference at frame 1: "
    assert compare(short, long).verdict() == f"{first}only SFrame has it (0x2 f1); native: no unwind data"
    assert compare(long, short).verdict() == f"{first}only native has it (0x2 f1); SFrame: no unwind data"
    lost = stack((1, 16, 5), (0x77, 32, 5), end="identical frames")
    longer = stack((1, 16, 5), (2, 32, 5), (3, 48, 5))
    assert compare(lost, longer).verdict() == (
        "first difference at frame 1: pc 0x77 native, 0x2 by SFrame; native ends there: identical frames"
    )


def test_json() -> None:
    comparison = compare(stack((1, 16, 5), unwinder="gdb"), stack((1, 16, 5), (2, None, 7)))
    assert comparison.to_json() == {
        "id": "1",
        "frames": [
            {
                "level": 0,
                "pc": 1,
                "cfa": 16,
                "sframe_pc": 1,
                "sframe_cfa": 16,
                "unwinder": "sframe",
                "agrees": True,
                "code": None,
            },
            {
                "level": 1,
                "pc": None,
                "cfa": None,
                "sframe_pc": 2,
                "sframe_cfa": None,
                "unwinder": "sframe",
                "agrees": False,
                "code": None,
            },
        ],
        "agrees": False,
    }


def test_text_is_aligned_and_ends_with_the_verdict() -> None:
    lines = to_text(compare(stack((0x10, 16, 5), (2, 32, 5)), stack((0x10, 16, 5), (3, 32, 5))))
    assert lines == [
        "    native pc  native CFA  SFrame pc  SFrame CFA  unwinder  function",
        "#0  0x10       0x10        0x10       0x10        sframe    f0",
        "#1  0x2        0x20        0x3        0x20        sframe    f1  <-- pc",
        "first difference at frame 1: pc 0x2 native, 0x3 by SFrame",
    ]


def test_the_code_is_asked_for_frames_of_sframe_that_agree() -> None:
    lookups = {1: ByCode("proved", ""), 2: ByCode("wrong", "cfa: it is not so"), 3: ByCode("unknown", "")}
    asked = []

    def judge(address: int) -> ByCode | None:
        asked.append(address)
        return lookups[address]

    native = stack((1, 16, 5), (2, 32, 5), (3, 48, 5), (4, 64, 5), (5, 80, 5), unwinder="gdb")
    frames = [frame._replace(unwinder="sframe", lookup=frame.pc) for frame in native.frames]
    frames[3] = frames[3]._replace(unwinder="gdb")
    sframe = native._replace(frames=tuple(frames))
    judged = compare(native, sframe._replace(frames=(*frames[:4], frames[4]._replace(cfa=88)))).judged(judge)
    assert asked == [1, 2, 3]
    assert [pair.code and pair.code.verdict for pair in judged.pairs] == ["proved", "wrong", "unknown", None, None]
    assert [line.partition("  <-- ")[2] for line in to_text(judged)[1:-1]] == ["", "the code", "", "", "CFA"]
    assert judged.verdict().startswith("first difference at frame 4: ")
    agreeing = compare(native, sframe._replace(frames=tuple(frames[:4])))._replace(pairs=judged.pairs[:4])
    assert agreeing.verdict() == "4 frames agree, 3 of them by SFrame; wrong by the code at frame 1: cfa: it is not so"
    assert summary([agreeing]) == (
        "1 thread: 4 frames agree, 3 of them by SFrame; thread 1: wrong by the code at frame 1: cfa: it is not so"
    )


def test_stack_text() -> None:
    lines = stack_to_text(stack((0x10, 16, 5), (2, None, 5), end="outermost frame"))
    assert lines == ["#0  0x0000000000000010  f0  sframe", "#1  0x0000000000000002  f1  sframe", "end: outermost frame"]


def test_long_names_are_cut_in_the_middle_to_the_width_of_the_terminal() -> None:
    frames = stack((0x10, 16, 5), (2, None, 5)).frames
    long = frames[1]._replace(function="begin" + "x" * 1000 + "end", offset=8, place="lib.so+0x20")
    shown = stack((0x10, 16, 5), end="outermost frame")._replace(frames=(frames[0], long))
    lines = stack_to_text(shown, 80)
    assert [len(line) for line in lines] == [80, 80, 20]
    assert re.search(r"  beginx+\.\.\.x+end\+0x8 \(lib\.so\+0x20\)  sframe$", lines[1])
    assert lines[0].endswith("f0" + " " * 48 + "sframe")
    whole = stack_to_text(shown)
    assert whole[:1] == ["#0  0x0000000000000010  f0  sframe"]
    assert long.function in whole[1]
    narrow = stack_to_text(shown, 20)[1]
    assert re.search(r"  begin\.\.\.xend\+", narrow), narrow


def test_stack_json() -> None:
    frame = {
        "level": 0,
        "pc": 16,
        "cfa": 16,
        "function": "f0",
        "offset": 0,
        "address": None,
        "module": None,
        "file": None,
        "line": None,
        "inlined": False,
        "unwinder": "sframe",
    }
    assert stack((0x10, 16, 5)).to_json() == {
        "id": "1",
        "name": None,
        "signal": None,
        "not_stopped": None,
        "frames": [frame],
        "end": "the end",
    }


def test_the_page_has_the_keys_of_a_frame() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "compare.md").read_text(encoding="utf-8")
    table = page.partition("## JSON")[2]
    rows = re.findall(r"^\| (`.*?) \|", table, flags=re.MULTILINE)
    (frame,) = compare(stack((1, 16, 5)), stack((1, 16, 5))).to_json()["frames"]
    assert re.findall(r"`(\w+)`", " ".join(rows)) == list(frame)
