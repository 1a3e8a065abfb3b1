"""What turns of a loop write of an array that it carries, and what the array holds behind the last turn.

A store writes, in turn n, row `first + step * n` of one dimension: all of it, or where a mask says so. An
element holds in the end what the last turn wrote that wrote it, and of one turn's stores the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from xdsl.dialects import scf, tensor
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from irkit.dialects.graph import AndOp, CompareOp, GraphOp, ReshapeOp, WhereOp
from irkit.dialects.loop_places import Affine, offsets_of, trips_of
from irkit.dialects.loops import carried_in, starts_of, yielded_by
from irkit.dialects.types import DYNAMIC, int_array, ints, tensor_type
from irkit.dialects.types import tensor as tensor_like
from irkit.passes.graph.loops.all_turns import AllTurns, Emitter, OneByOne, shape_of

Place = int | SSAValue


@dataclass(frozen=True)
class Store:
    """Turn n writes `value`, of the shape of `like`, where `mask` holds (None: everywhere), at `places`, in
    dimension `axis` `steps[axis] * n` behind that. `sizes` and `steps`: of what all turns write."""

    op: tensor.InsertSliceOp
    axis: int
    places: list[Place]
    sizes: list[int]
    steps: list[int]
    value: SSAValue
    mask: SSAValue | None
    like: SSAValue

    @property
    def first(self) -> int:
        """Where it is in turn 0."""
        place = self.places[self.axis]
        assert isinstance(place, int)
        return place

    def is_whole(self) -> bool:
        """Whether all turns together write each element of the array."""
        return self.sizes == list(shape_of(self.op.dest))


@dataclass
class Carried:
    """One array that a loop carries, and what a turn writes to it, in order."""

    loop: scf.ForOp
    number: int
    stores: list[Store]

    @property
    def start(self) -> SSAValue:
        """What the loop starts from."""
        return starts_of(self.loop)[self.number]

    def values(self) -> list[SSAValue]:
        """The array in a turn: as it comes, and behind each store."""
        return [carried_in(self.loop)[self.number], *(s.op.result for s in self.stores)]

    def check_read(self, op: tensor.ExtractSliceOp) -> None:
        """Raise OneByOne unless a part that a turn reads is as it was before the loop."""
        before = self.values().index(op.source)
        for number, store in enumerate(self.stores):
            if not _apart(op, store.op) and not _follows(self.loop, op, store, number < before):
                raise OneByOne("a turn reads what another may have written")

    def needs(self) -> list[SSAValue]:
        """Values of a turn on which what is written hangs."""
        return [v for s in self.stores for v in (s.value, s.mask) if v is not None]

    def behind(self, turns: AllTurns) -> SSAValue:
        """What the array holds behind the last turn."""
        return _written(self, turns)


def carried_array(loop: scf.ForOp, number: int) -> Carried:
    """An array that a loop carries. Raises OneByOne unless each turn writes its rows of it."""
    return Carried(loop, number, _stores(loop, number))


def _stores(loop: scf.ForOp, number: int) -> list[Store]:
    argument, value = carried_in(loop)[number], yielded_by(loop)[number]
    chain: list[tensor.InsertSliceOp] = []
    while value is not argument:
        op = value.owner
        if not isinstance(op, tensor.InsertSliceOp) or op.parent is not loop.body.block:
            raise OneByOne("a turn needs what the one before it computes")
        chain.insert(0, op)
        value = op.dest
    for value in (argument, *(op.result for op in chain)):
        for use in value.uses:
            if not _is_known(use.operation, use.index, chain, loop):
                raise OneByOne(f"'{use.operation.name}' needs all of an array that turns write")
    return [_store(op, loop) for op in chain]


def _is_known(op: Operation, index: int, chain: Sequence[Operation], loop: scf.ForOp) -> bool:
    if isinstance(op, tensor.ExtractSliceOp):
        return op.parent is loop.body.block
    if isinstance(op, tensor.InsertSliceOp):
        return index == 1 and op in chain
    return isinstance(op, scf.YieldOp) and op.parent is loop.body.block


def _store(op: tensor.InsertSliceOp, loop: scf.ForOp) -> Store:
    places, sizes = offsets_of(op), ints(op.static_sizes)
    moving = [d for d, p in enumerate(places) if loop in p.terms]
    if op.sizes or op.strides or len(moving) != 1:
        raise OneByOne("a slice is written that moves in several dimensions, or not at all")
    (axis,) = moving
    step = places[axis].terms[loop]
    if len(places[axis].terms) > 1 or sizes[axis] != 1 or step < 1:
        raise OneByOne("a slice is written that is not the turn's own row")
    sizes[axis] = trips_of(loop).count
    steps = [step if d == axis else s for d, s in enumerate(ints(op.static_strides))]
    masked = _masked(op)
    value, mask = (op.source, None) if masked is None else (masked.x, masked.condition)
    while (
        mask is not None and isinstance(value.owner, WhereOp) and _same(value.owner.condition, mask)
    ):
        value = value.owner.x
    like = op.source if masked is None else masked.results[0]
    return Store(op, axis, _places(op, places, axis), sizes, steps, value, mask, like)


def _places(op: tensor.InsertSliceOp, places: Sequence[Affine], axis: int) -> list[Place]:
    dynamic = iter(op.offsets)
    given = [next(dynamic) if o == DYNAMIC else o for o in ints(op.static_offsets)]
    return [p.constant if d == axis or not p.terms else given[d] for d, p in enumerate(places)]


def _masked(op: tensor.InsertSliceOp) -> WhereOp | None:
    """The choice between what is written and what was there, where an insertion is of such."""
    made = _unshaped(op.source).owner
    if not isinstance(made, WhereOp):
        return None
    old = _unshaped(made.y).owner
    if not isinstance(old, tensor.ExtractSliceOp) or shape_of(made.y) != shape_of(made.results[0]):
        return None
    same = old.source is op.dest and offsets_of(old) == offsets_of(op)
    same = same and ints(old.static_sizes) == ints(op.static_sizes)
    return made if same and ints(old.static_strides) == ints(op.static_strides) else None


def _unshaped(value: SSAValue) -> SSAValue:
    while isinstance(value.owner, ReshapeOp):
        value = value.owner.x
    return value


def _same(a: SSAValue, b: SSAValue) -> bool:
    """Whether two values are computed alike."""
    if a is b:
        return True
    one, two = a.owner, b.owner
    if not isinstance(one, Operation) or not isinstance(two, Operation):
        return False
    pure = isinstance(one, GraphOp | tensor.FromElementsOp) or one.name.startswith("arith.")
    alike = type(one) is type(two) and one.properties == two.properties and a.type == b.type
    if not pure or not alike or len(one.results) != 1:
        return False
    return all(_same(v, w) for v, w in zip(one.operands, two.operands, strict=True))


def _apart(a: tensor.ExtractSliceOp, b: tensor.InsertSliceOp) -> bool:
    """Whether two parts have no element in common, whichever turns they are of."""
    hulls = zip(_hulls(a), _hulls(b), strict=True)
    return any(s_end < t or t_end < s for (s, s_end), (t, t_end) in hulls)


def _hulls(op: tensor.ExtractSliceOp | tensor.InsertSliceOp) -> list[tuple[int, int]]:
    """Of each dimension the first and the last index that a part has in any turn of its loops."""
    found: list[tuple[int, int]] = []
    lengths = zip(offsets_of(op), ints(op.static_sizes), ints(op.static_strides), strict=True)
    for place, size, step in lengths:
        moved = [f * (trips_of(loop).count - 1) for loop, f in place.terms.items()]
        low = place.constant + sum(min(m, 0) for m in moved)
        high = place.constant + sum(max(m, 0) for m in moved)
        found.append((low, high + (size - 1) * step))
    return found


def _follows(loop: scf.ForOp, op: tensor.ExtractSliceOp, store: Store, behind: bool) -> bool:
    """Whether a part is read before any turn writes it: a later turn's row, or its own that comes first."""
    place, size = offsets_of(op)[store.axis], ints(op.static_sizes)[store.axis]
    if place.terms != {loop: store.steps[store.axis]}:
        return False
    if size > 1 and ints(op.static_strides)[store.axis] < 1:
        return False
    return place.constant > store.first or (place.constant == store.first and not behind)


