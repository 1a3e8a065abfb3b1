"""Adding rows to the places that indices name: what the scatters of `graph` and of `te` share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.irdl import operand_def, result_def

from irkit.dialects.csr_base import SINGLES
from irkit.dialects.element_sets import INDICES, Elements
from irkit.dialects.inference import InferredOp, Props, fail, with_shape
from irkit.dialects.types import DYNAMIC, Tensor
from irkit.weights import Array


class ScatterAddBase(InferredOp):
    """Operands, types and verifier of scatter_add."""

    ELEMENTS: ClassVar[tuple[Elements, ...]] = (SINGLES, INDICES, SINGLES)

    x = operand_def(TensorType)
    indices = operand_def(TensorType)
    updates = operand_def(TensorType)
    y = result_def(TensorType)
    assembly_format = (
        "$x `,` $indices `,` $updates attr-dict `:` functional-type(operands, results)"
    )

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        x, indices, updates = operands
        shape = tuple(x.get_shape())
        if not shape or shape[0] == 0:
            raise fail(cls, "a first dimension of one element or more", x)
        dynamic = next((t for t in operands if DYNAMIC in t.get_shape()), None)
        if dynamic is not None:
            raise fail(cls, "static shapes, since any row may be added to any place", dynamic)
        wanted = with_shape(x, (*indices.get_shape(), *shape[1:]))
        if updates != wanted:
            raise fail(cls, f"updates of type {wanted}, a row for each index", updates)
        return [x]


def scatter_added(op: ScatterAddBase, x: Array, indices: Array, updates: Array) -> Array:
    """The meaning of both: one update after another, in the order of the indices."""
    places = np.clip(indices.astype(np.int64), 0, len(x) - 1)
    found = x.copy()
    with np.errstate(all="ignore"):
        np.add.at(found, places, updates)
    return found
