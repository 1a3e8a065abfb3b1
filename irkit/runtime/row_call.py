"""One row through a program: what a call asks of any arrays is known beforehand, and not asked.

A call takes microseconds: its array is asked for type, shape, layout, dtype and values, and nothing else is
looked up. What is not plain is left to the executor, which mends it or says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from irkit.runtime.input_policy import InputPolicy
from irkit.runtime.workspace import Workspace
from irkit.weights import Array

# Looked up once: a call looks up little.
_ndarray, _empty = np.ndarray, np.empty
_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
_MOST_SPARE = 1 << 16
"""Bytes of outputs that a workspace keeps for calls that want another."""


class OneRow(Protocol):
    """What runs one row straight through, on the caller's thread."""

    policy: InputPolicy
    row_outputs: Sequence[tuple[tuple[int, ...], np.dtype[Any]]]

    @property
    def plain_row(self) -> bool:
        """Whether it does so now: the mode may be another."""
        ...

    def workspace(self) -> Workspace:
        """One that no call has."""
        ...

    def run_row(
        self,
        inputs: Sequence[Array],
        outputs: Sequence[Array],
        space: Workspace | None = None,
        only: int | None = None,
    ) -> None:
        """Fill `outputs`, or of them `only`, in a workspace with room for one row, and put that back."""
        ...


class RowCall:
    """Calls with one row that want one output, of a program of one input; thread-safe.

    What is computed of other outputs goes into memory of the call's workspace. With `casts`, float64 is
    rounded to float32 if that is what the program takes and the model's own library does.
    """

    def __init__(self, executor: OneRow, number: int, casts: bool) -> None:
        policy = executor.policy
        self._executor, self._number = executor, number
        self._dtype = policy.dtypes[0]
        self._shape = (1, *policy.ports[0].shape[1:])
        self._wanted = executor.row_outputs[number]
        table, check = len(self._shape) == 2, policy.value_check(0)
        self._check: Callable[[Array], bool] | None = None
        if policy.restricts(0) and check is not None:
            self._check = check.of_table if table else check.holds
        rounds = casts and table and self._dtype == _FLOAT32 and policy.converts("float64")
        self._narrowed = check.narrowed if rounds and check is not None else None

    @staticmethod
    def of(executor: OneRow, number: int, casts: bool) -> RowCall | None:
        """None where a row takes memory that is better not kept, or values that no compiled check knows."""
        policy = executor.policy
        size = sum(int(np.prod(shape)) * d.itemsize for shape, d in executor.row_outputs)
        unknown = policy.restricts(0) and policy.value_check(0) is None
        return None if unknown or size > _MOST_SPARE else RowCall(executor, number, casts)

    def __call__(self, x: Any) -> Array | None:
        """The output for an array of one row; None for what else, and for values that may be refused."""
        if type(x) is not _ndarray or x.shape != self._shape:
            return None
        flags = x.flags
        if not (flags.c_contiguous and flags.aligned):
            return None
        executor = self._executor
        if not executor.plain_row:
            return None
        if x.dtype == self._dtype:
            if self._check is not None and not self._check(x):
                return None
            space = executor.workspace()
        elif self._narrowed is not None and x.dtype == _FLOAT64:
            space, wide = executor.workspace(), x
            x = space.row_input
            if x is None:
                x = space.row_input = np.empty(self._shape, _FLOAT32)
            # A workspace that is not put back is let go.
            if not self._narrowed(wide, x):
                return None
        else:
            return None
        arrays = space.row_outputs
        if arrays is None:
            arrays = space.row_outputs = [np.empty(*output) for output in executor.row_outputs]
        arrays = arrays.copy()
        found = arrays[self._number] = _empty(*self._wanted)
        executor.run_row((x,), arrays, space, self._number)
        return found
