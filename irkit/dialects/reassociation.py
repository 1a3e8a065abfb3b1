"""Which dimensions a reshape joins, or splits, as numbers and as the attribute of its op."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import tensor
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, i64

Groups = list[list[int]]
"""Per dimension of the shape with fewer: those of the other that it is made of, in order."""


def groups_of(reshape: tensor.CollapseShapeOp | tensor.ExpandShapeOp) -> Groups:
    """What `tensor.collapse_shape` joins, or `tensor.expand_shape` splits a dimension into."""
    return [[int(i.value.data) for i in group.data] for group in reshape.reassociation.data]


def reassociation(groups: Sequence[Sequence[int]]) -> ArrayAttr[ArrayAttr[IntegerAttr]]:
    """The attribute that says so."""
    return ArrayAttr([ArrayAttr([IntegerAttr(d, i64) for d in group]) for group in groups])
