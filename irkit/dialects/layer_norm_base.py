"""Layer normalisation: what that of `graph` and that of `te` share, and what it means in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import BoolAttr, Float64Type, FloatAttr, TensorType
from xdsl.irdl import operand_def, prop_def, result_def

from irkit.dialects.element_sets import FLOATS, Elements
from irkit.dialects.inference import InferredOp, Props, check_axis, fail
from irkit.dialects.types import DYNAMIC, Tensor
from irkit.weights import Array


class LayerNormBase(InferredOp):
    """Operand, types and verifier of a layer normalisation."""

    ELEMENTS: ClassVar[tuple[Elements, ...]] = (FLOATS,)

    x = operand_def(TensorType)
    epsilon = prop_def(FloatAttr[Float64Type])
    centred = prop_def(BoolAttr)
    y = result_def(TensorType)
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        (x,) = operands
        last = check_axis(cls, x.get_num_dims() - 1, x)
        if x.get_shape()[last] in (0, DYNAMIC):
            raise fail(cls, "a last dimension of known extent, 1 or more", x)
        return [x]

    @property
    def raised_by(self) -> float:
        """The number `epsilon`."""
        return self.epsilon.value.data

    @property
    def is_centred(self) -> bool:
        """Whether the mean is taken away first."""
        return bool(self.centred.value.data)


def normalised(op: LayerNormBase, x: Array) -> Array:
    """The meaning of a layer normalisation, of float32 or float64; sums in the order of the columns."""
    kind = x.dtype.type
    if op.is_centred:
        x = x - _mean(x)
    return x / np.sqrt(_mean(x * x) + kind(op.raised_by))


def _mean(x: Array) -> Array:
    """Of each row."""
    total = np.zeros(x.shape[:-1], x.dtype)
    for column in range(x.shape[-1]):
        total = total + x[..., column]
    return (total / x.dtype.type(x.shape[-1]))[..., None]
