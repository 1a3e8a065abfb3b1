"""NVVM IR of entry kernels: what Numba makes of an emitted module's walkers, in this process or another.

Functions that entries share are translated once where these are lowered together, under the same names:
so entries that will be linked with one another are one request.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from typing import Any

from irkit.runtime.cuda.numba_device import capability_of, compiling_for, of_numba
from irkit.runtime.cuda.unit_code import Declared, declare
from irkit.runtime.numba_repeats import CUDA, nothing_twice

Groups = Sequence[Sequence[str]]
"""Names of entries that will be linked together, in groups."""


def entry_ir(function: Any, threads: int, arch: str) -> list[str]:
    """The IR modules of an entry kernel, under its Python name; its parameters are 64-bit integers."""
    compiler: Any = of_numba("numba.cuda.compiler")
    types: Any = of_numba("numba.cuda").types
    cc = capability_of(arch)
    signature = types.void(*[types.int64] * len(inspect.signature(function).parameters))
    with compiling_for(cc), nothing_twice(*CUDA):
        library, _ = compiler._compile_pyfunc_with_fixup(
            function, signature, device=False, abi="numba", cc=cc, launch_bounds=(threads, 1)
        )
    texts = [str(m) for m in library.modules]
    return [t.replace(library._entry_name, function.__name__) for t in texts]


def lower_entries(
    text: str, declared: Sequence[Declared], groups: Groups, threads: int, arch: str
) -> bytes:
    """The IR modules of each group of entries that a text defines over `declared` functions of other modules;
    `modules_of` takes them."""
    names: dict[str, Any] = {"__name__": "irkit_emitted", **declare(declared)}
    exec(compile(text, "<walkers>", "exec"), names)
    try:
        found = [[entry_ir(names[e], threads, arch) for e in group] for group in groups]
    finally:
        # Dispatchers refer to one another through these names, where no garbage collector looks.
        names.clear()
    return json.dumps([_distinct(group) for group in found]).encode()


def modules_of(lowered: bytes) -> list[list[str]]:
    """The IR modules of each group."""
    return json.loads(lowered)


def _distinct(lowered: Sequence[Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(text for modules in lowered for text in modules))