def _written(carried: Carried, turns: AllTurns) -> SSAValue:
    current, emit = carried.start, turns.emit
    if len(carried.stores) > 1 and not all(map(_is_plain, carried.stores)):
        raise OneByOne(
            "several slices are written, with steps or at places that hang on other loops"
        )
    before: list[tuple[Store, SSAValue | None]] = []
    for inner in carried.stores:
        places = [p if isinstance(p, int) else turns.place(p) for p in inner.places]
        store = replace(inner, places=places)
        value = _all_of(store, store.value, turns)
        mask = None if store.mask is None else _all_of(store, store.mask, turns)
        old = current if store.is_whole() else _extract(emit, current, store)
        for other, was in before:
            later = _later(emit, store, other, was)
            if later is not None:
                value = emit(WhereOp.make([later, old, value]))
        if mask is not None:
            value = emit(WhereOp.make([mask, value, old]))
        before.append((store, mask))
        current = value if store.is_whole() else _insert(emit, value, current, store)
    return current


def _is_plain(store: Store) -> bool:
    return set(store.steps) == {1} and all(isinstance(p, int) for p in store.places)


def _all_of(store: Store, value: SSAValue, turns: AllTurns) -> SSAValue:
    """What all turns write, or its mask, as it lies in the array."""
    emit, count = turns.emit, turns.count
    like, own = shape_of(store.like), shape_of(value)
    found = emit.reshaped(turns.of_all(value), [count, *[1] * (len(like) - len(own)), *own])
    found = emit.expanded(found, [count, *like])
    rest = [s for d, s in enumerate(store.sizes) if d != store.axis]
    found = emit.reshaped(found, [count, *rest])
    order = [*range(1, store.axis + 1), 0, *range(store.axis + 1, len(store.sizes))]
    return emit.transposed(found, order)


