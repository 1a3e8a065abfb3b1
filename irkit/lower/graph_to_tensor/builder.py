"""Builds tensor-level ops: loop nests (`nests.py`), and what gives elements another shape."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import tensor
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Region, SSAValue

from irkit.dialects.reassociation import Groups, reassociation
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.dialects.types import tensor as make_type
from irkit.lower.graph_to_tensor.nests import NestBuilder
from irkit.lower.graph_to_tensor.reassociation import reassociate
from irkit.lower.graph_to_tensor.scalars import Scalars


class TensorBuilder(NestBuilder):
    """A builder of loop nests that reshapes, transposes, pads and cuts too."""

    def reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """The same elements under another shape: collapse, expand, both, or neither.

        The constant that is reshaped is a constant again.
        """
        have = tensor_type(value).get_shape()
        if tuple(have) == tuple(shape):
            return value
        known = self.packed(value, ("reshape", *shape), lambda array: array.reshape(shape))
        if known is not None:
            return known
        if 0 in have:
            return self.empty(shape, tensor_type(value).element_type, [value])
        if not have:
            # xDSL's tensor.expand_shape takes no operand without dimensions.
            return self.broadcast(value, (), shape, [])
        groups = reassociate(have, shape)
        sources, targets = [h for h, _ in groups], [w for _, w in groups]
        middle = [DYNAMIC if have[h[0]] == DYNAMIC else prod(have[d] for d in h) for h in sources]
        if len(middle) != len(have):
            value = self._collapse(value, middle, sources)
        if len(middle) != len(shape):
            value = self._expand(value, shape, targets)
        return value

    def _collapse(self, value: SSAValue, shape: Sequence[int], groups: Groups) -> SSAValue:
        result = make_type(tensor_type(value).element_type, shape)
        return self.insert(
            tensor.CollapseShapeOp.create(
                operands=[value],
                result_types=[result],
                properties={"reassociation": reassociation(groups)},
            )
        )

    def _expand(self, value: SSAValue, shape: Sequence[int], groups: Groups) -> SSAValue:
        result = make_type(tensor_type(value).element_type, shape)
        sizes = self.sizes(shape, [value])
        return self.insert(
            tensor.ExpandShapeOp(value, sizes, reassociation(groups), list(shape), result)
        )

    def transpose(self, value: SSAValue, permutation: Sequence[int]) -> SSAValue:
        """Dimension `d` of the result is dimension `permutation[d]` of `value`.

        The constant that is transposed is a constant again.
        """
        if list(permutation) == list(range(len(permutation))):
            return value
        known = self.packed(
            value, ("transpose", *permutation), lambda array: array.transpose(permutation)
        )
        if known is not None:
            return known
        shape = tensor_type(value).get_shape()
        index = [list(permutation).index(d) for d in range(len(shape))]
        return self.broadcast(value, index, [shape[p] for p in permutation], [value])

    def pad(
        self, value: SSAValue, low: Sequence[int], high: Sequence[int], fill: float
    ) -> SSAValue:
        """`value` with `low` elements before and `high` after it in each dimension, all `fill`."""
        if not any(low) and not any(high):
            return value
        t = tensor_type(value)
        shape = [
            s if s == DYNAMIC else s + a + b
            for s, a, b in zip(t.get_shape(), low, high, strict=True)
        ]
        block = Block(arg_types=[IndexType()] * len(shape))
        scalars = Scalars(block)
        padding = scalars.as_type(scalars.constant(fill, t.element_type), t.element_type)
        block.add_op(tensor.YieldOp(padding))
        result = make_type(t.element_type, shape)
        return self.insert(tensor.PadOp(value, [], [], Region(block), low, high, result))

    def concatenate(self, values: Sequence[SSAValue], axis: int) -> SSAValue:
        """Values one after another along `axis`, which is no batch."""
        shapes = [list(tensor_type(v).get_shape()) for v in values]
        whole = [*shapes[0]]
        whole[axis] = sum(shape[axis] for shape in shapes)
        result = make_type(tensor_type(values[0]).element_type, whole)
        return self.insert(tensor.ConcatOp(list(values), axis, result))

    def cut(self, value: SSAValue, offsets: Sequence[int], shape: Sequence[int]) -> SSAValue:
        """The part of `value` of extents `shape` that begins at `offsets`."""
        t = tensor_type(value)
        if tuple(t.get_shape()) == tuple(shape):
            return value
        sizes = [self.batch([value]) if s == DYNAMIC else s for s in shape]
        ones, result = [1] * len(shape), make_type(t.element_type, shape)
        return self.insert(tensor.ExtractSliceOp(value, offsets, sizes, ones, result))
