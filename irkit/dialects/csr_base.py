"""Rows of a CSR matrix: what the ops of `graph` and of `te` on them share.

Four arrays are one: `data` and `indices` (1×stored) are the elements that are stored and their columns, `starts` and
`ends` (one a row) where a row's begin and end. With `starts = indptr[:-1]` and `ends = indptr[1:]` these are the three
arrays of SciPy, and a slice of the rows is one of `starts` and `ends`. How many elements are stored is a length of its
own, beside the batch: it stands behind a leading 1, and only in what comes from outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, prop_def, result_def, var_operand_def

from irkit.dialects.csr_steps import StepFault, computed, result_type
from irkit.dialects.element_sets import BOOLEANS, NODES, SINGLES, Elements
from irkit.dialects.inference import InferredOp, Props, check_rank, fail
from irkit.dialects.types import DYNAMIC, Tensor, tensor
from irkit.weights import Array

PLACES = Elements("i64", frozenset((i64,)))
KINDS = ("sum", "max", "min")


def is_stored_length(shape: Sequence[int]) -> bool:
    """Whether a shape is that of stored elements of which it is not known how many there are."""
    return tuple(shape) == (1, DYNAMIC)


class CsrBase(InferredOp):
    """What the ops have in common; `BESIDE` is where the operands of steps begin."""

    BESIDE: ClassVar[int] = 4

    @property
    def step_texts(self) -> list[str]:
        """The steps."""
        return _texts(self.properties)

    @property
    def beside(self) -> list[SSAValue]:
        """The operands that steps read."""
        return list(self.operands[self.BESIDE :])

    @classmethod
    def _element(cls, operands: Sequence[Tensor], props: Props, columns: int | None) -> Attribute:
        """The type of what is multiplied or reduced. Raises VerifyException."""
        data, indices, starts, ends = operands[:4]
        check_rank(cls, "data", data, 2)
        stored = data.get_shape()
        if stored[0] != 1:
            raise fail(cls, "data of 1xstored", data)
        if indices != tensor(i32, stored):
            raise fail(cls, f"indices of type {tensor(i32, stored)}", indices)
        check_rank(cls, "starts", starts, 1)
        if starts.element_type != i64 or ends != starts:
            raise fail(cls, "starts and ends of one type, i64", f"{starts} and {ends}")
        beside = operands[cls.BESIDE :]
        rows = (starts.get_shape()[0], 1)
        widths = {t.get_shape()[0] for t in beside if t.get_num_dims() == 1} | {1}
        if columns is not None:
            widths.add(columns)
        shapes = all(t.get_num_dims() == 1 or tuple(t.get_shape()) == rows for t in beside)
        if not shapes or len(widths) > 2 or DYNAMIC in widths:
            shown = ", ".join(map(str, beside))
            raise fail(cls, "numbers, one value a column or one a row beside the elements", shown)
        try:
            types = [t.element_type for t in beside]
            found = result_type(_texts(props), data.element_type, types)
        except StepFault as fault:
            raise fail(cls, "steps that are a chain of scalars", fault) from None
        if found not in SINGLES:
            raise fail(cls, f"steps that give {SINGLES.text}", found)
        return found


def _texts(props: Props) -> list[str]:
    found = props.get("steps", ArrayAttr([]))
    assert isinstance(found, ArrayAttr)
    return [cast(StringAttr, s).data for s in cast("ArrayAttr[Attribute]", found)]


class CsrMatmulBase(CsrBase):
    """Operands, types and verifier of a product with a matrix."""

    BESIDE: ClassVar[int] = 5
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (
        *(SINGLES, NODES, PLACES, PLACES, SINGLES),
        SINGLES | BOOLEANS,
    )

    data = operand_def(TensorType)
    indices = operand_def(TensorType)
    starts = operand_def(TensorType)
    ends = operand_def(TensorType)
    matrix = operand_def(TensorType)
    others = var_operand_def(TensorType)
    steps = prop_def(ArrayAttr[StringAttr])
    y = result_def(TensorType)
    assembly_format = (
        "$data `,` $indices `,` $starts `,` $ends `,` $matrix (`,` $others^)? attr-dict "
        "`:` functional-type(operands, results)"
    )

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        matrix = operands[4]
        check_rank(cls, "matrix", matrix, 2)
        columns, width = matrix.get_shape()
        if 0 in (columns, width) or DYNAMIC in (columns, width):
            raise fail(cls, "a matrix of known size that is not empty", matrix)
        element = cls._element(operands, props, columns)
        if matrix.element_type != element:
            raise fail(cls, f"a matrix of {element}, as the steps give", matrix)
        return [tensor(element, (operands[2].get_shape()[0], width))]


class CsrReduceBase(CsrBase):
    """Operands, types and verifier of a reduction."""

    ELEMENTS: ClassVar[tuple[Elements, ...]] = (
        *(SINGLES, NODES, PLACES, PLACES),
        SINGLES | BOOLEANS,
    )

    data = operand_def(TensorType)
    indices = operand_def(TensorType)
    starts = operand_def(TensorType)
    ends = operand_def(TensorType)
    others = var_operand_def(TensorType)
    kind = prop_def(StringAttr)
    initial = prop_def(FloatAttr[Float64Type])
    steps = prop_def(ArrayAttr[StringAttr])
    y = result_def(TensorType)
    assembly_format = (
        "$data `,` $indices `,` $starts `,` $ends (`,` $others^)? attr-dict "
        "`:` functional-type(operands, results)"
    )

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        kind = props["kind"]
        assert isinstance(kind, StringAttr)
        if kind.data not in KINDS:
            raise fail(cls, f"a kind among {', '.join(KINDS)}", f"'{kind.data}'")
        element = cls._element(operands, props, None)
        return [tensor(element, (operands[2].get_shape()[0], 1))]


class CsrDenseBase(CsrBase):
    """Operands, types and verifier of dense rows."""

    ELEMENTS: ClassVar[tuple[Elements, ...]] = (SINGLES, NODES, PLACES, PLACES)

    data = operand_def(TensorType)
    indices = operand_def(TensorType)
    starts = operand_def(TensorType)
    ends = operand_def(TensorType)
    columns = prop_def(IntegerAttr[IntegerType])
    initial = prop_def(FloatAttr[Float64Type])
    y = result_def(TensorType)
    assembly_format = (
        "$data `,` $indices `,` $starts `,` $ends attr-dict `:` functional-type(operands, results)"
    )

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        columns = props["columns"]
        assert isinstance(columns, IntegerAttr)
        if columns.value.data < 1:
            raise fail(cls, "1 column or more", columns.value.data)
        element = cls._element(operands, props, None)
        return [tensor(element, (operands[2].get_shape()[0], columns.value.data))]


def _spans(starts: Array, ends: Array, stored: int) -> tuple[Array, Array]:
    """The place of each element of each row, in order of rows, and its row."""
    low = np.clip(starts, 0, stored)
    high = np.clip(ends, 0, stored)
    counts = np.maximum(high - low, 0)
    row = np.repeat(np.arange(len(starts)), counts)
    before = np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(low, counts) + np.arange(len(row)) - before, row


def _elements(op: CsrBase, operands: Sequence[Array], columns: int) -> tuple[Array, Array, Array]:
    """What becomes of each element of each row, its column, and its row."""
    data, indices, starts, ends = operands[:4]
    place, row = _spans(starts, ends, data.shape[1])
    column = np.clip(indices[0, place], 0, columns - 1)
    beside = [
        a[row, 0] if a.ndim == 2 else a[0] if len(a) == 1 else a[column]
        for a in operands[op.BESIDE :]
    ]
    found = computed(op.step_texts, data[0, place], beside)
    return np.broadcast_to(found, row.shape), column, row


def csr_matmul(op: CsrMatmulBase, *operands: Array) -> Array:
    """Per row, the sum of its elements times the matrix's rows, in the order in which they are stored."""
    matrix = operands[4]
    values, column, row = _elements(op, operands, len(matrix))
    total = np.zeros((len(operands[2]), matrix.shape[1]), matrix.dtype)
    with np.errstate(all="ignore"):
        np.add.at(total, row, values[:, None] * matrix[column])
    return total


def csr_reduce(op: CsrReduceBase, *operands: Array) -> Array:
    """Per row, its elements combined with `initial`, in the order in which they are stored."""
    known = [len(a) for a in operands[4:] if a.ndim == 1 and len(a) > 1]
    values, _, row = _elements(op, operands, known[0] if known else 1 << 31)
    found = np.full(len(operands[2]), op.initial.value.data, values.dtype)
    combine = {"sum": np.add, "max": np.maximum, "min": np.minimum}[op.kind.data]
    with np.errstate(all="ignore"):
        combine.at(found, row, values)
    return found[:, None]


def csr_dense(op: CsrDenseBase, *operands: Array) -> Array:
    """Rows×columns: what is stored where it is stored, and `initial` elsewhere."""
    values, column, row = _elements(op, operands, op.columns.value.data)
    found = np.full((len(operands[2]), op.columns.value.data), op.initial.value.data, values.dtype)
    found[row, column] = values
    return found
