"""The SSA dominance check that xDSL 0.74 lacks: a value is defined before it is used.

An operand must be an argument of an enclosing block, or a result of an earlier op of an enclosing
block, or of a block that dominates it. Only `builtin.module` may hold its ops in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue


@dataclass(frozen=True)
class Violation:
    """Operand `index` of `user` does not dominate it."""

    user: Operation
    index: int

    @property
    def value(self) -> SSAValue:
        """The value used too early, or out of scope."""
        return self.user.operands[self.index]


def dominance_violation(root: Operation) -> Violation | None:
    """The first violation in `root`, in the order of the text; None if there is none."""
    return next(_check_regions(root, set()), None)


def _check_regions(op: Operation, visible: set[SSAValue]) -> Iterator[Violation]:
    for region in op.regions:
        yield from _check_region(region, visible)


def _check_region(region: Region, visible: set[SSAValue]) -> Iterator[Violation]:
    if len(region.blocks) == 1:
        yield from _check_block(region.blocks[0], visible)
        return
    for block, dominators in dominator_sets(region).items():
        above = {v for d in dominators if d is not block for v in _definitions(d)}
        yield from _check_block(block, visible | above)


def _check_block(block: Block, visible: set[SSAValue]) -> Iterator[Violation]:
    # Every value has one definition, so what this block adds can be taken away again at its end.
    unordered = isinstance(block.parent_op(), ModuleOp)
    visible.update(_definitions(block) if unordered else block.args)
    for op in block.ops:
        for index, operand in enumerate(op.operands):
            if operand not in visible:
                yield Violation(op, index)
        if op.regions:
            yield from _check_regions(op, visible)
        visible.update(op.results)
    visible.difference_update(_definitions(block))


def _definitions(block: Block) -> Iterator[SSAValue]:
    yield from block.args
    for op in block.ops:
        yield from op.results


def dominator_sets(region: Region) -> dict[Block, set[Block]]:
    """For each block that the entry reaches, the blocks on every path to it, itself included.

    Blocks that nothing reaches are left out: any value may be used there, as in MLIR.
    """
    order = _reverse_postorder(region)
    predecessors: dict[Block, list[Block]] = {block: [] for block in order}
    for block in order:
        for successor in _successors(block):
            predecessors[successor].append(block)
    dominators = {block: set(order) for block in order}
    dominators.update({block: {block} for block in order[:1]})
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            new = set(order)
            for predecessor in predecessors[block]:
                new &= dominators[predecessor]
            new.add(block)
            changed |= new != dominators[block]
            dominators[block] = new
    return dominators


def _successors(block: Block) -> list[Block]:
    last = block.last_op
    return list(last.successors) if last is not None else []


def _reverse_postorder(region: Region) -> list[Block]:
    if not region.blocks:
        return []
    entry = region.blocks[0]
    order: list[Block] = []
    seen = {entry}
    stack = [(entry, iter(_successors(entry)))]
    while stack:
        block, rest = stack[-1]
        successor = next((s for s in rest if s not in seen), None)
        if successor is None:
            order.append(block)
            stack.pop()
        else:
            seen.add(successor)
            stack.append((successor, iter(_successors(successor))))
    return order[::-1]
