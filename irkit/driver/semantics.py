"""`--check-semantics`: run a module before and after each pass and compare what it computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from irkit.dialects.types import DYNAMIC, Tensor, numpy_dtype
from irkit.driver.diagnostics import UserError, note
from irkit.interp import run_module
from irkit.weights import Array

BATCH = 3
"""Rows taken for a dynamic leading dimension."""


def random_inputs(module: ModuleOp, seed: int, batch: int = BATCH) -> list[Array]:
    """Inputs for `@main`, by its argument types: normal floats, small non-negative integers."""
    generator = np.random.default_rng(seed)
    main = next((op for op in module.walk() if isinstance(op, FuncOp)), None)
    if main is None:
        raise UserError("the module has no function to run")
    types = [cast(Tensor, t) for t in main.function_type.inputs.data]
    return [random_array(generator, t, batch) for t in types]


def random_array(generator: np.random.Generator, t: Tensor, batch: int) -> Array:
    """One random array of tensor type `t`."""
    shape = [batch if s == DYNAMIC else s for s in t.get_shape()]
    dtype = numpy_dtype(t.element_type)
    if dtype.kind == "f":
        return generator.standard_normal(shape).astype(dtype)
    return generator.integers(0, 2, shape).astype(dtype)


def difference(before: Sequence[Array], after: Sequence[Array]) -> str | None:
    """Where `after` is not `before`, in words; None if they agree.

    Integers must be equal. Floats may differ by rounding, since passes reorder arithmetic: by the
    square root of a type's epsilon, relative to the largest finite magnitude of the array.
    """
    if len(before) != len(after):
        return f"{len(before)} outputs became {len(after)}"
    for index, (old, new) in enumerate(zip(before, after, strict=True)):
        if (text := _array_difference(old, new)) is not None:
            return f"output {index}: {text}"
    return None


def _array_difference(old: Array, new: Array) -> str | None:
    if old.shape != new.shape or old.dtype != new.dtype:
        return f"{old.dtype}{list(old.shape)} became {new.dtype}{list(new.shape)}"
    wrong = np.argwhere(~_close(old, new))
    if not len(wrong):
        return None
    at = tuple(int(i) for i in wrong[0])
    return f"element {list(at)} was {old[at]}, is {new[at]} ({len(wrong)} of {old.size} differ)"


def _close(old: Array, new: Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    if old.dtype.kind != "f":
        return np.asarray(old == new)
    tolerance = float(np.sqrt(np.finfo(old.dtype).eps))
    finite = np.abs(old[np.isfinite(old)])
    scale = float(finite.max(initial=0.0))
    return np.isclose(new, old, rtol=tolerance, atol=tolerance * scale, equal_nan=True)


class SemanticsChecker:
    """Keeps the outputs of the module as it was read."""

    def __init__(self, module: ModuleOp, weights: Mapping[str, Array], seed: int) -> None:
        self._weights = weights
        self._seed = seed
        self._inputs = random_inputs(module, seed)
        self._expected = run_module(module, weights, self._inputs)

    def after(self, module: ModuleOp, name: str) -> None:
        """Raise UserError if `module` no longer computes what it did."""
        text = difference(self._expected, run_module(module, self._weights, self._inputs))
        if text is not None:
            repeat = note(f"inputs were drawn with --seed={self._seed}")
            raise UserError(
                f"pass '{name}' changed the meaning of the module: {text}", notes=[repeat]
            )
