"""Make a function with loops one that calls functions without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.loops import body_of, first_start, is_loop
from irkit.dialects.state import StatePair, set_state
from irkit.passes.graph.loops.copies import (
    blocks_of,
    copy_where_read,
    copy_where_replaced,
    copy_where_written,
)
from irkit.passes.graph.loops.demands import Demands, updated_in
from irkit.passes.graph.loops.segments import (
    Item,
    Node,
    Segment,
    is_constant,
    items_of,
    root_of,
    same_place,
)


@dataclass
class LoopOutliner:
    """Makes functions `@<main>_part<n>` of what stands between the loops of one function."""

    main: func.FuncOp
    parts: list[func.FuncOp] = field(default_factory=list[func.FuncOp])

    def run(self) -> None:
        """Put the functions before it, and calls of them into it. Raises UnsupportedError."""
        for block in blocks_of(self.main):
            copy_where_read(block)
        self._block(self.main.body.block)
        # In the order of the calls.
        for part in self.parts:
            Rewriter.insert_op(part, InsertPoint.before(self.main))

    def _block(self, block: Block) -> None:
        for op in list(block.ops):
            if is_loop(op):
                self._block(body_of(op))
        items = items_of(block)
        copy_where_written(block, items)
        Demands(block, items).place()
        places = _Places(block, [i for i in items if isinstance(i, Segment)])
        copy_where_replaced(block, items, places.find)
        terminator = block.last_op
        assert terminator is not None
        for number, item in enumerate(items):
            if not isinstance(item, Segment):
                continue
            self._call(item, places, _first_op(items[number + 1 :]) or terminator)

    def _call(self, segment: Segment, places: _Places, anchor: Operation) -> None:
        """Replace a segment by the call of its function, before `anchor`."""
        inside = set(segment.ops)
        made = [
            r
            for op in segment.ops
            for r in op.results
            if any(
                _outer(u.operation, inside) and (u.operation, u.index) not in segment.copied
                for u in r.uses
            )
        ]
        nodes: list[Node] = [*made, *segment.copied]
        if not nodes:
            # Nothing of it is read.
            for op in reversed(segment.ops):
                Rewriter.erase_op(op)
            return
        live = segment.live_ins
        pairs = [*places.updated(live, nodes), *_windows(segment, live, made)]
        part = self._part(segment, live, made)
        if pairs:
            set_state(part, [StatePair(*pair) for pair in sorted(set(pairs))])
        call = func.CallOp(part.sym_name.data, live, list(part.function_type.outputs.data))
        Rewriter.insert_op(call, InsertPoint.before(anchor))
        for op in segment.before:
            op.detach()
            Rewriter.insert_op(op, InsertPoint.before(call))
        for op in segment.behind:
            op.detach()
            Rewriter.insert_op(op, InsertPoint.before(anchor))
        for old, new in zip(made, call.res[: len(made)], strict=True):
            new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        for (op, operand), new in zip(segment.copied, call.res[len(made) :], strict=True):
            op.operands[operand] = new
        for op in reversed(segment.ops):
            Rewriter.erase_op(op)

    def _part(
        self, segment: Segment, live: Sequence[SSAValue], made: Sequence[SSAValue]
    ) -> func.FuncOp:
        """The function of a segment: what it makes, and then its copies."""
        block = Block(arg_types=[v.type for v in live])
        env: dict[SSAValue, SSAValue] = dict(zip(live, block.args, strict=True))
        for value, argument in env.items():
            argument.name_hint = value.name_hint
        for op in segment.ops:
            for value in [v for inner in op.walk() for v in inner.operands]:
                _bring(value, env, block)
            # Ops of the segment know their operands, as they stand in program order.
            block.add_op(op.clone(env))
        returned = [*made]
        for op, operand in segment.copied:
            value = op.operands[operand]
            _bring(value, env, block)
            returned.append(value)
        block.add_op(func.ReturnOp(*(env[v] for v in returned)))
        inputs: list[Attribute] = [v.type for v in live]
        name = f"{self.main.sym_name.data}_part{len(self.parts)}"
        part = func.FuncOp(
            name, FunctionType.from_lists(inputs, [v.type for v in returned]), Region(block)
        )
        self.parts.append(part)
        return part


def _outer(op: Operation, inside: set[Operation]) -> bool:
    """Whether an op is neither one of these nor in one."""
    found: Operation | None = op
    while found is not None:
        if found in inside:
            return False
        found = found.parent_op()
    return True


def _bring(value: SSAValue, env: dict[SSAValue, SSAValue], block: Block) -> None:
    """Copy a constant into the block of a part."""
    if value not in env and is_constant(value):
        assert isinstance(value.owner, Operation)
        copy = value.owner.clone()
        copy.results[0].name_hint = value.name_hint
        block.add_op(copy)
        env[value] = copy.results[0]


def _first_op(items: Sequence[Item]) -> Operation | None:
    """The first op of any of these."""
    for item in items:
        if not isinstance(item, Segment):
            return item
        for op in item.all_ops():
            return op
    return None


def _windows(
    segment: Segment, live: Sequence[SSAValue], made: Sequence[SSAValue]
) -> list[tuple[int, int]]:
    """Slices that are read and written at the same place."""
    found: list[tuple[int, int]] = []
    for number, op in enumerate(segment.behind):
        results = [*made, *segment.copied]
        node: Node = (op, 0) if (op, 0) in segment.copied else op.source
        for read in segment.before:
            same = root_of(read.source) is root_of(op.dest) and same_place(read, op)
            if same and read.result in live and number >= 0:
                found.append((list(live).index(read.result), results.index(node)))
                break
    return found


class _Places:
    """Which values of a block are one place: classes of a union-find."""

    def __init__(self, block: Block, segments: Sequence[Segment]) -> None:
        self._parent: dict[Node, Node] = {}
        copied = {pair for segment in segments for pair in segment.copied}

        def node(op: Operation, operand: int) -> Node:
            return (op, operand) if (op, operand) in copied else op.operands[operand]

        for op in block.ops:
            if is_loop(op):
                for n, result in enumerate(op.results):
                    self._join(node(op, first_start(op) + n), result)
        for segment in segments:
            for op in segment.behind:
                self._join(node(op, 1), op.result)
        terminator = block.last_op
        assert terminator is not None
        for n, argument in updated_in(block).items():
            self._join(node(terminator, n), argument)

    def _join(self, a: Node, b: Node) -> None:
        a, b = self.find(a), self.find(b)
        if a is not b:
            self._parent[a] = b

    def find(self, a: Node) -> Node:
        """What stands for the place of a value or copy."""
        while a in self._parent:
            a = self._parent[a]
        return a

    def updated(self, live: Sequence[SSAValue], nodes: Sequence[Node]) -> list[tuple[int, int]]:
        """(number of what is read, number of what is made) in the same place."""
        of_place: dict[Node, int] = {self.find(v): n for n, v in enumerate(live)}
        found = [(of_place.get(self.find(node), -1), n) for n, node in enumerate(nodes)]
        return [(a, r) for a, r in found if a >= 0]
