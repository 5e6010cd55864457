"""Generates SFrame for modules that have none, as an assembler would have made it from the same CFI."""

from __future__ import annotations

from functools import partial

from sframe_unwind.arch import Arch
from sframe_unwind.debugger import generated_cache
from sframe_unwind.errors import SFrameError
from sframe_unwind.sframe.section import Section
from sframe_unwind.unwind.modules import Generate, Module


def generator(arch: Arch) -> Generate:
    """Return a function that makes the section of a module from its ``.eh_frame``."""
    return partial(_generated, arch)


def _generated(arch: Arch, module: Module) -> Section | None:
    cfi = module.cfi
    if cfi is None or not module.ranges:
        return None
    build_id = _build_id(module)
    made_for = f"{arch.name} {build_id}"
    # The section has distances from the CFI to the code, which are the same wherever a module is loaded.
    data = generated_cache.load(build_id, made_for) if build_id else None
    known = None if data is None else _checked(data, cfi.address, module)
    if known is not None:
        return known
    # The encoder is imported for the first module that needs it, not at each start of a debugger.
    from sframe_unwind.translation.generate import generate

    data = generate(cfi, module.ranges, arch)
    if build_id:
        generated_cache.save(build_id, made_for, data)
    return Section(data, cfi.address)


def _build_id(module: Module) -> str:
    try:
        return module.build_id()
    except SFrameError:
        return ""


def _checked(data: bytes, address: int, module: Module) -> Section | None:
    """Return a section from the cache if it describes code of the module and no other code."""
    try:
        section = Section(data, address)
        for table in section.tables:
            starts, sizes = table.extents()
            low, high = min(starts, default=0), max(map(sum, zip(starts, sizes)), default=0)
            if starts and not (_is_code(module, low) and _is_code(module, high - 1)):
                return None
    except SFrameError:
        return None
    return None if section.rest is not None else section


def _is_code(module: Module, address: int) -> bool:
    return any(start <= address < end for start, end in module.ranges)
