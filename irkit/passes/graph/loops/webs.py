"""Webs: values of loops that are one array, written in parts from iteration to iteration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects import scf, tensor
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue, Use

from irkit.dialects.graph import SliceOp
from irkit.dialects.loop_places import moves, trips_of
from irkit.dialects.loops import (
    carried_in,
    first_start,
    is_body,
    is_loop,
    starts_of,
    yielded_by,
)
from irkit.dialects.types import Tensor, tensor_type

TURNS = 32
"""What is taken for the turns of a loop that goes on as long as data say so."""
Part = tensor.ExtractSliceOp | tensor.InsertSliceOp
"""An op that reads or writes a part of an array."""


@dataclass
class Web:
    """What lies where one array does: what loops carry of it, what is inserted into it. `values` that no loop
    and no insertion makes are its sources."""

    values: list[SSAValue] = field(default_factory=list[SSAValue])

    @property
    def type(self) -> Tensor:
        """Of each of the values."""
        return tensor_type(self.values[0])

    def sources(self) -> list[SSAValue]:
        """Values that are made as a whole."""
        return [v for v in self.values if not _is_made_in_place(v)]

    def moving(self) -> list[Part]:
        """Slices whose place hangs on a loop."""
        ops = dict.fromkeys(u.operation for v in self.values for u in v.uses if is_part(u))
        return [op for op in ops if isinstance(op, Part) and moves(op)]

    def others(self) -> list[Use]:
        """Uses that need the array as it is."""
        return [u for v in self.values for u in self.others_of(v)]

    def others_of(self, value: SSAValue) -> list[Use]:
        """Those of one of its values."""
        return [u for u in value.uses if not (is_part(u) or self._hands_on(u))]

    def _hands_on(self, use: Use) -> bool:
        op = use.operation
        if is_loop(op):
            return op.results[use.index - first_start(op)] in self.values
        if isinstance(op, scf.YieldOp):
            parent = op.parent_op()
            return is_loop(parent) and parent.results[use.index] in self.values
        # Where a loop asks, it hands on what it carries.
        return isinstance(op, scf.ConditionOp)


def is_part(use: Use) -> bool:
    """Whether a use reads or writes a part of the value."""
    op = use.operation
    if isinstance(op, tensor.InsertSliceOp):
        return use.index == 1
    return isinstance(op, tensor.ExtractSliceOp | SliceOp)


def _is_made_in_place(value: SSAValue) -> bool:
    if isinstance(value, BlockArgument):
        return is_loop(value.owner.parent_op())
    return is_loop(value.owner) or isinstance(value.owner, tensor.InsertSliceOp)


def in_loop(value: SSAValue) -> bool:
    """Whether a value is made in a loop."""
    owner = value.owner
    block = owner if isinstance(owner, Block) else owner.parent
    return is_body(block)


def trips_around(op: Operation) -> int:
    """How often an op runs, by a guess where data say so. Raises UnsupportedError for bounds of a loop that
    are not known."""
    found, parent = 1, op.parent_op()
    while parent is not None:
        if isinstance(parent, scf.ForOp):
            found *= trips_of(parent).count
        elif isinstance(parent, scf.WhileOp):
            found *= TURNS
        parent = parent.parent_op()
    return found


def webs_of(function: FuncOp) -> list[Web]:
    """All webs of tensors of two dimensions or more, in order. What a loop starts from is of its web if it is
    made in a loop or in place, else it is another."""
    groups: dict[SSAValue, Web] = {}

    def of(value: SSAValue) -> Web:
        if value not in groups:
            groups[value] = Web([value])
        return groups[value]

    for a, b in _joined(function):
        one, two = of(a), of(b)
        if one is not two:
            one.values.extend(two.values)
            groups.update(dict.fromkeys(two.values, one))
    for op in function.walk():
        if isinstance(op, tensor.ExtractSliceOp):
            of(op.source)
    unique = {id(w): w for w in groups.values()}
    return [w for w in unique.values() if len(w.type.get_shape()) > 1 and prod(w.type.get_shape())]


def _joined(function: FuncOp) -> Iterator[tuple[SSAValue, SSAValue]]:
    """Pairs of values that lie in one place."""
    for op in function.walk():
        if isinstance(op, tensor.InsertSliceOp):
            yield op.dest, op.result
        elif is_loop(op):
            if isinstance(op, scf.WhileOp):
                yield from zip(op.before_region.block.args, op.results, strict=True)
            for n, result in enumerate(op.results):
                yield carried_in(op)[n], result
                yield yielded_by(op)[n], result
                start = starts_of(op)[n]
                if in_loop(start) or _is_made_in_place(start):
                    yield start, result
