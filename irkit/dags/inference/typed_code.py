"""Numba's typed code of a kernel: what the inference reads, and what machine code is made of."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from irkit.dags.inference.refused_by_numba import check_is_function, refused
from irkit.errors import UnsupportedError
from irkit.runtime.cuda.numba_device import capability_of, compiling_for

ARCH = "sm_80"
"""What kernels are typed for where no GPU is at hand."""


def argument_types(kernel: Any, arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Numba's types of the arguments of a launch. Raises UnsupportedError for what is of no type."""
    errors: Any = import_module("numba.core.errors")
    typing: Any = import_module("numba.cuda.typing.typeof")
    types: list[Any] = []
    for number, argument in enumerate(arguments):
        if getattr(getattr(argument, "dtype", None), "hasobject", False):
            raise UnsupportedError(
                f"kernel '{kernel.py_func.__name__}', argument {number}: an array of Python objects "
                f"({argument.dtype}), which no kernel takes: numbers are expected"
            )
        try:
            types.append(typing.typeof(argument, typing.Purpose.argument))
        except (errors.NumbaError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise UnsupportedError(
                f"kernel '{kernel.py_func.__name__}', argument {number}: {reason}"
            ) from None
    return tuple(types)


def _refusals() -> tuple[type[Exception], ...]:
    """What Numba raises for code that it does not compile: its two halves have errors of their own, and
    arithmetic of whole rows ends in a KeyError of the universal function."""
    known = ("numba.core.errors", "numba.cuda.core.errors")
    found = [import_module(name).NumbaError for name in known]
    return (*found, import_module("numba.cuda.errors").UnsupportedBytecodeError, KeyError)


def typed_code(kernel: Any, types: tuple[Any, ...], arch: str = ARCH) -> Any:
    """The annotation of a kernel for arguments of `types`: blocks of its IR, types of variables and calls.

    A kernel that was compiled for them is not compiled again. Raises UnsupportedError where Numba
    refuses it.
    """
    known = kernel.overloads.get(types)
    if known is not None and getattr(known, "type_annotation", None) is not None:
        return known.type_annotation
    compiler: Any = import_module("numba.cuda.compiler")
    check_is_function(kernel)
    refusals = _refusals()
    none: Any = import_module("numba.cuda").types.void
    with compiling_for(capability_of(arch)):
        try:
            made = compiler.compile_cuda(kernel.py_func, none, types, cc=capability_of(arch))
        except refusals as error:
            raise refused(kernel, types, error) from None
    return made.type_annotation


def machine_code(kernel: Any, types: tuple[Any, ...], arch: str = ARCH) -> str:
    """The PTX of a kernel for arguments of `types`: that of the GPU at hand, where it was compiled for
    it."""
    known = kernel.overloads.get(types)
    if known is not None and hasattr(known, "inspect_asm"):
        return str(known.inspect_asm(None))
    cuda: Any = import_module("numba.cuda")
    with compiling_for(capability_of(arch)):
        ptx, _ = cuda.compile_ptx(kernel.py_func, cuda.types.void(*types), cc=capability_of(arch))
    return str(ptx)
