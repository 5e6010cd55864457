"""Names of Rust, compared with those of libiberty (``c++filt``), also for the names of a program that ``rust/`` has."""

from __future__ import annotations

import random
import re
import subprocess

import pytest

from sframe_unwind.report.demangle import demangle
from sframe_unwind.report.rust_names import demangle_rust
from tests.hanging import HANG
from tests.report.rust.__main__ import FOLDER, PREFIXES

SECONDS = HANG
NAMES = {
    "_RNvCs1234_5crate4main": "crate::main",
    "_RNvNtC5crate3mod1f": "crate::mod::f",
    "_RNCNvC5crate4main0": "crate::main::{closure#0}",
    "_RNCNvC5crate4mains1_0": "crate::main::{closure#3}",
    "_RNSNvC5crate4main3vtb": "crate::main::{shim:vtb#0}",
    "_RINvC5crate1fQShE": "crate::f::<&mut [u8]>",
    "_RINvC5crate1fThEE": "crate::f::<(u8,)>",
    "_RINvC5crate1fTabcdefEE": "crate::f::<(i8, bool, char, f64, str, f32)>",
    "_RINvC5crate1fTijlmnopstuvxyzEE": (
        "crate::f::<(isize, usize, i32, u32, i128, u128, _, i16, u16, (), ..., i64, u64, !)>"
    ),
    "_RINvC5crate1fAnj2_E": "crate::f::<[i128; 2]>",
    "_RINvC5crate1fFKClElE": 'crate::f::<extern "C" fn(i32) -> i32>',
    "_RINvC5crate1fFUK9rust_callPlOhEuE": 'crate::f::<unsafe extern "rust-call" fn(*const i32, *mut u8)>',
    "_RINvC5crate1fFG0_RL0_eRL1_eEhE": "crate::f::<for<'a, 'b> fn(&'b str, &'a str) -> u8>",
    "_RINvC5crate1fDNtC4core5DebugEL_E": "crate::f::<dyn core::Debug>",
    "_RINvC5crate1fDG_INtC4core2FnTRL0_eEEp6OutputbNtBh_4SendEL_E": (
        "crate::f::<dyn for<'a> core::Fn<(&'a str,), Output = bool> + core::Send>"
    ),
    "_RNvMC5crateNtB2_6Square4area": "<crate::Square>::area",
    "_RNvMs0_C5crateINtB5_6SquareKj3_Kb1_Kc78_Kan5_E4area": "<crate::Square<3, true, 'x', -5>>::area",
    "_RNvXC5crateNtB2_6SquareNtB2_5Shape4area": "<crate::Square as crate::Shape>::area",
    "_RNvYNtC5crate6SquareNtB4_5Shape4area": "<crate::Square as crate::Shape>::area",
    "_RINvC5crate1fKpE": "crate::f::<_>",
    "_RINvC5crate1fL_E": "crate::f::<'_>",
    "_RINvC5crate1fKo123456789abcdef01_E": "crate::f::<0x123456789abcdef01>",
    "_RNvC5crateu8gdel_5qa": "crate::gödel",
    "_RNvC5crate1fC5other": "crate::f",
    "_RNvC5crate1f.llvm.1234": "crate::f",
    "_RNvB_1f": None,
    "_RNvC5crate9f": None,
    "_RNvC5crate1fx": None,
    "_RINvC5crate1fL0_E": None,
    "_RNvC5crate02ab": None,
    "_ZN4core3ptr13drop_in_place17h0123456789abcdefE": "core::ptr::drop_in_place",
    "_ZN45_$LT$crate..A$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE": "<crate::A as core::fmt::Debug>::fmt",
    "_ZN1a28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE.llvm.77": "a::{{closure}}",
    "_ZN1a9b17h0123456789abcdefE": None,
    "_ZN3foo3barEv": None,
}
"""Names by the grammar of RFC 2603, each with its text; ``None``: malformed, or not of Rust."""


@pytest.mark.parametrize("name", NAMES)
def test_text(name: str) -> None:
    assert demangle_rust(name) == NAMES[name]


def by_libiberty(names: list[str]) -> list[str]:
    """Return the texts of ``c++filt``, without the hashes of crates and the types of constants."""
    text = "\n".join(names)
    done = subprocess.run(
        ["c++filt", "-s", "rust"], input=text, capture_output=True, text=True, timeout=SECONDS, check=True
    )
    without_hashes = re.sub(r"\[[0-9a-f]+\](?=::|>|<|$|[ ,)])|::h[0-9a-f]{16}(?=$|\.)", "", done.stdout, flags=re.M)
    return re.sub(
        r"(?<=[ <])(-?\w+|'.*?'): [iu](8|16|32|64|128|size)|: (bool|char)", r"\1", without_hashes
    ).splitlines()


def test_text_is_that_of_libiberty() -> None:
    names = [name for name, text in NAMES.items() if text is not None]
    names.remove("_RINvC5crate1fKo123456789abcdef01_E")  # binutils 2.40 cuts the number in a wrong place
    assert [demangle(name) for name in names] == by_libiberty(names)


@pytest.mark.parametrize("form", PREFIXES)
def test_names_of_a_program(form: str) -> None:
    names = (FOLDER / f"{form}.txt").read_text(encoding="ascii").splitlines()
    assert len(names) > 50
    assert all(name.startswith(PREFIXES[form]) for name in names)
    assert [demangle(name) for name in names] == by_libiberty(names)


def test_damaged_names_are_left_as_they_are() -> None:
    chance = random.Random(44)
    names = [name for name in NAMES if name.startswith("_R")]
    for _ in range(20_000):
        name = list(chance.choice(names))
        for _ in range(chance.randint(1, 3)):
            name[chance.randrange(2, len(name))] = chance.choice("_0123456789BCDEFGIKLMNPQRSTXYabcshuyz")
        text = demangle_rust("".join(name))
        assert text is None or (text and len(text) < 1000)


def test_a_name_with_a_huge_text_stays_mangled() -> None:
    """Each tuple refers twice to the one before it."""
    name = "_RINvC5crate1fThhE"
    at = len("INvC5crate1f")
    for _ in range(40):
        reference = f"B{base_62(at)}"
        at = len(name) - 2
        name += f"T{reference}{reference}E"
    assert demangle(f"{name}E") == f"{name}E"


def test_work_for_long_names_of_cxx() -> None:
    """Names of C++ have the form of legacy names up to their ends."""
    name = "_ZN" + "2v82Ns1a" * 400 + "Ev"
    assert demangle_rust(name) is None
    assert demangle_rust(f"{name}17h0123456789abcdefE") is None


def base_62(number: int) -> str:
    """Return a base-62 number with its end."""
    if not number:
        return "_"
    digits, number = "", number - 1
    while True:
        digits = _DIGITS[number % 62] + digits
        number //= 62
        if not number:
            return f"{digits}_"


_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
