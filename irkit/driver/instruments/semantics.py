"""`--check-semantics`: run a module before and after each pass and compare what it computes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.passes import ModulePass

from irkit.bfloat16 import is_floating, is_half
from irkit.dialects.precision import coarsest
from irkit.dialects.task import BufferOp, ProgramOp
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.driver.diagnostics.diagnostic import UserError, note
from irkit.driver.execution.arrays import random_inputs
from irkit.driver.execution.entry_point import entry_point_of
from irkit.driver.instruments.run_each import as_main, other_functions
from irkit.driver.instruments.timer import Timer
from irkit.errors import IrkitError, UnsupportedError
from irkit.interp import run_module
from irkit.weights import Array

# Of buffers that are given bytes for a run only; any element type's will do.
ALIGNMENT = 256


def difference(
    before: Sequence[Array], after: Sequence[Array], roundoff: float = 0.0
) -> str | None:
    """Where `after` is not `before`, in words; None if they agree.

    Integers must be equal. Floats may differ by rounding, since passes reorder arithmetic: by the
    square root of a type's epsilon, relative to the largest finite magnitude of the array; or by four times
    `roundoff`, that of factors, which are rounded otherwise where what they come from is.
    """
    if len(before) != len(after):
        return f"{len(before)} outputs became {len(after)}"
    for index, (old, new) in enumerate(zip(before, after, strict=True)):
        if (text := _array_difference(old, new, roundoff)) is not None:
            return f"output {index}: {text}"
    return None


def _array_difference(old: Array, new: Array, roundoff: float) -> str | None:
    if old.shape != new.shape or old.dtype != new.dtype:
        return f"{old.dtype}{list(old.shape)} became {new.dtype}{list(new.shape)}"
    wrong = np.argwhere(~_close(old, new, roundoff))
    if not len(wrong):
        return None
    at = tuple(int(i) for i in wrong[0])
    return f"element {list(at)} was {old[at]}, is {new[at]} ({len(wrong)} of {old.size} differ)"


def _close(old: Array, new: Array, roundoff: float) -> np.ndarray[Any, np.dtype[np.bool_]]:
    if not is_floating(old.dtype):
        return np.asarray(old == new)
    if is_half(old.dtype):
        # As much as it takes to round otherwise once or twice.
        roundoff = max(roundoff, 2.0**-8 if old.dtype != np.float16 else 2.0**-11)
        old, new = old.astype(np.float32), new.astype(np.float32)
    tolerance = max(float(np.sqrt(np.finfo(old.dtype).eps)), 4 * roundoff)
    scale = float(np.abs(old[np.isfinite(old)]).max(initial=0.0))
    return np.isclose(new, old, rtol=tolerance, atol=tolerance * scale, equal_nan=True)


def runnable(module: ModuleOp) -> ModuleOp:
    """`module` itself, or, if its schedule has no memory yet, a copy in which every buffer has bytes of its
    own: what it computes does not hang on a plan."""
    if all(p.arena_bytes is not None for p in module.walk() if isinstance(p, ProgramOp)):
        return module
    copy = module.clone()
    for program in copy.walk():
        if isinstance(program, ProgramOp):
            _give_memory(program)
    return copy


def _give_memory(program: ProgramOp) -> None:
    used = {"arena": 0, "rows": 0}
    for op in program.body.block.ops:
        if not isinstance(op, BufferOp) or op.space.data not in used:
            continue
        t = tensor_type(op.result)
        per_row = op.space.data == "rows"
        shape = t.get_shape()[1:] if per_row else t.get_shape()
        op.offset = IntegerAttr(used[op.space.data], i64)
        nbytes = math.prod(shape) * numpy_dtype(t.element_type).itemsize
        used[op.space.data] += -(-nbytes // ALIGNMENT) * ALIGNMENT
    program.arena_bytes = IntegerAttr(used["arena"], i64)
    program.row_bytes = IntegerAttr(used["rows"], i64)


class SemanticsChecker:
    """Keeps the outputs of the module as it was read, and those of each other function that can be run."""

    def __init__(
        self, module: ModuleOp, weights: Mapping[str, Array], seed: int, timer: Timer
    ) -> None:
        self._timer = timer
        self._weights = weights
        self._seed = seed
        self._inputs = random_inputs(entry_point_of(module), seed)
        self._expected = self._run(module, self._inputs)
        self._others = self._known(module)

    def before(self, module: ModuleOp, module_pass: ModulePass) -> None:
        """What the module computed before is known."""

    def after(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """Raise UserError if `module` no longer computes what it did."""
        with self._timer("check semantics"):
            if getattr(module_pass, "redefines", False):
                self._expected = self._run(module, self._inputs)
                self._others = self._known(module)
                return
            self._compare(module, module_pass.name)

    def failed(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """There is nothing to run."""

    def _run(self, module: ModuleOp, inputs: Sequence[Array]) -> list[Array]:
        return run_module(runnable(module), self._weights, inputs)

    def _known(self, module: ModuleOp) -> dict[str, tuple[list[Array], list[Array]]]:
        """Inputs and outputs of functions beside the one that runs; of those alone that can be run."""
        found: dict[str, tuple[list[Array], list[Array]]] = {}
        for name in other_functions(module):
            alone = as_main(module, name)
            try:
                inputs = random_inputs(entry_point_of(alone), self._seed)
                found[name] = inputs, self._run(alone, inputs)
            except (IrkitError, UserError):
                continue
        return found

    def _compare(self, module: ModuleOp, name: str) -> None:
        self._check(module, name, self._expected, self._run(module, self._inputs), "the module")
        # A function may be gone: nothing called it, or all that did have its body.
        for function in set(other_functions(module)) & self._others.keys():
            inputs, expected = self._others[function]
            try:
                found = self._run(as_main(module, function), inputs)
            except UnsupportedError:
                # An op of another level is in it, which the next passes lower or delete.
                continue
            self._check(module, name, expected, found, f"@{function}")

    def _check(
        self,
        module: ModuleOp,
        name: str,
        expected: Sequence[Array],
        found: Sequence[Array],
        whose: str,
    ) -> None:
        if (text := difference(expected, found, coarsest(module))) is not None:
            repeat = note(f"inputs were drawn with --seed={self._seed}")
            message = f"pass '{name}' changed the meaning of {whose}: {text}"
            raise UserError(message, notes=[repeat])
