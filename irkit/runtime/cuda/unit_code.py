"""NVVM IR of rKernels for a GPU: Numba's front end, which takes most of a compilation, runs once for each.

What a form (`runtime/forms.py`) compiles to is text: IR modules, one after another. NVVM inlines them, with
a unit's numbers, into the entry kernels as it would functions of their own.
"""

# pyright: reportUnknownMemberType=false
from __future__ import annotations

import functools
import hashlib
import platform
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from irkit.architectures import ARCHITECTURES
from irkit.runtime.cuda.numba_device import compiling_for, of_numba
from irkit.runtime.forms import Form
from irkit.runtime.intrinsics.slots import SLOT_IMPORT, filled
from irkit.runtime.machine_code import intrinsics_digest
from irkit.runtime.numba_repeats import CUDA, nothing_twice
from irkit.runtime.numba_settings import numba_settings
from irkit.runtime.plain import digest as plain_digest
from irkit.runtime.plain import plain
from irkit.runtime.units import Parts, Unit

Entry = tuple[str, tuple[str, ...]]
"""A function of a unit, and what makes pointers of its operands' addresses ("f32p")."""

Declared = tuple[str, str, tuple[str, ...]]
"""An rKernel for those who call it: its name in the module, that in its IR, and its operands' pointers."""

SEPARATOR = "\n;---- module ----\n"
_DEFINED = re.compile(r'^define [^@\n]*@"?([\w.$]+)"?\(', re.MULTILINE)
# As an rTask of a walker, and alone.
_CALLED = re.compile(
    r"^ +(\w+)\([^\n]+, rows, (?:top - \d+|0)((?:, \w+\((?:addresses\[\d+\]|a\d+)(?: & -16)?\))*)\)$",
    re.MULTILINE,
)
_POINTER = re.compile(r"(\w+)\(a[^)&]*( & -16)?\)")
_KINDS = {"f": "float", "i": "int", "u": "uint"}
_HALVES = {"f16p": "float16", "bf16p": "bfloat16"}


def called(rest: str) -> dict[str, tuple[str, ...]]:
    """The rKernels that a module's entries call, and how they make pointers of the operands' addresses."""
    return {
        name: tuple(kind for kind, _ in _POINTER.findall(operands))
        for name, operands in _CALLED.findall(rest)
    }


def aligned(parts: Parts) -> dict[str, tuple[bool, ...]]:
    """The rKernels that a module's entries call, by the names in their IR, and for which of their operands
    callers make sure that addresses are multiples of 16."""
    found: dict[str, list[tuple[bool, ...]]] = {}
    for name, operands in _CALLED.findall(parts.rest):
        found.setdefault(name, []).append(tuple(bool(m) for _, m in _POINTER.findall(operands)))
    return {
        linked: tuple(map(all, zip(*found[name], strict=True)))
        for name, linked, _ in declarations(parts)
    }


def entries_of(unit: Unit, pointers: Mapping[str, tuple[str, ...]]) -> tuple[Entry, ...]:
    """The functions of a unit that are called from outside, by their names in its text."""
    return tuple((unit.names[name], pointers[name]) for name in unit.names if name in pointers)


def linked_name(text: str, function: str) -> str:
    """The name of a unit's function in its IR, which no other unit has."""
    return f"irkit_{_digest(text)}_{function}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def lower(text: str, arch: str, entries: Sequence[Entry]) -> bytes:
    """The IR of `entries` of a form's text and of all that they call, as text in bytes; `ir_of` takes it."""
    compiler: Any = of_numba("numba.cuda.compiler")
    digest = _digest(text)
    names: dict[str, Any] = {"__name__": f"irkit_rkernel_{digest}"}
    exec(compile(f"{SLOT_IMPORT}\n{plain(text)}", "<rKernel>", "exec"), names)
    built = ARCHITECTURES[arch]
    cc = (*built.capability, built.suffix)
    entered: list[Any] = []
    modules: dict[int, Any] = {}
    try:
        for function, pointers in entries:
            with compiling_for(cc), nothing_twice(*CUDA):
                library, _ = compiler._compile_pyfunc_with_fixup(
                    names[function].py_func,
                    signature(pointers),
                    cc=cc,
                    abi="c",
                    abi_info={"abi_name": linked_name(text, function)},
                )
            entered.append(library.modules[0])
            # What a module calls is linked only if it comes behind it: what several entries call, behind the
            # callers of the last.
            for module in library.modules[1:]:
                modules.pop(id(module), None)
                modules[id(module)] = module
        linked = [*entered, *modules.values()]
        return zlib.compress(SEPARATOR.join(_own_names(linked, digest)).encode(), 1)
    finally:
        # Dispatchers refer to one another through these names, where no garbage collector looks.
        names.clear()


def ir_of(lowered: bytes, form: Form, text: str) -> list[str]:
    """The IR modules of a unit: those of its form with its numbers, and names that only this unit has."""
    found = zlib.decompress(lowered).decode().replace(_digest(form.text), _digest(text))
    return filled(found, form.values).split(SEPARATOR)


def signature(pointers: Sequence[str]) -> Any:
    """Numba's signature of an rKernel: rTask, rTasks, rows, scratch, operands."""
    types: Any = of_numba("numba.cuda").types
    return types.void(*[types.int64] * 4, *map(_pointer_type, pointers))


def _pointer_type(maker: str) -> Any:
    """Numba's type of what an intrinsic such as `f32p` makes."""
    if maker in _HALVES:
        return import_module("irkit.runtime.intrinsics.cuda_half").HalfPointer(_HALVES[maker])
    types: Any = of_numba("numba.cuda").types
    return types.CPointer(getattr(types, _KINDS[maker[0]] + maker[1:-1]))


def _own_names(modules: Iterable[Any], digest: str) -> list[str]:
    """The modules' texts, in which what they define is linked once, and by names that only this unit has:
    those that Numba makes are numbered in each process."""
    texts: list[str] = []
    for module in modules:
        for function in module.functions:
            if not function.is_declaration:
                function.linkage = "linkonce_odr"
        texts.append(str(module))
    defined = {name for text in texts for name in _DEFINED.findall(text) if digest not in name}
    if not defined:
        return texts
    pattern = re.compile(r'@"(' + "|".join(map(re.escape, sorted(defined))) + r')"')
    return [pattern.sub(lambda found: f'@"{found.group(1)}_{digest}"', text) for text in texts]


def declarations(parts: Parts) -> tuple[Declared, ...]:
    """The rKernels of a module that its entries call."""
    pointers = called(parts.rest)
    return tuple(
        (name, linked_name(unit.text, function), pointers[name])
        for unit in parts.units
        for name, function in unit.names.items()
        if name in pointers
    )


def declare(declared: Iterable[Declared]) -> dict[str, Any]:
    """What stands for rKernels while walkers are compiled: functions of other modules."""
    cuda: Any = of_numba("numba.cuda")
    return {
        name: cuda.declare_device(linked, signature(pointers), abi="c")
        for name, linked, pointers in declared
    }


@functools.cache
def _versions() -> tuple[str, ...]:
    return platform.python_version(), *(version(n) for n in ("numba", "numba-cuda", "llvmlite"))


@functools.cache
def _own_digest() -> str:
    """Of this file, which names what it links."""
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]


def context(arch: str) -> bytes:
    """What the IR of a unit hangs on beside its text."""
    digests = intrinsics_digest(), _own_digest(), plain_digest()
    return repr(("cuda", arch, *digests, _versions(), numba_settings())).encode()
