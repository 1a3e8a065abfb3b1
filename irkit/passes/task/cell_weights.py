"""Weights of recurrent cells as matrices of the products that a cell is split into."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.constants import constant, constant_array
from irkit.dialects.linalg_generic import row_term
from irkit.dialects.reassociation import reassociation
from irkit.dialects.roperator_root import Root
from irkit.dialects.task import LaunchOp
from irkit.dialects.types import tensor_type
from irkit.weights import WeightStore


def collapsed(value: SSAValue, groups: Sequence[Sequence[int]]) -> tensor.CollapseShapeOp:
    """`value` with the dimensions of each group in one; the batch is a group of its own."""
    kind = tensor_type(value)
    sizes = [math.prod(kind.get_shape()[d] for d in group) for group in groups]
    return tensor.CollapseShapeOp.create(
        operands=[value],
        result_types=[TensorType(kind.element_type, sizes)],
        properties={"reassociation": reassociation(groups)},
    )


def by_rows_of(w: SSAValue) -> tensor.CollapseShapeOp:
    """Weights (unit, sum, term) as a matrix of a row for each sum."""
    last = tensor_type(w).get_num_dims() - 1
    return collapsed(w, [[*range(last)], [last]])


@dataclass
class CellWeights:
    """Weights of launches as matrices, each made once."""

    store: WeightStore
    known: dict[tuple[SSAValue, bool], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, bool], SSAValue]
    )

    def are_known(self, root: Root, launches: Sequence[LaunchOp]) -> bool:
        """Whether all weights of a cell are constants."""
        terms = [row_term(op) for op in root.chain]
        numbers = [t.w.index for t in terms if t is not None and isinstance(t.w, BlockArgument)]
        return len(numbers) == len(terms) and all(
            constant_array(launch.arguments[n], self.store) is not None
            for launch in launches
            for n in numbers
        )

    def matrix(self, w: SSAValue, launch: LaunchOp, by_rows: bool) -> tuple[SSAValue, bool]:
        """A view of `w` that has a row for each sum, or of a constant another one as is asked for."""
        array = constant_array(w, self.store)
        if array is None:
            view = by_rows_of(w)
            Rewriter.insert_op(view, InsertPoint.before(launch))
            return view.result, True
        if (w, by_rows) not in self.known:
            rows = array.reshape(-1, array.shape[-1])
            made = constant(np.ascontiguousarray(rows if by_rows else rows.T), self.store)
            assert isinstance(w.owner, Operation)
            Rewriter.insert_op(made, InsertPoint.after(w.owner))
            self.known[w, by_rows] = made.result
        return self.known[w, by_rows], by_rows
