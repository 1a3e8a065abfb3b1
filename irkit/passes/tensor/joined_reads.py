"""What elementwise ops over dimensions that a reshape split read, and give, where those are joined."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from irkit.dialects.reassociation import Groups, groups_of, reassociation
from irkit.dialects.types import tensor_type


def joined_operands(
    values: Sequence[SSAValue],
    reads: Sequence[AffineMap],
    expansion: tensor.ExpandShapeOp,
    made: list[Operation],
) -> tuple[list[SSAValue], list[AffineMap]]:
    """Operands, and how they are read, of loops over what was split; all must have a `joined_read`."""
    groups, loops = groups_of(expansion), tensor_type(expansion.result).get_shape()
    joined, found = list[SSAValue](), list[AffineMap]()
    for value, read in zip(values, reads, strict=True):
        how = joined_read(value, read, groups, loops)
        assert how is not None
        joined.append(_collapsed(value, how[0], made))
        found.append(how[1])
    return joined, found


def joined_read(
    value: SSAValue, read: AffineMap, groups: Groups, loops: Sequence[int]
) -> tuple[Groups, AffineMap] | None:
    """How an operand that is read by `read`, of loops of these extents, is to be collapsed, and read by loops
    that are not split: each group of loops is in the map whole, in its order, or not at all. What has one
    element is read there; loops of one round need not be in the map. None where it is otherwise."""
    of_loop = {d: g for g, group in enumerate(groups) for d in group}
    collapsed: Groups = []
    results: list[AffineExpr] = []
    position = 0
    while position < len(read.results):
        loop, taken = read.results[position], 1
        group = groups[of_loop[loop.position]] if isinstance(loop, AffineDimExpr) else []
        whole, long = group, [d for d in group if loops[d] != 1]
        if _begins(read.results[position:], whole):
            taken = len(whole)
        elif tensor_type(value).get_shape()[position] == 1:
            group = []
        elif _begins(read.results[position:], long):
            taken = len(long)
        else:
            return None
        results.append(AffineDimExpr(of_loop[group[0]]) if group else AffineConstantExpr(0))
        collapsed.append(list(range(position, position + taken)))
        position += taken
    return collapsed, AffineMap(len(groups), 0, tuple(results))


def _begins(results: Sequence[AffineExpr], loops: Sequence[int]) -> bool:
    """Whether the first of these are just such loops, of which there are some."""
    return bool(loops) and list(results[: len(loops)]) == [AffineDimExpr(d) for d in loops]


def _collapsed(value: SSAValue, groups: Groups, made: list[Operation]) -> SSAValue:
    """A value with dimensions joined by `groups`: what it was split from where it was split so."""
    if all(len(group) == 1 for group in groups):
        return value
    owner = value.owner
    if isinstance(owner, tensor.ExpandShapeOp) and groups_of(owner) == groups:
        return owner.src
    kind = tensor_type(value)
    sizes = kind.get_shape()
    shape = [sizes[g[0]] if len(g) == 1 else math.prod(sizes[d] for d in g) for g in groups]
    reshape = tensor.CollapseShapeOp.create(
        operands=[value],
        result_types=[TensorType(kind.element_type, shape)],
        properties={"reassociation": reassociation(groups)},
    )
    made.append(reshape)
    return reshape.result


def split_again(value: SSAValue, expansion: tensor.ExpandShapeOp) -> tensor.ExpandShapeOp:
    """`value` under the shape that the reshape gives."""
    shape = tensor_type(expansion.result).get_shape()
    return tensor.ExpandShapeOp.create(
        operands=[value, *expansion.operands[1:]],
        result_types=[TensorType(tensor_type(value).element_type, shape)],
        properties=dict(expansion.properties),
    )