def _later(emit: Emitter, store: Store, other: Store, mask: SSAValue | None) -> SSAValue | None:
    """Which elements of a store an earlier one of the body writes in a later turn; None for none of them."""
    shape = store.op.dest
    if store.axis == other.axis and store.first <= other.first:
        return None
    if mask is None:
        mask = emit.constant(np.ones([1] * len(other.sizes), np.bool_))
        mask = emit.expanded(mask, other.sizes)
    if not other.is_whole():
        none = emit.constant(np.zeros([1] * len(other.sizes), np.bool_))
        mask = _insert(emit, mask, emit.expanded(none, shape_of(shape)), other)
    if not store.is_whole():
        mask = _extract(emit, mask, store)
    if store.axis == other.axis:
        return mask
    place = store.places[other.axis]
    assert isinstance(place, int)
    theirs = place - other.first + np.arange(store.sizes[other.axis])
    own = np.arange(store.sizes[store.axis])
    rows = [
        emit.constant(
            n.astype(np.int64).reshape([-1 if d == axis else 1 for d in range(len(store.sizes))])
        )
        for n, axis in ((theirs, other.axis), (own, store.axis))
    ]
    later = emit(CompareOp.make(rows, {"predicate": StringAttr("gt")}))
    return emit(AndOp.make([mask, later]))


def _extract(emit: Emitter, value: SSAValue, store: Store) -> SSAValue:
    type_ = tensor_like(tensor_type(value).element_type, store.sizes)
    made = tensor.ExtractSliceOp.build(
        operands=[value, _computed(store), [], []], properties=_given(store), result_types=[type_]
    )
    return emit(made)


def _insert(emit: Emitter, value: SSAValue, into: SSAValue, store: Store) -> SSAValue:
    made = tensor.InsertSliceOp.build(
        operands=[value, into, _computed(store), [], []],
        properties=_given(store),
        result_types=[into.type],
    )
    return emit(made)


def _computed(store: Store) -> list[SSAValue]:
    return [p for p in store.places if isinstance(p, SSAValue)]


def _given(store: Store) -> dict[str, Attribute]:
    offsets = [DYNAMIC if isinstance(p, SSAValue) else p for p in store.places]
    return {
        "static_offsets": int_array(offsets),
        "static_sizes": int_array(store.sizes),
        "static_strides": int_array(store.steps),
    }
