"""Entry kernels of an emitted module over rKernels that were compiled by themselves.

Numba compiles the walkers alone, which call rKernels as functions of other modules; NVVM links what each
entry calls into it and inlines as ever. Entries go through NVVM and the assembler in groups, side by side:
neither holds a lock of Python's.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from typing import Any

from irkit.processors import usable_cores
from irkit.runtime import code_store
from irkit.runtime.cuda.assembling import assemble
from irkit.runtime.cuda.inline_division import without_calls
from irkit.runtime.cuda.numba_device import capability_of, compiling_for
from irkit.runtime.cuda.unit_code import (
    called,
    context,
    declare,
    entries_of,
    ir_of,
    linked_name,
)
from irkit.runtime.forms import form_of
from irkit.runtime.side_by_side import Request, compile_units
from irkit.runtime.units import Parts, key_of

GROUP = 16
"""Entries of single rOperators that go through NVVM together."""
_LINKED = re.compile(r"\birkit_[0-9a-f]{24}_")


Code = tuple[str, bytes, str]
"""PTX, machine code, and the assembler's log."""


def linked_code(parts: Parts, entries: Sequence[str], threads: int, arch: str) -> list[Code]:
    """Code of groups that have the entry kernels of a module between them, under their Python names."""
    lowered: dict[str, list[str]] = {}

    def lower() -> None:
        names: dict[str, Any] = {"__name__": "irkit_emitted", **declare(parts)}
        exec(compile(f"{parts.header}\n\n{parts.rest}", "<walkers>", "exec"), names)
        try:
            lowered.update({e: entry_ir(names[e], threads, arch) for e in entries})
        finally:
            # Dispatchers refer to one another through these names, where no garbage collector looks.
            names.clear()

    units = _units_ir(parts, arch, lower)
    # The walkers share what they call, where that is not inlined.
    groups = [[lowered[e] for e in entries if not e.startswith("op_")]]
    alone = [lowered[e] for e in entries if e.startswith("op_")]
    groups += [alone[i : i + GROUP] for i in range(0, len(alone), GROUP)]
    groups = [group for group in groups if group]
    with ThreadPoolExecutor(usable_cores()) as pool:
        return list(pool.map(partial(_group_code, units, arch), groups))


def entry_ir(function: Any, threads: int, arch: str) -> list[str]:
    """The IR modules of an entry kernel, under its Python name; its parameters are 64-bit integers."""
    compiler: Any = import_module("numba.cuda.compiler")
    types: Any = import_module("numba.cuda").types
    cc = capability_of(arch)
    signature = types.void(*[types.int64] * len(inspect.signature(function).parameters))
    with compiling_for(cc):
        library, _ = compiler._compile_pyfunc_with_fixup(
            function, signature, device=False, abi="numba", cc=cc, launch_bounds=(threads, 1)
        )
    texts = [str(m) for m in library.modules]
    return [t.replace(library._entry_name, function.__name__) for t in texts]


def nvvm_ptx(texts: Sequence[str], arch: str) -> str:
    """PTX of IR modules that are linked together."""
    nvvm: Any = import_module("numba.cuda.cudadrv.nvvm")
    ptx: bytes = nvvm.compile_ir(list(texts), opt=3, arch=arch.replace("sm_", "compute_"))
    return ptx.decode().strip("\x00").strip()


def _group_code(units: Mapping[str, list[str]], arch: str, group: Sequence[list[str]]) -> Code:
    texts = list(dict.fromkeys(text for modules in group for text in modules))
    needed = {found for text in texts for found in _LINKED.findall(text)}
    for prefix in sorted(needed):
        texts += units[prefix]
    ptx = without_calls(nvvm_ptx(texts, arch))
    return ptx, *assemble(ptx, arch)


def _units_ir(parts: Parts, arch: str, meanwhile: Callable[[], None]) -> dict[str, list[str]]:
    """The IR of each unit, by the prefix of its functions' names; that of its form is from the cache or made
    side by side. `meanwhile` is done while workers are at it."""
    here, pointers = context(arch), called(parts.rest)
    units = {unit.text: unit for unit in parts.units}
    forms = {text: form_of(text) for text in units}
    keys: dict[str, str] = {}
    requests: dict[str, Request] = {}
    for text, form in forms.items():
        entries = entries_of(units[text], pointers)
        keys[text] = key_of(form.text, here + repr(entries).encode())
        arguments = (form.text, arch, entries)
        symbol, length = units[text].symbol, len(form.text)
        requests.setdefault(keys[text], Request(symbol, "cuda", arguments, length, keys[text]))
    found = {key: payload for key in requests if (payload := code_store.kept(key)) is not None}
    missing = [request for key, request in requests.items() if key not in found]

    def done(request: Request, payload: bytes) -> Sequence[Request]:
        found[request.key] = payload
        code_store.keep(request.key, payload)
        return ()

    compile_units(missing, done, meanwhile=meanwhile)
    if missing:
        code_store.prune()
    return {
        linked_name(text, ""): ir_of(found[keys[text]], form, text) for text, form in forms.items()
    }
