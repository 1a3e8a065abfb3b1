"""How a function of tensors is computed chunk by chunk: sweeps over its arguments, and what is merged."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.tensor import InsertSliceOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from irkit.dialects.graph import ReduceOp, ReshapeOp
from irkit.dialects.types import ints, is_float, tensor_type
from irkit.passes.program.splitting.bands import Band, Unsplittable
from irkit.passes.program.splitting.demands import Demands, Root, demanded, described, leading
from irkit.passes.program.splitting.rules import shape_of
from irkit.passes.program.splitting.sweeps import (
    Ended,
    Merge,
    SplitPlan,
    Sweep,
    Write,
    roots_of,
)

MERGED = ("sum", "mean", "max", "min", "prod")
"""Reductions of which parts are put together."""


def split(
    function: FuncOp,
    live: Sequence[int],
    small: Collection[int] = (),
    homes: Mapping[int, int] | None = None,
) -> SplitPlan:
    """How the results `live` of a function of tensors at the graph level are computed in chunks.

    `homes` says of results which arguments they are the last contents of. `small` are numbers of arguments
    that may be on the device as a whole, beside chunks of others. Raises Unsplittable, naming the op and why,
    where that cannot be.
    """
    return _Planner(function, small, homes or {}).plan(live)


class _Planner:
    def __init__(self, function: FuncOp, small: Collection[int], homes: Mapping[int, int]) -> None:
        self._homes = homes
        self._function, self._block = function, function.body.block
        self._large = [a for a in self._block.args if a.index not in small]
        self._ended: dict[SSAValue, Ended | Unsplittable] = {}
        self._levels: dict[ReduceOp, int] = {}
        self._ways: dict[tuple[SSAValue, int], tuple[Band, int] | Unsplittable] = {}
        extents = {max(shape_of(a), default=1) for a in self._large}
        extents |= {shape_of(a)[d] for a in self._large if (d := leading(shape_of(a))) is not None}
        self._extents = sorted(extents, reverse=True)

    def plan(self, live: Sequence[int]) -> SplitPlan:
        """All of it."""
        terminator = self._block.last_op
        assert isinstance(terminator, ReturnOp)
        writes: list[Write] = []
        ended: dict[int, Ended] = {}
        bases: dict[int, Ended] = {}
        for number in live:
            value = terminator.operands[number]
            try:
                parts, base = self._parts(number, value)
            except Unsplittable as reason:
                ended[number] = self._ended_result(value, reason)
                continue
            writes += parts
            if base is not None:
                bases[number] = base
        return self._sweeps(writes, ended, bases)

    # -- results

    def _ended_result(self, value: SSAValue, reason: Unsplittable) -> Ended:
        try:
            return self._end_of(value)
        except Unsplittable as other:
            # Of what has no rows, the first reason is that.
            raise (other if leading(shape_of(value)) is None else reason) from None

    def _parts(self, number: int, value: SSAValue) -> tuple[list[Write], Ended | None]:
        """A result as writes of rows, and what is there before, if that has to be computed."""
        inserts: list[InsertSliceOp] = []
        inner = _stripped(value)
        while isinstance(inner.owner, InsertSliceOp) and _is_static(inner.owner):
            if self._is_rows(inner):
                break
            inserts.append(inner.owner)
            inner = _stripped(inner.owner.dest)
        if not inserts:
            return [self._write(number, value)], None
        writes = [self._inserted(number, op) for op in reversed(inserts)]
        spans = sorted((w.first, w.first + shape_of(w.value)[w.axis]) for w in writes)
        shapes = {w.shape for w in writes}
        if len(shapes) > 1 or any(a[1] > b[0] for a, b in pairwise(spans)):
            raise Unsplittable(f"{described(inserts[0])}: it writes rows that others write too")
        if isinstance(inner, BlockArgument) and inner.index == self._homes.get(number):
            return writes, None
        try:
            base = self._end_of(inserts[-1].dest)
        except Unsplittable:
            whole = self._write(number, inserts[-1].dest)
            return [whole, *(replace(w, over=True) for w in writes)], None
        if base.merges:
            raise Unsplittable(f"{described(inserts[-1])}: it writes to what is reduced")
        return writes, base

    def _is_rows(self, value: SSAValue) -> bool:
        """Whether an insertion is computed by rows like other ops."""
        insert = value.owner
        assert isinstance(insert, InsertSliceOp)
        axis = leading(shape_of(value))
        return axis is None or (
            ints(insert.static_offsets)[axis] == 0
            and ints(insert.static_sizes)[axis] == shape_of(value)[axis]
        )

    def _write(self, number: int, value: SSAValue) -> Write:
        axis = leading(shape_of(value))
        if axis is None:
            raise Unsplittable(f"result {number} has one element")
        band, units = self._way(value, axis)
        return Write(number, value, band, units)

    def _inserted(self, number: int, insert: InsertSliceOp) -> Write:
        axis = leading(shape_of(insert.result))
        assert axis is not None
        first, step = ints(insert.static_offsets)[axis], ints(insert.static_strides)[axis]
        if step != 1:
            raise Unsplittable(
                f"{described(insert)}: it writes every {step}th row of dimension {axis}, and chunks lie in "
                "one piece"
            )
        if shape_of(insert.source)[axis] == 1:
            raise Unsplittable(f"{described(insert)}: it writes one row")
        band, units = self._way(insert.source, axis)
        return Write(number, insert.source, band, units, first, insert)

    def _way(self, value: SSAValue, axis: int) -> tuple[Band, int]:
        """How rows along a dimension of a value are computed in chunks that arguments have. Raises
        Unsplittable."""
        if (value, axis) not in self._ways:
            try:
                self._ways[value, axis] = self._found_way(value, axis)
            except Unsplittable as reason:
                self._ways[value, axis] = reason
        found = self._ways[value, axis]
        if isinstance(found, Unsplittable):
            raise found
        return found

    def _found_way(self, value: SSAValue, axis: int) -> tuple[Band, int]:
        extent = shape_of(value)[axis]
        reason: Unsplittable | None = None
        fitting = [n for n in self._extents if n < extent and n > 1 and extent % n == 0]
        for units in (extent, *fitting):
            rows = extent // units
            band = Band(axis, rows, 0, rows - 1)
            try:
                found = self._demands([(value, band)])
            except Unsplittable as met:
                reason = reason or met
                continue
            if any(a in found.bands for a in self._large):
                return band, units
            op = value.owner
            name = described(op) if isinstance(op, Operation) else "an argument"
            reason = reason or Unsplittable(f"{name}: no argument has rows that its rows are of")
        assert reason is not None
        raise reason

    def _demands(self, roots: Sequence[Root]) -> Demands:
        return demanded(self._block, roots, self._is_given)

    def _is_given(self, value: SSAValue) -> bool:
        try:
            return bool(self._end_of(value).merges)
        except Unsplittable:
            return False

    # -- what hangs on reductions

    def _end_of(self, value: SSAValue) -> Ended:
        """A value as one that is computed from merged reductions and small arguments. Raises Unsplittable
        where it is no such thing."""
        if value not in self._ended:
            try:
                self._ended[value] = self._made_of(value)
            except Unsplittable as reason:
                self._ended[value] = reason
        found = self._ended[value]
        if isinstance(found, Unsplittable):
            raise found
        return found

    def _made_of(self, value: SSAValue) -> Ended:
        merges: dict[ReduceOp, Merge] = {}
        arguments: list[BlockArgument] = []
        pending, seen = [(value, "the results")], set[SSAValue]()
        while pending:
            at, by = pending.pop()
            if at in seen:
                continue
            seen.add(at)
            op = at.owner
            if isinstance(at, BlockArgument):
                if at in self._large:
                    name = at.name_hint or f"arg{at.index}"
                    raise Unsplittable(f"{by}: it needs all of argument %{name} at once")
                arguments.append(at)
                continue
            assert isinstance(op, Operation)
            if op.regions:
                raise Unsplittable(
                    f"{described(op)}: a loop has all of what it carries in each round"
                )
            merge = self._merge(op)
            if merge is None:
                pending += [(v, described(op)) for v in op.operands]
            else:
                merges[merge.op] = merge
        level = max((self._levels[op] for op in merges), default=-1)
        return Ended(value, list(merges.values()), arguments, level)

    def _merge(self, op: Operation) -> Merge | None:
        if not isinstance(op, ReduceOp) or op.kind.data not in MERGED:
            return None
        if op.kind.data == "mean" and not is_float(tensor_type(op.x).element_type):
            return None
        for axis in ints(op.axes):
            if shape_of(op.x)[axis] < 2:
                continue
            try:
                band, units = self._way(op.x, axis)
            except Unsplittable:
                continue
            self._levels[op] = self._level(self._demands([(op.x, band)]))
            return Merge(op, band, units)
        return None

    def _level(self, demands: Demands) -> int:
        return max((self._end_of(v).level + 1 for v in demands.given), default=0)

    # -- sweeps

    def _sweeps(
        self, writes: list[Write], ended: dict[int, Ended], bases: dict[int, Ended]
    ) -> SplitPlan:
        given: dict[SSAValue, Ended] = {}
        merges: dict[ReduceOp, Merge] = {}
        pending = list(ended.values())
        for write in writes:
            pending += self._given(self._demands(roots_of([write], [])), given)
        while pending:
            for merge in pending.pop().merges:
                if merge.op not in merges:
                    merges[merge.op] = merge
                    pending += self._given(self._demands(roots_of([], [merge])), given)
        sweeps: list[Sweep] = []
        floors: dict[int, int] = {}
        for write in writes:
            level = self._level(self._demands(roots_of([write], [])))
            if write.over:
                level = max(level, floors[write.result] + 1)
            floors.setdefault(write.result, level)
            self._join(sweeps, level, write.units, [write], [])
        for merge in merges.values():
            self._join(sweeps, self._levels[merge.op], merge.units, [], [merge])
        sweeps.sort(key=lambda s: s.level)
        return SplitPlan(self._function, sweeps, ended, given, bases)

    def _given(self, demands: Demands, given: dict[SSAValue, Ended]) -> Iterator[Ended]:
        for value in demands.given:
            if value not in given:
                given[value] = self._end_of(value)
                yield given[value]

    def _join(
        self,
        sweeps: list[Sweep],
        level: int,
        units: int,
        writes: list[Write],
        merges: list[Merge],
    ) -> None:
        """Into the sweep that goes the same way, if there is one."""
        for sweep in sweeps:
            if (sweep.level, sweep.units) != (level, units):
                continue
            both = Sweep(level, units, sweep.writes + writes, sweep.merges + merges)
            try:
                sweep.demands = self._demands(both.roots)
            except Unsplittable:
                continue
            sweep.writes, sweep.merges = both.writes, both.merges
            return
        made = Sweep(level, units, writes, merges)
        made.demands = self._demands(made.roots)
        sweeps.append(made)


def _stripped(value: SSAValue) -> SSAValue:
    """What a value is under its own shape."""
    while isinstance(value.owner, ReshapeOp) and not isinstance(value, BlockArgument):
        value = value.owner.x
    return value


def _is_static(insert: InsertSliceOp) -> bool:
    return len(insert.operands) == 2 and len(shape_of(insert.source)) == len(
        shape_of(insert.result)
    )
