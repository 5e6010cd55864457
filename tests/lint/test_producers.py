"""Output of GNU binutils, clang, lld and mold, and eld's numbering: the verdict of each profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from sframe_unwind.cli import main
from sframe_unwind.lint import PROFILES, lint
from sframe_unwind.lint import catalogue as c
from sframe_unwind.lint.verdict import Outcome
from tests.elf.objects import compile_object, link, run, tools_for
from tests.lint.products import PRODUCTS, Product, clang_objects, gnu_objects, producers, templates
from tests.samples.build import build
from tests.samples.catalogue import ABIS, SAMPLES

# The first test that needs clang, lld and mold fetches them.

EVERY = list(PROFILES.values())
UNREAD = {c.VERSION_NOT_READ, c.ABI_NOT_READ}


@pytest.mark.parametrize("product", PRODUCTS, ids=lambda product: str(product.name))
def test_the_verdict_of_each_profile(product: Product, tmp_path: Path) -> None:
    (section,) = lint(product.make(tmp_path), EVERY).sections
    assert tuple(judgement.outcome for judgement in section.judgements) == product.outcomes
    found = {shown.finding.rule for shown in section.findings} - UNREAD
    if c.RELOCATION_STRAY in product.rules:  # values written over other fields can be anything
        assert found >= set(product.rules)
    else:
        assert found == set(product.rules)


def test_the_functions_of_later_headers_are_lost(tmp_path: Path) -> None:
    objects = gnu_objects("amd64", 3, tmp_path)
    run(producers() / "ld.lld", "-e", "start", "-o", tmp_path / "program", *objects)
    (judgement,) = lint(tmp_path / "program").sections[0].judgements
    assert {loss.where.split()[-1] for loss in judgement.losses} == {"helper.isra.0", "use", "start"}
    assert {rule for loss in judgement.losses for rule in loss.rules} == {c.CONCATENATED}


def test_object_files(tmp_path: Path) -> None:
    """Assemblers write what their linkers expect; GNU as 2.44 has no flag for its relocations."""
    for version, rules in ((1, {c.NOT_PCREL}), (2, {c.NOT_PCREL, c.RELOCATION_PCREL}), (3, set())):
        folder = tmp_path / str(version)
        folder.mkdir()
        for file in gnu_objects("aarch64", version, folder):
            assert {shown.finding.rule for shown in lint(file, EVERY).findings} - UNREAD == rules
    for file in clang_objects(tmp_path):
        assert {shown.finding.rule for shown in lint(file, EVERY).findings} - UNREAD == set()


def test_section_groups(tmp_path: Path) -> None:
    """GNU as writes one section for all functions, including those in section groups."""
    for file in templates(tmp_path):
        (finding,) = (shown.finding for shown in lint(file).findings)
        assert finding.rule is c.RELOCATION_COMDAT
        assert "_Z1fILi10EEiPi" in finding.message


def test_the_first_line_of_a_refusal_names_rule_and_offset(tmp_path: Path) -> None:
    product = next(product for product in PRODUCTS if product.name == "eld-s390x")
    (judgement,) = lint(product.make(tmp_path)).sections[0].judgements
    assert judgement.outcome is Outcome.REFUSED
    (refusal,) = judgement.refusals
    assert (refusal.finding.rule, refusal.finding.offset) == (c.ABI_UNKNOWN, 4)
    assert "eld gives this number to s390x" in refusal.finding.message


VERDICTS = {
    Outcome.ACCEPTED: "whole",
    Outcome.LOSES: "losses",
    Outcome.REFUSED: "refused",
    Outcome.NOT_LOADED: "not judged",
}


def test_the_page_has_the_verdicts() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "lint.md").read_text(encoding="utf-8")
    for product in PRODUCTS:
        cells = " | ".join(VERDICTS[outcome] for outcome in product.outcomes)
        assert f"| `{product.name}` | {cells} |" in page


@pytest.mark.parametrize(("consumer", "version"), [("linux-user", "3"), ("linux-kernel", "3"), ("glibc", "2")])
def test_what_is_converted_for_a_consumer_is_accepted_by_it(consumer: str, version: str, tmp_path: Path) -> None:
    """The source is the CFI of a program, independent of its existing SFrame."""
    source, target = build("plt", "aarch64", 3), tmp_path / "converted"
    options = ["--from", "dwarf", "--for", consumer, "--version", version]
    assert main(["convert", str(source), "-o", str(target), *options]) in (0, 1)
    (judgement,) = lint(target, [PROFILES[consumer]]).sections[0].judgements
    assert judgement.outcome is Outcome.ACCEPTED or {rule for loss in judgement.losses for rule in loss.rules} == {
        c.OUTERMOST
    }


INIT = """
int use(int *);
int __attribute__((section(".init.text"))) begin(int a) { int b = a; use(&b); return b; }
int run(int a) { int b[20] = { a }; use(b); return b[3]; }
"""


def test_a_kernel_module(tmp_path: Path) -> None:
    """The kernel sorts a module's FDEs, and ignores SFrame for code that it frees."""
    tools = tools_for("aarch64", 3)
    objects = [*gnu_objects("aarch64", 3, tmp_path), compile_object(tools, "aarch64", INIT, tmp_path / "init.o")]
    module = link(tools, "aarch64", tmp_path / "module.ko", *objects, options=("-r",))
    (judgement,) = lint(module, [PROFILES["linux-kernel"]]).sections[0].judgements
    assert judgement.outcome is Outcome.LOSES
    assert [(loss.where, loss.rules) for loss in judgement.losses] == [(".init.text+0x0 begin", (c.INIT_CODE,))]
    assert main(["lint", "--for", "linux-kernel", str(module)]) == 0  # each module has such code: a note


@pytest.mark.parametrize(("abi", "version"), [(abi, version) for abi in ABIS for version in ABIS[abi].versions])
def test_samples_have_no_fault(abi: str, version: int) -> None:
    """GNU binutils' output for real programs conforms to the specification."""
    for name in ("free_walk", "free_leaf", "plt", "realign"):
        if abi in SAMPLES[name].abis:
            found = lint(build(name, abi, version))
            assert [judgement.outcome for judgement in found.sections[0].judgements] == [Outcome.ACCEPTED]
            assert {shown.level for shown in found.findings} <= {c.Level.NOTE}
